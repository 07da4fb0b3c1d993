// A cube whose parameters are learned from tosses.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "tosses/cube.h"
#include "tosses/model.h"

namespace lcp::training {

class CubeModel : public TossModel {
 public:
  /// start: where the parameters begin. learned: names of kLearnable.
  /// Throws a UsageError where they do not fit together.
  CubeModel(Cube start, CubeContact contact, double rate, const std::vector<std::string>& learned);

  Cube cube() const;
  torch::Tensor center() const override { return cube().center.detach(); }
  physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const override;
  std::string torchscript_bytes() const override;

  /// The names of the learned numbers, p of them, and their values, [p], in the units of Cube; `side` is the mean one.
  const std::vector<std::string>& names() const { return names_; }
  torch::Tensor values() const { return values_at(raw); }

  /// Those of other raw numbers, [..., p], and the cubes with them.
  torch::Tensor values_at(const torch::Tensor& numbers) const;
  Cube cube_at(const torch::Tensor& numbers) const { return cube_of(values_at(numbers)); }

  /// The raw numbers, [p], of these values in the order of names().
  torch::Tensor numbers_of(const std::vector<double>& values) const;

  torch::Tensor raw;  ///< [p], what is learned: numbers without bounds, which begin at 0, steps of .1 being small

 private:
  enum class Kind { kPositive, kFraction, kAny };
  void add(const std::string& name, Kind kind, double start, double scale);
  Cube cube_of(const torch::Tensor& values) const;

  Cube start_;
  CubeContact contact_;
  double rate_;
  std::vector<std::string> names_;
  std::vector<Kind> kinds_;
  std::vector<double> first_, scale_;
};

/// What --learn may name: `center` is that of the cube, which need not be the centre of mass; `corners` are the eight
/// corners one by one, in place of `side` and `center`; `inertia_axes` three moments in place of `inertia`.
constexpr const char* kLearnable[] = {"mu",      "restitution",  "side",   "corners", "center",    "rounding",
                                      "inertia", "inertia_axes", "height", "tilt",    "stiffness", "dissipation"};

}  // namespace lcp::training
