// The bootstrap particle filter.
//
//   [GSS] Gordon, Salmond, Smith: Novel approach to nonlinear/non-Gaussian Bayesian state estimation, IEE Proc. F 140,
//         1993.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace lcp::identification {

/// What a filter knows: particles are [b, n, d], n of each of b tracks.
struct FilterModel {
  std::function<at::Tensor(const at::Tensor& particles)> propagate;  ///< one step, noise and all
  /// [b, n], of the data of a step, up to a constant.
  std::function<at::Tensor(const at::Tensor& particles, std::int64_t step)> log_likelihood;
};

struct ParticleFilterOptions {
  /// K of [GSS, sec. 4], [d]: after each resampling component k gets normal noise of K_k n^(-1/d) times the range of
  /// the particles; undefined: none.
  at::Tensor roughening = {};
};

struct ParticleFilter {
  at::Tensor mean;       ///< [steps + 1, b, d], of the weighted particles, before any are resampled
  at::Tensor std;        ///< [steps + 1, b, d], of the same
  at::Tensor distinct;   ///< [steps + 1, b], int64: how many of the first particles still have descendants after the
                         ///< step's resampling; with roughening, of those that the step began with
  at::Tensor effective;  ///< [steps + 1, b], 1 / sum of the squared weights; 0 where no particle explains the datum
  at::Tensor particles;  ///< [b, n, d], in the end
};

/// Weights the particles by the data of each step, 0 to `steps`, and resamples them systematically. Where no particle
/// explains a datum they are kept as they are.
///   start: [b, n, d], float64.
/// A report, without a gradient.
ParticleFilter particle_filter(const FilterModel& model, const at::Tensor& start, std::int64_t steps,
                               at::Generator generator, const ParticleFilterOptions& options = {});

}  // namespace lcp::identification
