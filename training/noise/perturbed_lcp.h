// All solutions of an LCP with errors in M and q, and the friction force that errors in q alone give a sliding block.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.2, 3.2.1 and 3.2.2.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace lcp::training {

/// One candidate solution for each complementary basis. Where bit i of a basis' index is set, z_i is basic and w_i = 0;
/// elsewhere w_i is basic and z_i = 0.
struct Solutions {
  at::Tensor z;      ///< [2^n, ..., n], without a meaning where `found` is false
  at::Tensor found;  ///< [2^n, ...], bool: z solves the LCP, and no earlier basis has the same z
};

/// Every solution of w = M z + q, 0 <= z perp w >= 0 at a nonsingular complementary basis [CPS, sec. 1.3]. lcp::solve
/// cannot replace this enumeration, since it returns one solution, and the study counts them. For random M and q there
/// are no others. Solutions at a singular basis may be missing, such as a sticking force whose split into lambda_plus
/// and lambda_minus lies between two vertices.
///   M: [..., n, n], q: [..., n], float32 or float64, 1 <= n <= 10; their batch dimensions broadcast.
///   tolerance: relative to max_i |q_i|. z_i and w_i may be negative and rows may be violated by this much, and
/// solutions that differ by less count as one. Absent: 1e-9 in float64, 1e-4 in float32.
/// Throws c10::Error where a shape or a dtype does not fit. The result has no gradient.
Solutions all_solutions(const at::Tensor& M, const at::Tensor& q, std::optional<double> tolerance = {});

struct BiasedFriction {
  at::Tensor force;  ///< [...], lambda_plus - lambda_minus
  at::Tensor gamma;  ///< [...], the slack velocity
};

/// The solution of the traditional friction LCP [Notes, 2.6] with its own matrix and any vector,
///
///   M = [c -c 1; -c c 1; -1 -1 0],   q = (q_1, q_2, F),   z = (lambda_plus, lambda_minus, gamma).
///
/// With the mean s = (q_1 + q_2) / 2 and half the difference b = (q_1 - q_2) / 2,
///
///   force = -sign(b) min(max(|b| - max(s, 0), 0) / c, F)
///   gamma = max(-s, 0) + max(|b| - max(s, 0) - c F, 0).
///
/// Without errors q = (v*, -v*, F) with the frictionless velocity v*, so that s = 0 and b = v*. With an error
/// s > 0, a block with |b| < s gets no friction. An error s < 0 changes gamma but no velocity.
/// Where F < 0 there is no solution: both results are NaN, and their gradient is 0. Where F = 0, gamma is the smallest
/// that solves the LCP. Where s = 0, as without errors, the derivative is that of lcp::solve.
///   q: [..., 3]: m/s, m/s, N. c: [...], dt / m > 0.
/// Throws c10::Error where q has another shape.
BiasedFriction biased_friction(const at::Tensor& q, const at::Tensor& c);

}  // namespace lcp::training
