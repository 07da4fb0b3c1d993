// The operators of rigid contact with friction.
#pragma once

#include "ops/contact/operators.h"

namespace lcp::ops {

inline constexpr Argument kOffset = tensor("Tensor b", "3c");
inline constexpr Argument kImpulseGuess = tensor("Tensor? guess=None", "3c");

inline constexpr Argument kRows = tensor("Tensor? H=None", "k n");
inline constexpr Argument kRowOffset = tensor("Tensor? offset=None", "k");
inline constexpr Argument kRowLower = tensor("Tensor? lower=None", "k");
inline constexpr Argument kRowUpper = tensor("Tensor? upper=None", "k");

/// See lcp/solve_friction.h. There are k rows, and g = 3 c + k impulses.
inline constexpr Operator kSolveFriction(
    "solve_friction", Operator::Kind::kComposite,
    {kMass, kFreeVelocity, kJacobian, kOffset, kFriction, kSizes, tensor("Tensor? guess=None", "g"), kKappa, kTolerance,
     kMaxIterations, kRows, kRowOffset, kRowLower, kRowUpper},
    {{"v", "n"}, {"gamma", "g"}, {"status", "", at::kChar}, {"iterations", "", at::kLong}});

/// v, gamma and u = J v + b, all three with derivatives, status and iterations. u tells the derivative the state of
/// each contact. It is a result, since the u of a contact that slides slowly would have few correct digits if it were
/// computed from a v in float32.
inline constexpr Operator kFrictionPoint(
    "_friction_point", Operator::Kind::kDifferentiable,
    {kMass, kFreeVelocity, kJacobian, kOffset, kFriction, kSizes, kImpulseGuess, kKappa, kTolerance, kMaxIterations},
    {{"v", "n"}, {"gamma", "3c"}, {"u", "3c"}, {"status", "", at::kChar}, {"iterations", "", at::kLong}});

// Contacts and rows together: the g = 3 c + k rows of J and b are those of the contacts, and then those of the rows.
inline constexpr Argument kAllRows = tensor("Tensor J", "g n");
inline constexpr Argument kAllOffsets = tensor("Tensor b", "g");
inline constexpr Argument kLower = tensor("Tensor lower", "k");
inline constexpr Argument kUpper = tensor("Tensor upper", "k");

/// As _friction_point, with rows.
inline constexpr Operator kRowPoint(
    "_row_point", Operator::Kind::kDifferentiable,
    {kMass, kFreeVelocity, kAllRows, kAllOffsets, kFriction, kLower, kUpper, tensor("Tensor? guess=None", "g"),
     kTolerance, kMaxIterations},
    {{"v", "n"}, {"gamma", "g"}, {"u", "g"}, {"status", "", at::kChar}, {"iterations", "", at::kLong}});

/// As _friction_adjoint, with rows.
inline constexpr Operator kRowAdjoint("_row_adjoint", Operator::Kind::kDifferentiable,
                                      {kMass, kAllRows, kFriction, kLower, kUpper, vector("Tensor v"),
                                       tensor("Tensor gamma", "g"), tensor("Tensor u", "g"), vector("Tensor g_v"),
                                       tensor("Tensor g_gamma", "g"), tensor("Tensor g_u", "g")},
                                      {{"a", "n"}, {"c", "g"}, {"mu", "c"}, {"of_lower", "k"}, {"of_upper", "k"}});

/// See lcp/certify_friction.h.
inline constexpr Operator kCertifyFriction(
    "certify_friction", Operator::Kind::kComposite,
    {kMass, kFreeVelocity, kJacobian, kOffset, kFriction, vector("Tensor v"), tensor("Tensor gamma", "g"), kSizes,
     kRows, kRowOffset, kRowLower, kRowUpper},
    {{"residual", ""}, {"margin", ""}, {"rank", "", at::kLong}, {"unique", "", at::kBool}});

/// The same of contacts alone, and with rows.
inline constexpr Operator kCertifyContacts(
    "_certify_contacts", Operator::Kind::kNotDifferentiable,
    {kMass, kFreeVelocity, kJacobian, kOffset, kFriction, vector("Tensor v"), tensor("Tensor gamma", "3c"), kSizes},
    {{"residual", ""}, {"margin", ""}, {"rank", "", at::kLong}, {"unique", "", at::kBool}});
inline constexpr Operator kCertifyRows(
    "_certify_rows", Operator::Kind::kNotDifferentiable,
    {kMass, kFreeVelocity, kAllRows, kAllOffsets, kFriction, kLower, kUpper, vector("Tensor v"),
     tensor("Tensor gamma", "g")},
    {{"residual", ""}, {"margin", ""}, {"rank", "", at::kLong}, {"unique", "", at::kBool}});

void check_directions(std::string_view name, const Value& value);
inline constexpr Argument kDirections = positional_flag("int directions=4", check_directions);
inline constexpr Argument kAngle = positional_flag("float angle=0.0", check_finite);

/// See lcp/friction_problem.h.
inline constexpr Operator kFrictionProblem("friction_problem", Operator::Kind::kComposite,
                                           {kMass, kFreeVelocity, kJacobian, kOffset, kFriction, kDirections, kAngle},
                                           {{"M", "f f"}, {"q", "f"}});

/// See lcp/friction_problem.h.
inline constexpr Operator kFrictionMotion("friction_motion", Operator::Kind::kComposite,
                                          {kMass, kFreeVelocity, kJacobian, tensor("Tensor z", "f"), kDirections,
                                           kAngle},
                                          {{"v", "n"}, {"gamma", "3c"}});

/// v, gamma and u of the point of the smooth path near a solution (gamma_0, u_0), NaN where none is found, see
/// csrc/friction/smooth_path.h.
inline constexpr Operator kFrictionPath("_friction_path", Operator::Kind::kDifferentiable,
                                        {kMass, kFreeVelocity, kJacobian, kOffset, kFriction,
                                         tensor("Tensor gamma_0", "3c"), tensor("Tensor u_0", "3c"), kKappa, kSizes},
                                        {{"v", "n"}, {"gamma", "3c"}, {"u", "3c"}});

/// The Adjoint of csrc/friction/derivative.h. smooth: whether the solution is a point of the smooth path.
inline constexpr Operator kFrictionAdjoint("_friction_adjoint", Operator::Kind::kDifferentiable,
                                           {kMass, kJacobian, kFriction, vector("Tensor v"),
                                            tensor("Tensor gamma", "3c"), tensor("Tensor u", "3c"),
                                            vector("Tensor g_v"), tensor("Tensor g_gamma", "3c"),
                                            tensor("Tensor g_u", "3c"), flag("bool smooth=False"), kSizes},
                                           {{"a", "n"}, {"c", "3c"}, {"mu", "c"}});

/// The tolerance where the caller names none. The methods run in double precision for both dtypes. But the data of
/// float32 have errors of 6e-8, which decide the impulses of redundant contacts. A solution below these errors takes
/// long and may fail.
inline double default_friction_tolerance(const Tensor& A) { return A.scalar_type() == at::kFloat ? 1e-7 : 1e-10; }

/// The rank_tolerance of friction::Derivative: numbers below this part of the largest are rounding errors of 0. In
/// float32 these are the rounding errors of the data.
inline double rank_tolerance(const Tensor& A) { return A.scalar_type() == at::kFloat ? 1e-5 : 1e-11; }

/// x = N^+ y, the least-squares solution of least norm. A singular value of N below `tolerance` times the largest
/// counts as 0. NaN where N or y has a NaN. The derivative holds for constant rank.
inline constexpr Operator kLeastNorm("_least_norm", Operator::Kind::kDifferentiable,
                                     {matrix("Tensor N"), vector("Tensor y"), flag("float tolerance", check_positive)},
                                     {{"x", "n"}});

inline const auto& solve_friction_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess, double kappa,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_iterations,
                           const std::optional<Tensor>& H, const std::optional<Tensor>& offset,
                           const std::optional<Tensor>& lower, const std::optional<Tensor>& upper),
                kSolveFriction>();
}
inline const auto& row_point_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const Tensor& lower, const Tensor& upper, const std::optional<Tensor>& guess,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_iterations),
                kRowPoint>();
}
inline const auto& row_adjoint_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& lower, const Tensor& upper,
                           const Tensor& v, const Tensor& gamma, const Tensor& u, const Tensor& g_v,
                           const Tensor& g_gamma, const Tensor& g_u),
                kRowAdjoint>();
}
inline const auto& friction_point_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess, double kappa,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_iterations),
                kFrictionPoint>();
}
inline const auto& friction_path_op() {
  return handle<Tensors<3>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const Tensor& gamma_0, const Tensor& u_0, double kappa, const std::optional<Tensor>& sizes),
                kFrictionPath>();
}
inline const auto& certify_friction_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const Tensor& v, const Tensor& gamma, const std::optional<Tensor>& sizes,
                           const std::optional<Tensor>& H, const std::optional<Tensor>& offset,
                           const std::optional<Tensor>& lower, const std::optional<Tensor>& upper),
                kCertifyFriction>();
}
inline const auto& certify_contacts_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const Tensor& v, const Tensor& gamma, const std::optional<Tensor>& sizes),
                kCertifyContacts>();
}
inline const auto& certify_rows_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           const Tensor& lower, const Tensor& upper, const Tensor& v, const Tensor& gamma),
                kCertifyRows>();
}
inline const auto& friction_problem_op() {
  return handle<Tensors<2>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                           std::int64_t directions, double angle),
                kFrictionProblem>();
}
inline const auto& friction_motion_op() {
  return handle<Tensors<2>(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& z,
                           std::int64_t directions, double angle),
                kFrictionMotion>();
}
inline const auto& friction_adjoint_op() {
  return handle<Tensors<3>(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& v, const Tensor& gamma,
                           const Tensor& u, const Tensor& g_v, const Tensor& g_gamma, const Tensor& g_u, bool smooth,
                           const std::optional<Tensor>& sizes),
                kFrictionAdjoint>();
}
inline const auto& least_norm_op() {
  return handle<Tensor(const Tensor& N, const Tensor& y, double tolerance), kLeastNorm>();
}

}  // namespace lcp::ops
