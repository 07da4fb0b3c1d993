// Solves linear programs by Clp: one solution, or the set of all solutions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "linear_program/complementarity_program.h"

namespace lcp::training {

enum class LinearProgramMethod {
  kSimplex,       ///< a vertex of the optimal set, where it has one
  kInteriorPoint  ///< a point inside the optimal set, to about nine digits: predictor-corrector, no crossover
};

enum class LinearProgramStatus { kSolved, kInfeasible, kUnbounded, kStopped };

struct LinearProgramSolution {
  LinearProgramStatus status;
  at::Tensor x;      ///< [p]; without a meaning unless solved
  double objective;  ///< cost'x
};

/// Called at every iterate of a method.
///   objective: cost'x; of the interior point method the objective of the dual program.
///   error: the sum of the violations of constraints; of the interior point method the complementarity gap.
using LinearProgramObserver = std::function<void(std::int64_t iteration, double objective, double error)>;

/// kInteriorPoint takes unknowns that are free, fixed (lower = upper) or bounded below only, and reports kStopped where
/// the program is infeasible or unbounded. Throws c10::Error where an unknown has other bounds.
LinearProgramSolution solve(const LinearProgram& program, LinearProgramMethod method = LinearProgramMethod::kSimplex,
                            const LinearProgramObserver& observer = nullptr);

/// The set of all solutions of a linear program, projected onto some of its unknowns.
struct OptimalSet {
  at::Tensor lower, upper;  ///< [unknowns], the range of each; infinite where it has no end
  at::Tensor directions;    ///< [dimension, unknowns], orthonormal: the span of all differences of two solutions
};

/// The optimal set of a program that has a solution, projected onto its first `unknowns` unknowns, by the simplex
/// method. Directions in which the set is narrower than 1e-6 are left out.
OptimalSet optimal_set(const LinearProgram& program, std::int64_t unknowns,
                       const LinearProgramObserver& observer = nullptr);

}  // namespace lcp::training
