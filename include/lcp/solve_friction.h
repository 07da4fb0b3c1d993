// Rigid contact with Coulomb friction, as a differentiable, batched operator.
//
//   A (v - v_free) = J' gamma,   u = J v + b,   and for each contact, with its cone K = {|x_t| <= mu x_n},
//   gamma in K,   u + mu |u_t| e_n in the dual cone K*,   the two orthogonal [DSF]
//
// so that a contact takes off (gamma = 0, u_n >= 0), sticks (u = 0) or slides (u_n = 0, friction mu gamma_n against
// u_t). For b = (0, 0, gap / dt) a contact may close its gap within the step; for b = (0, 0, e u_n) with the normal
// velocity u_n before an impact it bounces with the restitution e.
//
// Beside the contacts there may be k rows, constraints in one dimension with impulses h and velocities s:
//
//   A (v - v_free) = J' gamma + H' h,   s = H v + c,   lower <= h <= upper,
//   s >= 0 where h = lower,   s <= 0 where h = upper,   s = 0 between
//
// With the interval [0, inf] a row is a stop, such as the limit of a joint; with [-r, r] dry friction, or a motor that
// holds a velocity as long as its force suffices; with [-inf, inf] an equation, such as a joint that closes a loop.
//
//   [DSF] De Saxce, Feng: The bipotential method, Mathematical and Computer Modelling 28, 1998.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/status.h"

namespace lcp {

/// k rows, whose tensors have A's dtype and device. Their batch dimensions broadcast with those of the contacts.
struct FrictionRows {
  at::Tensor H;            ///< [..., k, n]
  at::Tensor offset = {};  ///< [..., k], c, in the unit of H v; undefined: 0
  at::Tensor lower;        ///< [..., k], the least impulses; -infinity for none
  at::Tensor upper;        ///< [..., k], the largest impulses, >= lower; infinity for none
};

struct FrictionOptions {
  /// [...], int64, on A's device: the number of contacts of each element; they are the first ones of the c. Each
  /// element gets the bits, also of its gradient, that it would get alone with its own contacts. Inputs of contacts
  /// beyond them are not read; gamma and the gradients are 0 there. lcp::pad makes such batches. Absent: c.
  std::optional<at::Tensor> sizes = {};

  /// If kappa > 0, the gradient is that of a nearby point, while v and gamma stay exact. At this point each contact has
  /// gamma_n u_n = kappa and gamma_t = -mu^2 gamma_n u_t / sqrt(u_n^2 + mu^2 |u_t|^2). The gradient is smooth, and it
  /// sees contacts that are not made yet, which push with kappa / u_n. Its error is proportional to kappa where the
  /// exact gradient exists. kappa is in N s times m/s, J. Where Newton's method finds no such point, the gradient is
  /// NaN.
  double kappa = 0.0;

  /// An element is solved where g_k = d_k gamma_k and u_k of each contact k obey Coulomb's law after changes of at most
  /// e, the tolerance times the largest of |J v_free + b|, m/s. d_k is the mean of the diagonal of the contact's block
  /// of J A^-1 J', so that g_k is a velocity, too. With this error e in place of 0,
  ///   - no contact penetrates: u_n >= -e, nor pulls: g_n >= -e, nor pushes what it leaves: |g| <= e or |u_n| <= e;
  ///   - no impulse is outside the cone: its distance to the cone is at most e;
  ///   - a contact that presses sticks, |u_t| <= e, or slides: g is within e of the ray (-mu u_t / |u_t|, 1), or g is
  ///     within e of the cone's surface and the part of u_t across g_t is at most e.
  /// None of these grows or shrinks with mu. Bodies may move so much faster than they approach each other that the
  /// rounding errors of J v + b exceed the tolerance. Then e is 16 times 2^-52 times the largest |J| |v_free| + |b|,
  /// m/s. All this holds in double precision, before results are rounded to the dtype. Absent: 1e-10 in float64, 1e-7
  /// in float32.
  std::optional<double> tolerance = {};

  /// Newton steps that one element of the batch may take, by all methods together. Absent: no limit; an element that
  /// no method solves takes some 10,000.
  std::optional<std::int64_t> max_iterations = {};

  /// Constraints beside the contacts, which may also be none (c = 0). With rows, gamma is [..., 3 c + k]: the impulses
  /// h follow those of the contacts. An element is solved where also d h and s of each row obey its law after changes
  /// of at most e sqrt(d / D), where d is the diagonal entry of H A^-1 H' and D the largest d_k of the contacts, or 1
  /// without contacts. The velocities of e are those of contacts, and s sqrt(D / d) of rows, so that the unit of a row
  /// does not matter; where an interval does not contain 0, its least impulse acts on v_free. v and gamma are
  /// differentiable in the rows, too. An interval whose impulse just reaches a bound counts as without slip, a row with
  /// one bound and no impulse as at this bound. Without sizes and kappa.
  std::optional<FrictionRows> rows = {};

  /// [..., 3 c], N s, of A's dtype and device, with rows [..., 3 c + k]: impulses to start from, for example gamma of
  /// the last time step. Where there are several solutions, another may be found. Absent, or where it is not finite: 0.
  std::optional<at::Tensor> guess = {};
};

struct FrictionResult {
  at::Tensor v;  ///< [..., n], m/s; NaN where not solved
  at::Tensor
      gamma;  ///< [..., 3 c], N s, impulses (t1, t2, n) of each contact, then h of the rows; NaN where not solved
  /// [...], int8: kSolved; kNotFound; kInfeasible where it is proved that every v up to some 1e5 times the given
  /// velocities makes a contact penetrate; kPivotLimit where max_iterations ran out; or kBadInput.
  at::Tensor status;
  at::Tensor iterations;  ///< [...], int64, Newton steps
};

/// Solves one problem for each element of a batch. Elements are independent: the same inputs give the same bits for any
/// number of threads, batch size and position in the batch. If most entries of A and J are 0, the factorisations are
/// sparse.
///
///   A: [..., n, n], kg in the coordinates of v: symmetric and positive definite, float32 or float64, any strides; n
///   may be 0. v_free: [..., n], m/s, the velocity without contact. J: [..., 3 c, n], of each contact the rows of
///   (t1, t2, n), so that J v is its velocity; c may be 0, and contacts may be redundant. b: [..., 3 c], m/s. mu:
///   [..., c], >= 0; infinity for a contact that never slips. The batch dimensions of all of them broadcast.
///
/// With mu = infinity a contact that presses sticks, and its friction is not limited. Where a contact would have to
/// pull to stick, the result is the limit of the solutions for growing mu: gamma_n = 0 up to round-off, with friction
/// against the slip. The method computes with at most mu = 1e13; the derivative in a mu from there on is 0.
///
/// A and A' may differ by 1e-3 of the largest entry; their mean is used. The status is kBadInput for larger
/// differences, for numbers that are not finite (but for mu) or out of their range, and where A is not positive
/// definite.
///
/// v and gamma are differentiable in all five, any number of times, in reverse and forward mode, by the implicit
/// function theorem for contacts that go on to stick, slide or be apart. Between two of these, a contact without
/// impulse, up to round-off, counts as apart. A contact whose friction just reaches its limit counts as sticking.
///
/// Redundant contacts may leave gamma undetermined (rank < 3 c of lcp::certify_friction). Its derivative is then the
/// least change of gamma; v does not depend on that choice. The gradients in b, J and what these are computed from then
/// hold only for changes that keep the redundant contacts consistent. For other changes no derivative exists, and a
/// least-squares value is returned. The gradients in the mu of single contacts depend on how gamma is split between
/// them.
///
/// Where v itself is not unique (lcp::certify_friction), the derivative is one of many. The gradient of an element that
/// is not solved is 0 where its incoming gradient is 0, else NaN.
///
/// Throws c10::Error, before any work, for other shapes, dtypes, devices or options.
LCP_API FrictionResult solve_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                      const at::Tensor& b, const at::Tensor& mu, const FrictionOptions& options = {});

}  // namespace lcp
