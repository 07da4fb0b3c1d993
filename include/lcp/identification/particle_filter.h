// The bootstrap particle filter.
//
//   [GSS] Gordon, Salmond, Smith: Novel approach to nonlinear/non-Gaussian Bayesian state estimation, IEE Proc. F 140,
//         1993.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "lcp/export.h"

namespace lcp::identification {

/// The model of a filter. Particles are [b, n, d]: for each of b tracks n particles with d components.
struct FilterModel {
  std::function<at::Tensor(const at::Tensor& particles)> propagate;  ///< one step, including the process noise
  /// The log-likelihood of the data of a step, up to a constant: [b, n].
  std::function<at::Tensor(const at::Tensor& particles, std::int64_t step)> log_likelihood;
};

struct ParticleFilterOptions {
  /// K of [GSS, sec. 4], [d]. After each resampling, component k gets normal noise whose standard deviation is K_k
  /// n^(-1/d) times the range of that component over the particles. Undefined: no noise.
  at::Tensor roughening = {};
};

struct ParticleFilter {
  at::Tensor mean;  ///< [steps + 1, b, d], of the weighted particles before resampling
  at::Tensor std;   ///< [steps + 1, b, d], their standard deviation
  /// [steps + 1, b], int64: how many of the particles of the start have descendants after the resampling of the step;
  /// with roughening, how many of the particles before that step.
  at::Tensor distinct;
  /// [steps + 1, b], 1 / sum of the squared weights, where equal particles count as one with the sum of their weights;
  /// 0 where every likelihood is 0.
  at::Tensor effective;
  at::Tensor particles;  ///< [b, n, d], after the last step
};

/// Weights the particles by the likelihood of the data of each step, 0 to `steps`, and resamples them systematically.
/// If every likelihood of a track is 0, its particles are kept.
///   start: [b, n, d], float64.
/// The result has no gradient. Throws c10::Error where a shape or a dtype does not fit.
LCP_API ParticleFilter particle_filter(const FilterModel& model, const at::Tensor& start, std::int64_t steps,
                                       at::Generator generator, const ParticleFilterOptions& options = {});

}  // namespace lcp::identification
