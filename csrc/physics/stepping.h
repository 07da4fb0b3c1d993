// Helpers of the systems' implementations: shapes, friction polygons, rollouts and their certificates.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lcp/feedback.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

/// x, or x as a float64 tensor []. Throws c10::Error with `name` in the message where x is out of its range.
double positive_number(const char* name, double x);
at::Tensor positive_parameter(const char* name, double x);
at::Tensor nonnegative_parameter(const char* name, double x);

/// x, a parameter, with NaN in place of the numbers that are not > 0, not >= 0, or not in [0, 1]: what is computed of
/// these is NaN, and the status is that of bad input.
at::Tensor positive_or_nan(const at::Tensor& x);
at::Tensor nonnegative_or_nan(const at::Tensor& x);
at::Tensor share_or_nan(const at::Tensor& x);

/// u, [steps, batch..., ...], with NaN for the elements of which a parameter, [...], is NaN: their status is then that
/// of bad input also in steps that do not depend on the parameter.
///   core_dims: the dimensions of u behind those of the batch.
at::Tensor refused_where_nan(const at::Tensor& parameter, const at::Tensor& u, std::int64_t core_dims);

using Shape = std::vector<std::int64_t>;
using Tensors = std::vector<at::Tensor>;

/// Whether the numbers of x can be read: not where x stands for other tensors, as those of torch.func and of
/// torch.compile do, nor on the meta device. What would be decided by them is then computed for all elements.
bool can_read(const at::Tensor& x);

/// The numbers of x, under torch.func those of all elements that torch.vmap maps.
at::Tensor without_transforms(at::Tensor x);

/// Whether a mask is true somewhere, or may be, since it cannot be read.
bool may_be_true(const at::Tensor& mask);

/// u, [steps, ..., k], the inputs of a rollout, replaced by NaN for elements that may not be stepped, mask [...]: their
/// status is then that of bad input. For what throws an error where it can be read.
at::Tensor refused_where(const at::Tensor& mask, const at::Tensor& u);

/// The numbers as a tensor [n]. at::tensor cannot make one under torch.func and torch.compile.
at::Tensor constants(std::initializer_list<double> numbers, const at::TensorOptions& options);

/// The shape to which these shapes broadcast.
Shape common_shape(std::initializer_list<at::IntArrayRef> shapes);

/// x.sizes() without the last `count` dimensions.
at::IntArrayRef leading(const at::Tensor& x, std::int64_t count = 1);

/// x, [..., last...], expanded to the batch.
at::Tensor expanded(const at::Tensor& x, const Shape& batch, std::initializer_list<std::int64_t> last = {});

/// Inputs of a rollout, [steps, ..., last...], expanded to [steps, batch..., last...]. Throws c10::Error, with
/// `expected` in the message, where there is no dimension of steps.
at::Tensor expanded_inputs(const at::Tensor& u, const Shape& batch, const char* expected,
                           std::initializer_list<std::int64_t> last = {});

/// The vectors [..., n] of n entries [...], which are broadcast.
at::Tensor vector_of(std::initializer_list<at::Tensor> entries);

/// The matrices [..., rows, columns] of rows [..., columns], which are broadcast.
at::Tensor matrix_of(std::initializer_list<at::Tensor> rows);

/// M x, [..., rows], for M [..., rows, columns], and a x b, [..., 3]; all arguments broadcast. The rounding of matvec
/// does not depend on the size of the batch, as that of at::matmul does.
at::Tensor matvec(const at::Tensor& M, const at::Tensor& x);
at::Tensor cross_product(const at::Tensor& a, const at::Tensor& b);

/// The solution [..., 3] of A x = b by Cramer's rule, for A [..., 3, 3].
at::Tensor solve_3x3(const at::Tensor& A, const at::Tensor& b);

/// d_j.a, [..., n], and sum_j z_j d_j, [..., 2], for the columns d_j of D, [2, n]. They do not use at::matmul, since
/// its rounding depends on the size of the batch.
at::Tensor along(const at::Tensor& a, const at::Tensor& D);
at::Tensor combined(const at::Tensor& z, const at::Tensor& D);

/// max(x, 0), whose derivative at 0 is 1. That of at::clamp_min at its bound depends on the version of PyTorch: it is 1
/// up to 2.13 and 0 since 2.14.
at::Tensor positive_part(const at::Tensor& x);

/// sign(x) max(|x| - limit, 0). Where the limit is 0 it is x, so that the derivative at x = 0 is 1.
at::Tensor soft_threshold(const at::Tensor& x, const at::Tensor& limit);

/// x, replaced by 0 where `still` is true. Its derivative is 0 there, too, unless options.kappa > 0 asks for the smooth
/// derivative of the central path: then it is the derivative of x.
at::Tensor held(const at::Tensor& still, const at::Tensor& x, const SolveOptions& options);

/// Throws c10::Error where there is no such rule for the derivative at ties.
void check_ties(std::string_view ties);

/// The options with which a polyhedral friction cone is solved. Where a contact sticks, the pairs of the directions
/// without a force are tied, but the contact does not move in these directions either; ties = "active" says so.
SolveOptions held_by_ties(SolveOptions options);

/// The inputs of a rollout and, where it has one, a feedback of its state.
struct Inputs {
  at::Tensor u;  ///< [steps, batch..., ...], m numbers in each step

  // Undefined without a feedback. Their batch dimensions broadcast against those of u.
  at::Tensor K;          ///< [steps, ..., m, k]
  at::Tensor reference;  ///< [steps, ..., k]

  Inputs(at::Tensor given) : u(std::move(given)) {}  // NOLINT(google-explicit-constructor): there is no feedback then

  /// A part of a reference, with its name in messages and its size behind the dimensions of u.
  struct Part {
    const char* name;
    at::Tensor x;
    std::int64_t size;
  };

  /// u, [steps, batch..., m], whose batch is extended by that of the feedback. Throws c10::Error where a shape does not
  /// fit.
  Inputs(const at::Tensor& given, const at::Tensor& gains, std::initializer_list<Part> parts);

  /// The inputs of a step that begins with this state, [batch..., ...] each.
  at::Tensor at(std::int64_t step, const Tensors& state) const;

  /// The feedback as lcp::_rollout takes it, of a state with `size` numbers. K does not read those behind its own.
  Tensors feedback(std::int64_t size) const;
};

/// u, [steps, batch..., m], with the feedback of a state of one tensor, or of a pose and a velocity, each [..., size].
template <class State>
Inputs with_feedback(const at::Tensor& u, const std::optional<Feedback<State>>& feedback, std::int64_t size,
                     const char* pose_name = "position of the reference") {
  if (!feedback) return u;
  if constexpr (std::is_same_v<State, at::Tensor>) {
    return {u, feedback->K, {{"reference", feedback->reference, size}}};
  } else {
    const auto& [pose, velocity] = feedback->reference;
    return {u, feedback->K, {{pose_name, pose, size}, {"velocity of the reference", velocity, size}}};
  }
}

/// The solution of the LCP of one step.
struct Solved {
  SolveResult result;
  Tensors extras;  ///< further tensors to record for each step, which `advance` may read
};

/// How a system steps. Its state is a list of tensors [batch..., ...].
struct StepFunctions {
  /// Solves the problem of a step. `poison`, [...], is NaN for elements that have failed in an earlier step, else 0;
  /// where it is defined, it must be added to q.
  std::function<Solved(const Tensors& state, const at::Tensor& u, const at::Tensor& poison)> solve;

  /// The state at the end of the step.
  std::function<Tensors(const Tensors& state, const at::Tensor& u, const Solved& solved)> advance;
};

/// A rollout; every tensor is [steps, ...].
struct Rollout {
  Tensors starts;  ///< the states before the steps
  Tensors ends;    ///< the states after them
  at::Tensor u;    ///< what acted in them
  SolveResult result;
  Tensors extras;
  at::Tensor failure;  ///< undefined if every step was solved; else NaN where it was not, connected to the gradient
};

/// Steps states, [batch..., ...], through time. Where a step fails, or where the state, the input or the feedback of an
/// element is not finite, Rollout holds finite numbers in place of the solution, so that no NaN enters the gradient of
/// a parameter that several elements share. Rollout::failure marks these elements.
Rollout roll_out(Tensors state, Inputs inputs, const Shape& batch, const StepFunctions& functions);

/// x, replaced by NaN where Rollout::failure is NaN. Tensors of integers are returned as they are.
at::Tensor with_failures(const at::Tensor& x, const at::Tensor& failure);

/// The states before the steps of a rollout: `first`, then all but the last of `next`, [steps, ...].
at::Tensor starts_of(const at::Tensor& first, const at::Tensor& next);

/// The natural residual [...] of a solution, and for a mixed problem the residual of its equations as well. It has no
/// gradient.
at::Tensor natural_residual(const Problem& problem, const at::Tensor& z);
at::Tensor natural_residual(const MixedProblem& problem, const at::Tensor& x, const at::Tensor& z);

/// Which pairs certify_steps counts as tied, and which ties as a kink of the next state.
struct CertificateOptions {
  std::optional<double> tolerance;  ///< that of lcp::certify

  /// Returns whether the ties, [..., n], bool, can change the next state: [...].
  std::function<at::Tensor(const at::Tensor& ties)> kinked;

  /// lcp::certify compares w_i with |q_i| + sum_j |M_ij z_j|. Where row i of M has no entry off the diagonal and z_i =
  /// 0, that is |q_i| alone, which does not show that q_i is the sum of large terms that nearly cancel. For such rows
  /// terms, [..., n], is the sum of the absolute values of the terms of q_i, with which q_i is compared, too; for all
  /// other rows it is negative. Undefined where there are no such rows.
  at::Tensor terms;
};

/// Counts the steps, which are the first dimension of all tensors.
RolloutCertificate certify_steps(const Problem& problem, const at::Tensor& z, const at::Tensor& status,
                                 const CertificateOptions& options);

/// `tolerance`, or by default the relative rounding error below which the derivative of lcp::solve takes a pair for
/// tied.
double tie_tolerance(std::optional<double> tolerance, at::ScalarType dtype);

/// Whether ties can change the velocity of a contact, [...]. While it sticks strictly inside its cone they cannot.
/// While it slides without friction they always can, since the smallest friction force decelerates it.
///   ties: [..., pairs], the ties of this contact. force: [...], N, the size of the friction force, which is at most
///   limit: [...], N. gamma: [...], m/s, the slip speed.
at::Tensor kinked_friction(const at::Tensor& ties, const at::Tensor& force, const at::Tensor& limit,
                           const at::Tensor& gamma, double tolerance);

/// The norm of a force f, [..., 2], whose unit ball is the polygon of n directions: f is within the polygon of size s
/// exactly if this norm is at most s.
at::Tensor polygon_size(const at::Tensor& f, std::int64_t n);

/// Whether a contact sticks: [...]. A contact without friction does not stick, even where its velocity is 0.
///   z, w: [..., n + 1], the pairs of this contact; in the last one, z is gamma and w is the unused part of the
///   friction limit.
at::Tensor sticks(const at::Tensor& z, const at::Tensor& w);

/// Throws c10::Error.
[[noreturn]] void unknown_formulation();

}  // namespace lcp::physics
