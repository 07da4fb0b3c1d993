// Learns the LCP of a sliding block from motion, from many starts at once.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "run/command_line.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// A block's LCP with unknown parameters theta.
struct LearnedLcp {
  /// The numbers of the LCP of each sample, [..., n, k], for theta [..., 1 or n, p].
  std::function<torch::Tensor(const Samples& samples, const torch::Tensor& theta)> numbers;
  /// v_next that these numbers give, [..., n], m/s; NaN where the LCP has no solution.
  std::function<torch::Tensor(const Samples& samples, const torch::Tensor& numbers)> step;
  /// What is minimised is the mean of the squared errors of the prediction, relative to `unit`, and two sums of
  /// squares: those of the means over the samples of `missed`, [..., n, e], and those of `penalties`, [..., k] for
  /// theta [..., p], which is differentiable in forward mode.
  std::function<torch::Tensor(const torch::Tensor& numbers)> missed;
  std::function<torch::Tensor(const torch::Tensor& theta)> penalties;
  double unit;  ///< m/s

  /// Roots of the mean squared errors of the prediction, [starts], relative to `unit`, for theta [starts, p]; infinite
  /// where a sample has no solution.
  torch::Tensor errors(const Samples& samples, const torch::Tensor& theta) const;
};

/// The flags of the starts.
struct StartFlags {
  std::string start;
  std::int64_t starts = 0;  ///< 0: 16, or one where all would be the same
  std::int64_t finishing_iterations = 30;

  /// known: the other values of --start than random and a file, each with a description.
  void add_to(CommandLine& line, const std::string& known);
  /// To be called once the command line is parsed: throws a UsageError where --start is neither a file nor one of
  /// `known` and random.
  void validate(const std::string& known);
  bool random() const { return start == "random"; }
  bool file() const { return names_file(start); }
  std::int64_t count() const { return starts > 0 ? starts : file() ? 1 : 16; }

  /// Calls `read`, which reads the file to start from, and throws a UsageError where it fails.
  void load(const std::function<void()>& read) const;
};

/// A number that the model.pt has as an attribute. Throws a UsageError that names the file.
double number_in(const std::string& file, const std::string& name);

/// The parameters of all starts, which are trained together: theta, [starts, p]. Each has a loss of its own, so that
/// it is trained as if it were alone.
class Starts : public torch::nn::Module {
 public:
  explicit Starts(const torch::Tensor& theta);

  /// The parameters of those starts that are still trained, [left, p]. Once half of the training is done, these are the
  /// half with the smaller `errors`, a function of theta that returns [starts].
  ///   done: the completed fraction of the training.
  torch::Tensor left(double done, const std::function<torch::Tensor(const torch::Tensor& theta)>& errors);

 private:
  torch::Tensor theta_;  // [starts, p]
  torch::Tensor kept_;   // [starts / 2, rounded up], the numbers of the starts that are left; -1 before
};

/// The best of the starts, [p]: the eight with the smallest errors are finished by the Levenberg-Marquardt method, and
/// of these the one is chosen that predicts the samples best. Of several whose errors are round-off, it is the one with
/// which the others agree most in random states, each of the v of one sample and the u of another: where no sample
/// shows what happens, models from different starts are wrong in different states.
///   theta: [starts, p]. iterations: at most, of the Levenberg-Marquardt method; 0: none.
torch::Tensor best_start(const LearnedLcp& lcp, const Samples& samples, const torch::Tensor& theta,
                         std::int64_t iterations, std::int64_t seed);

}  // namespace lcp::training
