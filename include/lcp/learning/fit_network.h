// Learns a map from samples as a network that ends in an LCP: what sticks, slides, hits or bounces up to round-off,
// from random starts, without a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lcp/export.h"
#include "lcp/learning/network_search.h"
#include "lcp/nn/lcp_network.h"

namespace lcp::learning {

/// How far a fit has come.
struct FitProgress {
  std::int64_t rounds;     ///< that are complete
  double done;             ///< the share of the next one, 0 to 1, or 0 where none follows
  std::int64_t unknowns;   ///< of the best network so far; 0 before the first round is complete
  double validation_rmse;  ///< its error, in the units of the targets; infinite before
};

struct FitNetworkOptions : NetworkSearchOptions {
  double validation = 0.2;  ///< the share of the samples by which networks are chosen, in (0, 1); random ones
  std::optional<Samples> validation_samples = std::nullopt;  ///< these in place of a share
  /// The standard deviation of noise on the targets, where it is known: targets of at most three times it count as
  /// rest, unless rest_below is given.
  std::optional<double> noise = std::nullopt;
  /// s. What is left of the search is skipped after this time, so that the result depends on the speed of the machine.
  std::optional<double> budget_seconds = std::nullopt;
  /// Called often, by the thread that fits. What it throws ends the fit.
  std::function<void(const FitProgress&)> progress = nullptr;
};

/// The best network of a round. Errors are in the units of the targets, roots of the mean square over all outputs.
struct FitRound {
  std::int64_t unknowns;
  nn::Dependence q;
  double training_rmse;
  double validation_rmse;
  double rest;  ///< the share of the resting training samples that it predicts to rest exactly; 1 where none rests
  std::int64_t starts;
};

struct FitResult {
  nn::LcpNetwork network{nullptr};  ///< float64, on the CPU
  /// The errors of the chosen network before its last fit to all samples, so that its parameters were not fitted to the
  /// validation samples. An exact one may have learned from some of them, see NetworkSearch.
  double training_rmse = 0, validation_rmse = 0;
  std::int64_t unknowns = 0;
  bool exact = false;  ///< whether it predicts all samples up to rounding, and rests where they rest
  double rest = 0;     ///< see FitRound
  /// Of several exact networks: the share of random states, each component of x from another sample, in which the
  /// others predict something else. Where it is > 0, more samples would tell which is right.
  std::optional<double> disagreement;
  bool odd = false, inertial = false;  ///< the assumptions that it was fitted with, see NetworkSearch::simplified
  bool out_of_time = false;            ///< whether budget_seconds ended the search
  std::vector<FitRound> rounds;
};

/// Learns y = f(x) + G(x) z, 0 <= z perp M z + q(x) >= 0, with the number of unknowns z, from samples alone: a search
/// (NetworkSearch) to its end, and a last fit of the chosen network to all samples.
///   inputs: [samples, p]. targets: [samples, d]. Any floating-point type and device; the fit is in float64 on the CPU.
/// Throws c10::Error where a shape or an option does not fit, or a number is not finite. The same samples, options and
/// seed give the same bits, whatever the number of threads, unless budget_seconds ends the search.
LCP_API FitResult fit_network(const at::Tensor& inputs, const at::Tensor& targets,
                              const FitNetworkOptions& options = {});

}  // namespace lcp::learning
