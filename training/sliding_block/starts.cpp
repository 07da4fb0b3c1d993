#include "sliding_block/starts.h"

#include <torch/autograd.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lcp/identification/least_squares.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using identification::Linearization;
using torch::Tensor;

constexpr std::int64_t kFinished = 8;  // starts that are finished
// Relative errors below this are the rounding of exact solutions.
constexpr double kExact = 1e-10;
// Predictions that differ by more, relative to the unit, are not the same.
constexpr double kOther = 1e-6;
constexpr std::int64_t kRandomStates = 2000;
// The penalties are multiplied by this at first: a network that needs no hidden layer is found as one without.
constexpr double kFirstPenalty = 1e4;

// The errors of one start, theta [p], and its penalties times `factor`, with their Jacobian. Each sample has parameters
// of its own here, so that one backward pass gives the derivatives of all errors, and not only those of their sum.
Linearization linearized(const LearnedLcp& lcp, const Samples& samples, const Tensor& theta, double factor) {
  const std::int64_t n = samples.count();
  const double weight = std::sqrt(static_cast<double>(n));  // since the penalties are added to a mean over n samples
  const Linearization simple = identification::linearize(
      [&](const Tensor& at) { return weight * std::sqrt(factor) * lcp.penalties(at); }, theta.unsqueeze(0));
  std::vector<Tensor> residuals, rows;
  const torch::AutoGradMode grad(true);
  const Tensor each = theta.expand({n, -1}).clone().requires_grad_();
  const auto add = [&](const Tensor& values, const Tensor& derivatives) {
    residuals.push_back(values.detach());
    rows.push_back(derivatives);
  };
  const auto derivatives = [&](const Tensor& sum) {
    return torch::autograd::grad({sum}, {each}, {}, /*retain_graph=*/true)[0];
  };
  const Tensor numbers = lcp.numbers(samples, each);
  const Tensor v_next = lcp.step(samples, numbers);
  add((v_next - samples.v_next) / lcp.unit, derivatives(v_next.sum()) / lcp.unit);
  for (const Tensor& missed : lcp.missed(numbers).unbind(-1)) {
    add(weight * missed.mean().unsqueeze(0), weight * derivatives(missed.mean()).sum(0, true));
  }
  add(simple.residuals[0], simple.jacobian[0]);
  return {at::cat(residuals), at::cat(rows)};
}

Tensor finished(const LearnedLcp& lcp, const Samples& samples, const Tensor& theta, std::int64_t iterations,
                double factor) {
  identification::LeastSquaresOptions options;
  options.max_iterations = iterations;
  const auto all = [&](const Tensor& rows, const Tensor&) {
    std::vector<Tensor> residuals, jacobians;
    for (const Tensor& row : rows.unbind(0)) {
      const Linearization one = linearized(lcp, samples, row, factor);
      residuals.push_back(one.residuals);
      jacobians.push_back(one.jacobian);
    }
    return Linearization{at::stack(residuals), at::stack(jacobians)};
  };
  return identification::least_squares(all, theta, options).theta;
}

// The v of some samples with the u of others.
Samples random_states(const Samples& samples, std::int64_t seed) {
  at::Generator numbers = generator(seed, Stream::kRandomStates);
  const auto drawn = [&](const Tensor& x) {
    return x.index_select(0, torch::randint(samples.count(), {kRandomStates}, numbers, torch::kLong));
  };
  const Tensor v = drawn(samples.v), u = drawn(samples.u);
  return {v, u, at::zeros_like(v), {}, {}};
}

}  // namespace

Tensor LearnedLcp::errors(const Samples& samples, const Tensor& theta) const {
  const torch::NoGradGuard no_grad;
  const Tensor v_next = step(samples, numbers(samples, theta.unsqueeze(-2)));
  const Tensor error = (v_next - samples.v_next) / unit;
  return error.to(torch::kDouble).square().mean(-1).sqrt().nan_to_num(INFINITY, INFINITY);
}

void StartFlags::add_to(CommandLine& line, const std::string& known) {
  line.add(
      "start", start,
      "Parameters to start from: " + known + "random, or a file: the model.pt of a program, with the same parameters",
      nullptr, Role::kFileOrWord);
  line.add("starts", starts,
           "Number of starts, all trained at once, of which the worse half is dropped when half of the "
           "training is done; 0: 16, or one where all would be the same",
           at_least_zero);
  line.add("finishing-iterations", finishing_iterations,
           "Iterations of the Levenberg-Marquardt method in the end, which minimises the error of the "
           "prediction; 0: Adam alone",
           at_least_zero);
}

void StartFlags::validate(const std::string& known) {
  if (file() || random() || start == known) return;
  throw UsageError("--start must be " + known + (known.empty() ? "" : ", ") +
                   "random or a file, whose path has a . or a /; got \"" + start + "\"");
}

void StartFlags::load(const std::function<void()>& read) const {
  try {
    read();
  } catch (const c10::Error& error) {
    throw UsageError("--start: " + std::string(error.what_without_backtrace()));
  }
}

double number_in(const std::string& file, const std::string& name) {
  try {
    return torch::jit::load(file).attr(name).toDouble();
  } catch (const c10::Error&) {
    throw UsageError("--start: " + file + ": is no model.pt of such a program");
  }
}

Starts::Starts(const Tensor& theta) {
  theta_ = register_parameter("theta", theta.clone());
  kept_ = register_buffer("kept", torch::full({(theta.size(0) + 1) / 2}, -1, torch::kLong));
}

Tensor Starts::left(double done, const std::function<Tensor(const Tensor& theta)>& errors) {
  if (theta_.size(0) == 1 || done < 0.5) return theta_;
  if (kept_[0].item<std::int64_t>() < 0) {
    const torch::NoGradGuard no_grad;
    kept_.copy_(errors(theta_).argsort(/*stable=*/true, 0, /*descending=*/false).slice(0, 0, kept_.size(0)));
  }
  return theta_.index_select(0, kept_);
}

Tensor best_start(const LearnedLcp& lcp, const Samples& samples, const Tensor& theta, std::int64_t iterations,
                  std::int64_t seed) {
  const torch::NoGradGuard no_grad;
  const Tensor order = lcp.errors(samples, theta).argsort(/*stable=*/true, 0, /*descending=*/false);
  Tensor best = theta.index_select(0, order.slice(0, 0, kFinished));
  if (iterations > 0) {
    if (lcp.penalties(theta).size(-1) > 0) best = finished(lcp, samples, best, iterations, kFirstPenalty);
    best = finished(lcp, samples, best, iterations, 1);
  }
  const Tensor errors = lcp.errors(samples, best);
  const Tensor exact = errors <= kExact;
  if (!exact.any().item<bool>()) return best[errors.argmin()];
  best = best.index_select(0, exact.nonzero().squeeze(-1));
  const Samples states = random_states(samples, seed);
  const Tensor v_next = lcp.step(states, lcp.numbers(states, best.unsqueeze(-2))) / lcp.unit;
  const Tensor differs = ~((v_next.unsqueeze(0) - v_next.unsqueeze(1)).abs() <= kOther);
  return best[differs.to(torch::kDouble).mean({1, 2}).argmin()];
}

}  // namespace lcp::training
