// A formulation of the sliding block that has no solution, for `simulate --formulation direct2`.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 2.5.
#pragma once

#include <torch/types.h>

#include "lcp/physics/sliding_block.h"

namespace lcp::training {

/// The second direct formulation [Notes, 2.5] with z = (lambda_plus, lambda_minus, gamma) and
/// w = (v_next+, v_next-, mu m g - lambda_plus - lambda_minus). No entry of M is positive, so that w <= q for every
/// z >= 0, and q = (v*, -v*, mu m g) has a negative entry unless v* = v + dt u / m is 0. lcp::solve therefore reports
/// Status::kInfeasible.
///   v: [...], m/s. u: [...], N.
physics::Problem infeasible_problem(const torch::Tensor& v, const torch::Tensor& u, const physics::SlidingBlock& block);

/// A Farkas vector y [..., 3] of an infeasible_problem: y >= 0, M'y <= 0 and q'y = -|v*|. Where v* is not 0, this
/// proves that no z >= 0 has M z + q >= 0. It has no gradient.
torch::Tensor farkas_vector(const physics::Problem& problem);

/// A step of each element: the solution where v* = 0, elsewhere NaN, with the status of lcp::solve.
physics::SlidingBlockSolution infeasible_step(const physics::Problem& problem, const SolveOptions& options = {});

}  // namespace lcp::training
