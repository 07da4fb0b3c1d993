// The operators of compliant contact.
#pragma once

#include "ops/solve/operators.h"

namespace lcp::ops {

// The dimensions are n velocities, c contacts with three rows each, and e equality constraints.
inline constexpr Argument kMass = matrix("Tensor A");
inline constexpr Argument kFreeVelocity = vector("Tensor v_free");
inline constexpr Argument kJacobian = tensor("Tensor J", "3c n");
inline constexpr Argument kStabilisation = tensor("Tensor v_hat", "3c");
inline constexpr Argument kRegularization = tensor("Tensor R", "3c");
inline constexpr Argument kFriction = tensor("Tensor mu", "c");
inline constexpr Argument kStart = vector("Tensor? guess=None");
inline constexpr Argument kMaxIterations = flag("int? max_iterations=None", check_count);

/// The tolerance for both dtypes, since Newton's method always runs in double precision.
inline constexpr double kContactTolerance = 1e-10;

/// See lcp/solve_contact.h.
inline constexpr Operator kSolveContact(
    "solve_contact", Operator::Kind::kComposite,
    {kMass, kFreeVelocity, kJacobian, kStabilisation, kRegularization, kFriction, kSizes, kStart, kTolerance,
     kMaxIterations},
    {{"v", "n"}, {"gamma", "3c"}, {"status", "", at::kChar}, {"iterations", "", at::kLong}});

/// See lcp/certify_contact.h.
inline constexpr Operator kCertifyContact("certify_contact", Operator::Kind::kNotDifferentiable,
                                          {kMass, kFreeVelocity, kJacobian, kStabilisation, kRegularization, kFriction,
                                           vector("Tensor v"), kSizes},
                                          {{"residual", ""}, {"margin", ""}, {"condition", ""}});

/// See lcp/add_equality.h.
inline constexpr Operator kAddEquality("add_equality", Operator::Kind::kComposite,
                                       {kMass, kFreeVelocity, tensor("Tensor J", "e n"), tensor("Tensor v_hat", "e"),
                                        tensor("Tensor R", "e")},
                                       {{"A", "n n"}, {"v_free", "n"}});

/// See lcp/add_equality.h.
inline constexpr Operator kEqualityImpulses("equality_impulses", Operator::Kind::kComposite,
                                            {tensor("Tensor J", "e n"), tensor("Tensor v_hat", "e"),
                                             tensor("Tensor R", "e"), vector("Tensor v")},
                                            {{"gamma", "e"}});

/// See lcp/contact_dual.h.
inline constexpr Operator kContactDual("contact_dual", Operator::Kind::kComposite,
                                       {kMass, kFreeVelocity, kJacobian, kStabilisation, kRegularization},
                                       {{"H", "3c 3c"}, {"r", "3c"}});

/// See lcp/contact_parameters.h.
inline constexpr Operator kDelassusDiagonal("delassus_diagonal", Operator::Kind::kComposite, {kMass, kJacobian},
                                            {{"delassus", "c"}});

/// See lcp/contact_parameters.h. The numbers of all contacts broadcast as batch dimensions do.
inline constexpr Operator kContactParameters("contact_parameters", Operator::Kind::kComposite,
                                             {tensor("Tensor gap", ""), tensor("Tensor stiffness", ""),
                                              tensor("Tensor dissipation", ""), tensor("Tensor delassus", ""),
                                              flag("float dt", check_positive),
                                              flag("float sigma=1e-3", check_positive),
                                              flag("float beta=1.0", check_nonnegative)},
                                             {{"v_hat", "3c"}, {"R", "3c"}});

/// v, y and gamma, all three with derivatives, status and iterations. y tells the derivative the state of each contact.
/// It is a result, since y = R^-1 (v_hat - J v) would have few correct digits for a v in float32.
inline constexpr Operator kContactPoint(
    "_contact_point", Operator::Kind::kDifferentiable,
    {kMass, kFreeVelocity, kJacobian, kStabilisation, kRegularization, kFriction, kSizes, kStart, kTolerance,
     kMaxIterations},
    {{"v", "n"}, {"y", "3c"}, {"gamma", "3c"}, {"status", "", at::kChar}, {"iterations", "", at::kLong}});

/// The Adjoint of csrc/contact/derivative.h: l, the gradients of v_free, v_hat, R and mu, and gamma.
inline constexpr Operator kContactAdjoint(
    "_contact_adjoint", Operator::Kind::kDifferentiable,
    {kMass, kJacobian, kRegularization, kFriction, vector("Tensor v"), tensor("Tensor y", "3c"), vector("Tensor g_v"),
     tensor("Tensor g_y", "3c"), tensor("Tensor g_gamma", "3c"), kSizes},
    {{"l", "n"}, {"v_free", "n"}, {"v_hat", "3c"}, {"R", "3c"}, {"mu", "c"}, {"gamma", "3c"}});

/// x = (A + J' blkdiag(K) J)^-1 g with symmetric blocks K. 0 where g is 0; else NaN where the matrix is not positive
/// definite.
inline constexpr Operator kContactInverse("_contact_inverse", Operator::Kind::kDifferentiable,
                                          {kMass, kJacobian, tensor("Tensor K", "3c 3"), vector("Tensor g")},
                                          {{"x", "n"}});

inline const auto& solve_contact_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R,
                           const Tensor& mu, const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_iterations),
                kSolveContact>();
}
inline const auto& certify_contact_op() {
  return handle<Tensors<3>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R,
                           const Tensor& mu, const Tensor& v, const std::optional<Tensor>& sizes),
                kCertifyContact>();
}
inline const auto& add_equality_op() {
  return handle<Tensors<2>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                           const Tensor& R),
                kAddEquality>();
}
inline const auto& equality_impulses_op() {
  return handle<Tensor(const Tensor& J, const Tensor& v_hat, const Tensor& R, const Tensor& v), kEqualityImpulses>();
}
inline const auto& contact_dual_op() {
  return handle<Tensors<2>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                           const Tensor& R),
                kContactDual>();
}
inline const auto& delassus_diagonal_op() {
  return handle<Tensor(const Tensor& A, const Tensor& J), kDelassusDiagonal>();
}
inline const auto& contact_parameters_op() {
  return handle<Tensors<2>(const Tensor& gap, const Tensor& stiffness, const Tensor& dissipation,
                           const Tensor& delassus, double dt, double sigma, double beta),
                kContactParameters>();
}
inline const auto& contact_point_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R,
                           const Tensor& mu, const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_iterations),
                kContactPoint>();
}
inline const auto& contact_adjoint_op() {
  return handle<Tensors<6>(const Tensor& A, const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v,
                           const Tensor& y, const Tensor& g_v, const Tensor& g_y, const Tensor& g_gamma,
                           const std::optional<Tensor>& sizes),
                kContactAdjoint>();
}
inline const auto& contact_inverse_op() {
  return handle<Tensor(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g), kContactInverse>();
}

}  // namespace lcp::ops
