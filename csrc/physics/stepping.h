// What the systems share behind their headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "lcp/physics/problem.h"

namespace lcp::physics {

/// A parameter of a number, float64. `name` is for the message where it is out of its range.
at::Tensor positive_parameter(const char* name, double x);
at::Tensor nonnegative_parameter(const char* name, double x);

using Tensors = std::vector<at::Tensor>;

/// Steps a state through time. step(state, k) returns the next state, as many tensors as `state` has, and then whatever
/// is to be recorded. Returns all of it, each stacked: [steps, ...].
Tensors roll(Tensors state, std::int64_t steps, const std::function<Tensors(const Tensors&, std::int64_t)>& step);

/// The states that the steps of a rollout began with: the first, then all but the last of `next`, [steps, ...].
at::Tensor starts(const at::Tensor& first, const at::Tensor& next);

/// Columns side by side, broadcast: [..., n].
at::Tensor vector_of(std::initializer_list<at::Tensor> entries);

/// Vectors above each other, broadcast: [..., rows, columns].
at::Tensor matrix_of(std::initializer_list<at::Tensor> rows);

/// M x for each element: [..., rows].
at::Tensor times(const at::Tensor& M, const at::Tensor& x);

/// Reports, without a gradient.
at::Tensor natural_residual(const Problem& problem, const at::Tensor& z);
at::Tensor natural_residual(const MixedProblem& problem, const at::Tensor& x, const at::Tensor& z);

/// Counts over the first dimension. kinked(ties): [steps, ..., n] to [steps, ...].
RolloutCertificate certify_steps(const Problem& problem, const at::Tensor& z, const at::Tensor& status,
                                 std::optional<double> tolerance,
                                 const std::function<at::Tensor(const at::Tensor& ties)>& kinked);

/// Whether ties can change the velocity at a contact: not where it sticks within its friction cone, gamma = 0 and the
/// last pair (gamma, what is left of the cone) not tied.
///   ties: [..., directions + 1], of one contact. gamma: [...].
at::Tensor kinked_friction(const at::Tensor& ties, const at::Tensor& gamma);

}  // namespace lcp::physics
