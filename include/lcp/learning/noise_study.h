// What errors in M and q do to the friction of a sliding block.
//
//   [Notes] Pfrommer: LCP Notes, 2019, sections 3.2, 3.2.1 and 3.2.2.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace lcp::learning {

struct Solutions {
  at::Tensor z;      ///< [2^n, ..., n], that of each basis, of use where found; bit i of its index: w_i = 0, else z_i
  at::Tensor found;  ///< [2^n, ...], bool: whether it solves the LCP, and no basis before it has the same z
};

/// Every solution of w = M z + q, 0 <= z perp w >= 0 at a nonsingular complementary basis [CPS, sec. 1.3], where
/// lcp::solve returns one: for random M and q these are all there are. Where a basis is singular, solutions of it may
/// be missing, such as the splits of a sticking force between the two that are vertices.
///   M: [..., n, n], q: [..., n], float32 or float64, 1 <= n <= 10; their batch dimensions broadcast.
///   tolerance: z_i and w_i count as >= 0 from -tolerance max_i |q_i|, and rows as satisfied and solutions as equal
/// within as much. Absent: 1e-9 in float64, 1e-4 in float32.
/// Throws c10::Error where a shape or a dtype does not fit. A report, without a gradient.
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
/// The velocity without friction v* enters as q = (v*, -v*, F): s = 0 and b = v*. An error with s > 0 is a dead zone
/// that friction leaves to the velocity; one with s < 0 is taken up by gamma, and no velocity shows it.
/// F < 0: there is no solution; both are NaN, with the gradient 0. F = 0: the least gamma. Differentiable; where s = 0,
/// as for the right q, with the derivative that lcp::solve has.
///   q: [..., 3]: m/s, m/s, N. c: [...], dt / m > 0.
/// Throws c10::Error where q has another shape.
BiasedFriction biased_friction(const at::Tensor& q, const at::Tensor& c);

}  // namespace lcp::learning
