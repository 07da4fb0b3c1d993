#include "learning/network/candidate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lcp::learning::fitting {

// The share of the resting samples in which an exact network rests at least.
constexpr double kExactRest = 0.99;

namespace {

using torch::Tensor;

// Validation errors count as equal within this many standard errors.
constexpr double kStandardErrors = 2;
// Predictions that differ by more than this multiple of their units are others.
constexpr double kOther = 1e-6;

auto complexity(const NetworkCandidate& c) {
  return std::tuple(c.options.q() == nn::Dependence::kNetwork, c.options.unknowns(), c.coupled, c.validation_error);
}

}  // namespace

nn::LcpNetwork make_network(const nn::LcpNetworkOptions& options, const Tensor& input_unit, const Tensor& output_unit) {
  const torch::NoGradGuard no_grad;
  nn::LcpNetwork made(options);
  made->input_unit.copy_(input_unit);
  made->output_unit.copy_(output_unit);
  return made;
}

double score(const NetworkCandidate& c) {
  return c.exact() ? 0 : std::max(c.validation_error, kExact) * (1 + 100 * (1 - c.rest));
}

double parameters(const NetworkCandidate& candidate) {
  const auto n = static_cast<double>(candidate.options.unknowns());
  double count = static_cast<double>(nn::LcpNetwork(candidate.options)->size()) - 2 * n;
  if (!candidate.coupled) count -= n * (n - 1);
  if (candidate.inertial) count -= n;
  return candidate.odd ? count / 2 : count;
}

double information(const NetworkCandidate& candidate, double mean_square, std::int64_t residuals) {
  const auto count = static_cast<double>(residuals);
  return count * std::log(std::max(mean_square, kExact * kExact)) + parameters(candidate) * std::log(count);
}

Tensor differences(const Tensor& prediction, const std::vector<Tensor>& others) {
  Tensor shares = torch::empty({static_cast<std::int64_t>(others.size())}, torch::kDouble);
  for (std::size_t k = 0; k < others.size(); ++k) {
    shares[static_cast<std::int64_t>(k)] =
        (~((prediction - others[k]).abs() <= kOther).all(1)).to(torch::kDouble).mean();
  }
  return shares;
}

bool confirmed(const std::vector<Tensor>& predictions) {
  return std::any_of(predictions.begin(), predictions.end(), [&](const Tensor& prediction) {
    return (differences(prediction, predictions) == 0).sum().item<std::int64_t>() > 1;  // not with itself alone
  });
}

const NetworkCandidate& most_agreed(const std::vector<const NetworkCandidate*>& candidates,
                                    const std::vector<Tensor>& predictions) {
  const NetworkCandidate* chosen = nullptr;
  double least = INFINITY;
  std::size_t number = 0;
  for (const NetworkCandidate* c : candidates) {
    if (!c->precise()) continue;
    const double here = differences(predictions[number++], predictions).sum().item<double>();
    if (!c->exact() || here > least || (here == least && complexity(*c) >= complexity(*chosen))) continue;
    chosen = c;
    least = here;
  }
  return *chosen;
}

const NetworkCandidate& simplest(const std::vector<const NetworkCandidate*>& candidates,
                                 std::int64_t training_residuals, std::int64_t validation_residuals) {
  const NetworkCandidate* const lowest =
      *std::min_element(candidates.begin(), candidates.end(),
                        [](const NetworkCandidate* a, const NetworkCandidate* b) { return score(*a) < score(*b); });
  // The standard error is that of a root of the mean square of as many normal numbers.
  const auto validation = static_cast<double>(validation_residuals);
  const double limit = (1 + kStandardErrors / std::sqrt(2 * validation)) * score(*lowest);
  const double share = validation / (validation + static_cast<double>(training_residuals));
  const auto criterion = [&](const NetworkCandidate& c) {
    const double square = (1 - share) * std::pow(c.training_error, 2) + share * std::pow(c.validation_error, 2);
    return information(c, square, training_residuals + validation_residuals);
  };
  // First whether it rests where the samples rest, then the criterion.
  const auto order = [&](const NetworkCandidate& c) { return std::tuple(c.rest <= kExactRest, criterion(c)); };
  const NetworkCandidate* chosen = lowest;
  for (const NetworkCandidate* c : candidates) {
    if (score(*c) <= limit && order(*c) < order(*chosen)) chosen = c;
  }
  return *chosen;
}

}  // namespace lcp::learning::fitting

namespace lcp::learning {

bool NetworkCandidate::precise() const { return std::max(training_error, validation_error) < fitting::kExact; }

bool NetworkCandidate::exact() const { return precise() && rest > fitting::kExactRest; }

}  // namespace lcp::learning
