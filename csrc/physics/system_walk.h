// Rollouts of the systems of lcp::_system_walk.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "lcp/solve.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// Tensors [steps, batch..., ...].
struct SystemSteps {
  at::Tensor x_next, z;
  at::Tensor residual, status;
};

/// A system whose steps are formulas (csrc/systems).
struct FormulaSystem {
  std::string name;
  Tensors parameters;  ///< each [..., k]; k parameters, one behind another
  at::Tensor D;        ///< [2, n]

  /// x_next and z in operators of tensors, [steps, batch..., ...], NaN where there is no solution: what a walk is to
  /// compute, and how higher derivatives are found.
  ///   parameters: [..., p]. x: [..., k]. u: [steps, ..., m].
  std::function<Tensors(const at::Tensor& parameters, const at::Tensor& x, const at::Tensor& u)> by_tensors;
};

/// Whether a walk solves a step as lcp::solve does with these options, and has the derivatives that are asked for.
bool can_walk(const FormulaSystem& system, const at::Tensor& x, const at::Tensor& u, const SolveOptions& options);

/// x: [batch..., k], the first state, of the dtype in which the trajectory is computed. u: [steps, batch..., m].
SystemSteps walk(const FormulaSystem& system, const at::Tensor& x, const at::Tensor& u, const SolveOptions& options);

}  // namespace lcp::physics
