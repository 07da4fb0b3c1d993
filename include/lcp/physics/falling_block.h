// A block that falls on a plane, stepped in time as an LCP with one unknown.
//
//   x_next = x + dt v_next,   v_next = v + dt (lambda / m - g),   0 <= x_next  perp  lambda >= 0
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 1.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

struct LCP_API FallingBlock {
  at::Tensor mass;     ///< kg, > 0
  at::Tensor dt;       ///< s, > 0
  at::Tensor gravity;  ///< m/s^2, >= 0

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static FallingBlock of(double mass, double dt, double gravity);
};

/// The result of a step; each member [...].
struct FallingBlockStep {
  at::Tensor x_next;  ///< m, height above the plane
  at::Tensor v_next;  ///< m/s, upwards
  at::Tensor lambda;  ///< N, the contact force over the step
};

using FallingBlockSolution = Solution<FallingBlockStep>;

/// The closed form x_next = max(0, x + dt v - g dt^2).
///   x: [...], m, >= 0. v: [...], m/s.
LCP_API FallingBlockStep exact_step(const at::Tensor& x, const at::Tensor& v, const FallingBlock& block);

/// z = x_next, w = lambda, M = m / dt^2 > 0, q = -(m / dt^2) (x + dt v - g dt^2). The solution is unique.
LCP_API Problem direct_problem(const at::Tensor& x, const at::Tensor& v, const FallingBlock& block);

/// z, w: [..., 1], a solution of direct_problem for x and v.
LCP_API FallingBlockStep read_direct(const at::Tensor& x, const at::Tensor& v, const at::Tensor& z, const at::Tensor& w,
                                     const FallingBlock& block);

/// One step of each element of the batch.
LCP_API FallingBlockSolution step(const at::Tensor& x, const at::Tensor& v, const FallingBlock& block,
                                  const SolveOptions& options = {});

/// Many steps; returns tensors [steps, ...]. An impact takes two steps: the first ends at x = 0 with the velocity that
/// reaches it, the second at rest.
LCP_API FallingBlockSolution simulate(const at::Tensor& x, const at::Tensor& v, std::int64_t steps,
                                      const FallingBlock& block, const SolveOptions& options = {});

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments; `tolerance` as in lcp::certify.
LCP_API RolloutCertificate certify_rollout(const at::Tensor& x, const at::Tensor& v, const FallingBlock& block,
                                           const FallingBlockSolution& rollout, std::optional<double> tolerance = {});

}  // namespace lcp::physics
