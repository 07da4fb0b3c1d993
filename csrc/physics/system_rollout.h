// Rollouts of the systems of csrc/systems in one call of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "lcp/solve.h"
#include "ops/rollout/step_text.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// Tensors [steps, batch..., ...].
struct SystemSteps {
  at::Tensor x_next, z;
  at::Tensor residual, status;
};

/// A system whose steps are formulas.
struct FormulaSystem {
  std::string step;    ///< for lcp::_rollout
  Tensors parameters;  ///< each [..., k]; k parameters, one behind another
  at::Tensor D;        ///< [2, n]
};

/// The text of a step, to which more options may be added.
ops::StepWriter step_writer(std::string_view system, const SolveOptions& options);
/// The options of such a text.
SolveOptions solve_options_of(const ops::StepText& step);

/// Whether lcp::_rollout takes these tensors, and solves a step as lcp::solve does with these options.
bool can_roll_out(const FormulaSystem& system, const at::Tensor& x, const at::Tensor& u, const SolveOptions& options);

/// x: [batch..., k], the first state, of the dtype in which the trajectory is computed. inputs.u: [steps, batch..., m].
SystemSteps roll_out(const FormulaSystem& system, const at::Tensor& x, const Inputs& inputs);

/// The results [steps, batch..., ...] of a rollout in operators of tensors as lcp::_rollout has them.
Tensors steps_behind(Tensors results);

}  // namespace lcp::physics
