// Windows of tosses to learn from.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "tosses/model.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// Windows that begin where the measured velocities can be trusted: a filter that computed them from positions mixes
/// those before an impact with those after it.
class Windows {
 public:
  /// side: m, of the body, the unit of positions in the misfit. gravity: m/s^2. rate: samples per second.
  Windows(const std::vector<Toss>& tosses, double side, double gravity, double rate);

  std::int64_t tosses() const { return set_.count(); }

  /// For each of the tosses with these indices `count` windows of `steps` steps, or to the end of the toss, with random
  /// starts, which do not depend on what other tosses are drawn.
  Segments draw(const torch::Tensor& toss, std::int64_t count, std::int64_t steps, at::Generator random) const;

  /// Where the model is after each step, from where it was measured, [T, b, 2, 3]: the distance of the centres in units
  /// of .12 sides, and the rotation in the axes of the body, a vector of the length 2 sin(angle / 2) in units of .27.
  /// About so large are the errors of the best known models, so that both count alike. 0 beyond the end of a window,
  /// and NaN from the first step on that the model does not solve.
  torch::Tensor residuals(const TossModel& model, const Segments& windows) const;

  /// The misfit of each window that the model solves, [at most b]: the mean over its steps of the sum of both lengths.
  /// It grows with the errors and not with their squares, so that a toss that falls onto another face counts for no
  /// more than its error. Throws c10::Error where the model solves no window.
  torch::Tensor misfit(const TossModel& model, const Segments& windows) const;

  /// The same of all windows, [b], NaN where the model does not solve one.
  torch::Tensor misfits(const TossModel& model, const Segments& windows) const;

 private:
  TossSet set_;
  double side_;
  std::vector<torch::Tensor> starts_;  // of each toss, int64, samples that can be trusted
};

}  // namespace lcp::training
