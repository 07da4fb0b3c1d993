// Linear programs solved by Clp, one solution or all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "linear_program/complementarity_program.h"

namespace lcp::training {

enum class LinearProgramMethod {
  kSimplex,       ///< a vertex of the optimal set, where it has one
  kInteriorPoint  ///< a point inside the optimal set, to some nine digits: predictor-corrector, without crossover
};

enum class LinearProgramStatus { kSolved, kInfeasible, kUnbounded, kStopped };

struct LinearProgramSolution {
  LinearProgramStatus status;
  at::Tensor x;      ///< [p]; without a meaning unless solved
  double objective;  ///< cost'x
};

/// kInteriorPoint takes unknowns that are free, held (lower = upper) or bounded below alone, and tells neither
/// kInfeasible nor kUnbounded from kStopped. Throws c10::Error where an unknown has other bounds.
LinearProgramSolution solve(const LinearProgram& program, LinearProgramMethod method = LinearProgramMethod::kSimplex);

/// All solutions of a linear program, seen in some of its unknowns.
struct OptimalSet {
  at::Tensor lower, upper;  ///< [unknowns], the range of each; infinite where it has no end
  at::Tensor directions;    ///< [dimension, unknowns], orthonormal: the span of all differences of two solutions
};

/// Of the first `unknowns` unknowns of a program that has a solution, by simplex. What varies less than 1e-6 counts as
/// one number.
OptimalSet optimal_set(const LinearProgram& program, std::int64_t unknowns);

}  // namespace lcp::training
