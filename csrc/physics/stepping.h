// What the systems share behind their headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

/// A parameter of a number, float64. `name` is for the message where it is out of its range.
at::Tensor positive_parameter(const char* name, double x);
at::Tensor nonnegative_parameter(const char* name, double x);

using Shape = std::vector<std::int64_t>;
using Tensors = std::vector<at::Tensor>;

/// What shapes broadcast to.
Shape common_shape(std::initializer_list<at::IntArrayRef> shapes);

/// x.sizes() without the last `count` dimensions.
at::IntArrayRef leading(const at::Tensor& x, std::int64_t count = 1);

/// x, [..., last...], expanded to the batch.
at::Tensor expanded(const at::Tensor& x, const Shape& batch, std::initializer_list<std::int64_t> last = {});

/// Inputs of a rollout, [steps, ..., last...], expanded to [steps, batch..., last...]. `expected` is for the message
/// where there is no dimension of steps.
at::Tensor expanded_inputs(const at::Tensor& u, const Shape& batch, const char* expected,
                           std::initializer_list<std::int64_t> last = {});

/// Columns side by side, broadcast: [..., n].
at::Tensor vector_of(std::initializer_list<at::Tensor> entries);

/// Vectors above each other, broadcast: [..., rows, columns].
at::Tensor matrix_of(std::initializer_list<at::Tensor> rows);

/// d_j.a for the columns d_j of D, [2, n], and sum_j z_j d_j: [..., n] and [..., 2]. Not by matmul, whose bits depend
/// on the size of the batch.
at::Tensor along(const at::Tensor& a, const at::Tensor& D);
at::Tensor combined(const at::Tensor& z, const at::Tensor& D);

/// sign(x) max(|x| - limit, 0), and x where the limit is 0, with that derivative at x = 0 too.
at::Tensor softened(const at::Tensor& x, const at::Tensor& limit);

/// x, and 0 where `still`, with the derivative 0; or that of x where the derivative is the smooth one of kappa > 0.
at::Tensor held(const at::Tensor& still, const at::Tensor& x, const SolveOptions& options);

/// Options for a polyhedral friction cone: where a contact sticks within its cone, directions in which it carries
/// nothing tie, and yet it holds them.
SolveOptions held_by_ties(SolveOptions options);

/// A step's LCP, solved.
struct Solved {
  SolveResult result;
  Tensors extras;  ///< what else is to be recorded, and what the step needs again
};

/// How a system steps; a state is some tensors of its batch.
struct Stepping {
  /// Solves the step's problem. `poison`, where it is defined, is to be added to q: [...], NaN for elements that have
  /// failed before, else 0.
  std::function<Solved(const Tensors& state, const at::Tensor& u, const at::Tensor& poison)> solve;

  /// The state that the step ends with.
  std::function<Tensors(const Tensors& state, const at::Tensor& u, const Solved& solved)> advance;
};

/// Steps stacked: each [steps, ...].
struct Rolled {
  Tensors starts;  ///< the states that the steps began with
  Tensors ends;
  at::Tensor u;
  SolveResult result;
  Tensors extras;
  at::Tensor failure;  ///< undefined where all is solved; else NaN where it is not, with the derivative of what failed
};

/// Steps states, [batch..., ...], through time under inputs u, [steps, batch..., ...]. Where an element fails, or its
/// state or input is no number, Rolled holds finite numbers, so that what is read from them cannot carry a NaN into the
/// gradient of a parameter that others share; `failure` tells which those are.
Rolled roll(Tensors state, at::Tensor u, const Shape& batch, const Stepping& stepping);

/// x, and the NaN of failure where there is one, unless x is of integers; `failure` as in Rolled.
at::Tensor with_failures(const at::Tensor& x, const at::Tensor& failure);

/// The states that the steps of a rollout began with: the first, then all but the last of `next`, [steps, ...].
at::Tensor starts_of(const at::Tensor& first, const at::Tensor& next);

/// Reports, without a gradient.
at::Tensor natural_residual(const Problem& problem, const at::Tensor& z);
at::Tensor natural_residual(const MixedProblem& problem, const at::Tensor& x, const at::Tensor& z);

/// What to certify beside the problem.
struct Certifying {
  std::optional<double> tolerance;

  /// [..., n], whether ties can change the next state, by ties [..., n].
  std::function<at::Tensor(const at::Tensor& ties)> kinked;

  /// For rows with nothing but their diagonal, of which lcp::certify cannot see how much q has cancelled: the sum of
  /// the sizes of the terms of q, [..., n]; less than 0 for other rows. Undefined: there are none.
  at::Tensor terms;
};

/// Counts over the first dimension.
RolloutCertificate certify_steps(const Problem& problem, const at::Tensor& z, const at::Tensor& status,
                                 const Certifying& certifying);

/// `tolerance`, or what the derivative takes for rounding.
double tie_tolerance(std::optional<double> tolerance, at::ScalarType dtype);

/// Whether ties can change the velocity at a contact that slides at gamma under friction of size `force`, of at most
/// `limit`. Not where it sticks within its cone. But always where it slides without friction, which the least of it
/// ends.
///   ties: [..., pairs], of this contact. force, limit, gamma: [...].
at::Tensor kinked_friction(const at::Tensor& ties, const at::Tensor& force, const at::Tensor& limit,
                           const at::Tensor& gamma, double tolerance);

/// The size of a force f, [..., 2], as the polygon of n directions measures it: f is within the polygon of size s where
/// this is at most s.
at::Tensor polygon_size(const at::Tensor& f, std::int64_t n);

/// Whether a contact sticks: [...]. Not where there is no friction to hold it, though its velocity be 0.
///   z, w: [..., n + 1], the pairs of this contact, the last of them (gamma, what is left of the cone).
at::Tensor sticks(const at::Tensor& z, const at::Tensor& w);

/// Throws c10::Error.
[[noreturn]] void unknown_formulation();

}  // namespace lcp::physics
