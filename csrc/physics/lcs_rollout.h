// Rollouts of systems whose steps are linear complementarity systems, in one call of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "lcp/simulate_lcs.h"
#include "lcp/solve.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// Whether lcp::_rollout solves a step as lcp::solve does with these options: else the rollout is a loop over
/// lcp::solve.
bool can_roll_out(const SolveOptions& options);

/// A matrix of numbers [..., rows, columns], of tensors [...] that are broadcast, row after row.
at::Tensor matrix_of_entries(std::initializer_list<std::initializer_list<at::Tensor>> rows);

/// x: [batch..., k], the first state. inputs.u: [steps, batch..., m]. Returns tensors [steps, batch..., ...].
LcsRollout roll_out(const LinearComplementaritySystem& system, const at::Tensor& x, const Inputs& inputs,
                    const SolveOptions& options);

}  // namespace lcp::physics
