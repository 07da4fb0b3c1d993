// Derivatives of rigid contact with friction, of any order.
//
// The first derivative is the kernel lcp::_friction_adjoint. Where the derivative of this kernel is asked for, formulas
// of tensors replace the kernel, with lcp::_least_norm for linear systems. Forward mode uses formulas, too.
// csrc/friction/derivative.h has the mathematics, here in the units of gamma and u: W = J A^-1 J', and (C W + D) dgamma
// = E dmu - C r.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "friction/law_error.h"
#include "friction/linear_law.h"
#include "ops/contact/tensors.h"
#include "ops/derivative.h"
#include "ops/friction/operators.h"
#include "ops/node.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// Problems and their solutions in double precision. Elements without a solution, which `unsolved` marks, get numbers
// that lead to no NaN.
struct RigidPoint {
  Tensor A, J, v, gamma, u, mu;  // gamma, u: [..., c, 3]
  Tensor unsolved;               // [..., 1]
  Missing missing;
  double rank;

  RigidPoint(const Tensor& A_given, const Tensor& J_given, const Tensor& mu_given, const Tensor& v_given,
             const Tensor& gamma_given, const Tensor& u_given, const std::optional<Tensor>& sizes)
      : unsolved(v_given.isnan().any(-1, true) | gamma_given.isnan().any(-1, true) | u_given.isnan().any(-1, true)),
        missing(unsolved, sizes, mu_given),
        rank(rank_tolerance(A_given)) {
    const auto known = [](const Tensor& where, const Tensor& x) { return at::where(where, 0, x).to(at::kDouble); };
    const Tensor identity = at::eye_symint(A_given.sym_size(-1), A_given.options());
    A = symmetric(at::where(unsolved.unsqueeze(-1), identity, A_given)).to(at::kDouble);
    J = known(missing.rows.unsqueeze(-1), J_given);
    v = known(unsolved, v_given);
    gamma = by_contact(known(unsolved, gamma_given));
    u = by_contact(known(unsolved, u_given));
    mu = known(missing.contacts, mu_given).clamp_max(friction::kLargestFriction);
  }

  Tensor to_contacts(const Tensor& x) const { return times(J, x); }
  Tensor to_bodies(const Tensor& x) const { return times(J.mT(), x); }
};

// The k rows behind c contacts. For the formulas each becomes a contact with 0 in its other two components.
struct PaddedRows {
  c10::SymInt contacts, rows;
  Tensor lower, upper;  // [..., c + k], 0 for contacts
  Tensor are;           // [c + k], bool

  PaddedRows(const Tensor& mu, const Tensor& lower_given, const Tensor& upper_given)
      : contacts(mu.sym_size(-1)),
        rows(lower_given.sym_size(-1)),
        lower(behind_contacts(lower_given)),
        upper(behind_contacts(upper_given)),
        are(at::arange(contacts + rows, mu.options().dtype(at::kLong)) >= contacts) {}

  // [..., k] to [..., c + k].
  Tensor behind_contacts(const Tensor& x) const {
    return at::constant_pad_nd_symint(x.detach().to(at::kDouble), {contacts, 0}, 0);
  }
  Tensor with_mu(const Tensor& mu) const { return at::constant_pad_nd_symint(mu, {0, rows}, 0); }
  // [..., 3 c + k] to [..., 3 (c + k)], and the reverse.
  Tensor pad(const Tensor& x) const {
    const Tensor own = x.narrow_symint(-1, 3 * contacts, rows), none = at::zeros_like(own);
    return at::cat({x.narrow_symint(-1, 0, 3 * contacts), by_row(at::stack({own, none, none}, -1))}, -1);
  }
  Tensor cut(const Tensor& x) const { return at::cat({x.narrow_symint(-1, 0, 3 * contacts), of_rows(x)}, -1); }
  // [..., 3 c + k, n] to [..., 3 (c + k), n].
  Tensor pad_matrix(const Tensor& J) const { return pad(J.mT()).mT(); }
  // [..., k] of [..., 3 (c + k)], and the reverse.
  Tensor of_rows(const Tensor& x) const {
    return by_contact(x.narrow_symint(-1, 3 * contacts, 3 * rows)).select(-1, 0);
  }
  Tensor as_impulses(const Tensor& x) const {
    const Tensor none = at::zeros_like(x);
    return at::constant_pad_nd_symint(by_row(at::stack({x, none, none}, -1)), {3 * contacts, 0}, 0);
  }
};

// The linearised law of friction.
class LinearFriction {
 public:
  /// smooth: `at` is a point of the smooth path, and there are no rows.
  LinearFriction(const RigidPoint& at, bool smooth, const PaddedRows* rows = nullptr) : rank_(at.rank) {
    const Tensor solved = times_inverse(at.A.unsqueeze(-3), at.J);  // A^-1 J', the columns as rows
    W_ = (at.J.unsqueeze(-2) * solved.unsqueeze(-3)).sum(-1);
    const Tensor diagonal = by_contact((at.J * solved).sum(-1)).detach();
    Tensor d = diagonal.mean(-1);  // [..., c]
    if (rows != nullptr) d = at::where(rows->are, diagonal.sum(-1), d);
    const Tensor response = at::where(d > 0, d, 1);
    if (smooth) {
      set_smooth(at);
    } else {
      set_exact(at, response, rows);
    }
    set_system(response);
  }

  // The solution dgamma of (C W + D) dgamma = right; right: [..., 3 c].
  Tensor impulses(const Tensor& right) const { return S_ * least_norm_op().call(N_, R_ * right, rank_); }
  // The transpose of `impulses`.
  Tensor multipliers(const Tensor& y) const { return R_ * least_norm_op().call(N_.mT(), S_ * y, rank_); }

  Tensor C(const Tensor& x) const { return by_row(apply(C_, by_contact(x))); }
  Tensor C_transposed(const Tensor& x) const { return by_row(apply(C_.mT(), by_contact(x))); }
  // W x, where x are changes of the impulses.
  Tensor W(const Tensor& x) const { return times(W_, x); }
  const Tensor& E() const { return E_; }
  // How much the impulses of rows at a bound change with their bounds, [..., c + k].
  const Tensor& of_lower() const { return of_lower_; }
  const Tensor& of_upper() const { return of_upper_; }

 private:
  // The matrices [..., c, 3, 3] of the entries, row after row.
  static Tensor blocks(std::initializer_list<Tensor> entries) {
    const std::vector<Tensor> all(entries);
    return at::stack(all, -1).unflatten(-1, {3, 3});
  }

  // The states of rows, as csrc/friction/derivative.cpp finds them.
  //   zero: [..., c + k], the possible round-off.
  void set_row_states(const RigidPoint& at, const Tensor& unit, const Tensor& zero, const PaddedRows& rows) {
    const Tensor h = at.gamma.select(-1, 0).detach() * unit, s = at.u.select(-1, 0).detach() / unit;
    const Tensor known = ~at.unsolved, z = h - s;
    const Tensor lower = at::where(known, rows.lower, 0) * unit, upper = at::where(known, rows.upper, 0) * unit;
    const Tensor tie = at::where(lower.isfinite() & upper.isfinite(), -zero, zero);
    const Tensor is_point = upper - lower <= zero, is_equal = is_point & (s.abs() <= zero);
    const Tensor is_low = ~is_equal & ((z - lower <= tie) | (is_point & ~(upper - z <= tie) & (s > 0)));
    const Tensor is_high = ~is_equal & ~is_low & ((upper - z <= tie) | is_point);
    const auto share = [&](const Tensor& is_at) {
      return (0.5 * is_equal.to(at::kDouble) + is_at.to(at::kDouble)) * rows.are.to(at::kDouble);
    };
    of_lower_ = share(is_low);
    of_upper_ = share(is_high);
  }

  void set_exact(const RigidPoint& at, const Tensor& response, const PaddedRows* rows) {
    const Tensor z = at.gamma * response.unsqueeze(-1) - at.u;
    const Tensor unit = response.sqrt(), units = unit.unsqueeze(-1);  // units in which contacts are alike
    const Tensor sizes = at::maximum((at.gamma * units).abs(), (at.u / units).abs()).detach();
    const Tensor zero = rank_ * at::constant_pad_nd(by_row(sizes), {0, 1}).amax(-1, true);  // also without contacts
    Tensor speeds = by_contact(times(at.J.abs(), at.v.abs())).amax(-1), per_speed = unit;   // [..., c]
    if (rows != nullptr) {
      const Tensor largest = at::constant_pad_nd(at::where(rows->are, 0, unit), {0, 1}).amax(-1, true);
      const Tensor of_row = at::where(largest > 0, largest, 1);  // row_weight of Impulses
      speeds = at::where(rows->are, speeds * of_row / unit, speeds);
      per_speed = at::where(rows->are, of_row, unit);
    }
    const Tensor rounding = friction::kRounding * at::constant_pad_nd(speeds, {0, 1}).amax(-1, true) / per_speed;
    const Tensor nothing = at::maximum(zero, rounding).detach();
    const Tensor friction_2 = scalar_product(tangents(at.gamma), tangents(at.gamma)) * response;
    Tensor apart = (normals(z) / unit <= nothing) & (friction_2 <= (friction::kJammed * nothing).square());
    if (rows != nullptr) {
      set_row_states(at, unit, nothing, *rows);
      apart = at::where(rows->are, of_lower_ + of_upper_ > 0, apart);
    }
    // The impulse of a contact that is apart does not change, so that its column counts neither for a row's size nor
    // for the rank.
    W_ = at::where(by_row(apart.unsqueeze(-1).expand_as(z)).unsqueeze(-2), 0, W_);
    const Tensor limit = at.mu * normals(at.gamma) * response;
    const Tensor stick = ~apart & (limit > 0) & (scalar_product(tangents(z), tangents(z)) <= limit * limit);
    const Tensor slide = ~apart & ~stick;
    const Tensor slip = scalar_product(tangents(at.u), tangents(at.u));
    const Tensor moving = slide & (slip > 0);
    const Tensor speed = at::where(moving, slip, 1).sqrt();
    const Tensor t = at::where(moving.unsqueeze(-1), tangents(at.u) / speed.unsqueeze(-1), 0);  // [..., c, 2]
    const Tensor normal = normals(at.gamma), ratio = at::where(moving, at.mu * normal / speed, 0);
    const Tensor one = at::ones_like(ratio), none = at::zeros_like(ratio);
    const auto kinds = [&](const Tensor& if_stick, const Tensor& if_slide, const Tensor& if_apart) {
      return at::where(stick, if_stick, at::where(slide, if_slide, if_apart));
    };
    const Tensor t_0 = t.select(-1, 0), t_1 = t.select(-1, 1), cross = -ratio * t_0 * t_1;
    // The factor of the part of the rows along t, as in csrc/friction/linear_law.h.
    const Tensor along = (1 / at.mu.clamp_min(1)).detach();
    const auto turned = [&](const Tensor& same, const Tensor& first, const Tensor& second) {
      return kinds(none, same - (1 - along) * first * second, same);
    };
    C_ = blocks({kinds(one, ratio * (1 - t_0 * t_0), none), kinds(none, cross, none), none,  //
                 kinds(none, cross, none), kinds(one, ratio * (1 - t_1 * t_1), none), none,  //
                 none, none, kinds(one, one, none)});
    const Tensor pressure = along * at.mu;
    D_ = blocks({turned(one, t_0, t_0), turned(none, t_0, t_1), kinds(none, pressure * t_0, none),  //
                 turned(none, t_1, t_0), turned(one, t_1, t_1), kinds(none, pressure * t_1, none),  //
                 none, none, kinds(none, none, one)});
    // A mu above the limit counts as the limit.
    const Tensor by_mu = at::where(at.mu < friction::kLargestFriction, -along * normal, 0);
    E_ = at::stack({kinds(none, by_mu * t_0, none), kinds(none, by_mu * t_1, none), none}, -1);  // [..., c, 3]
    if (rows == nullptr) return;
    const Tensor free = (~apart).to(at::kDouble), is_row = rows->are.unsqueeze(-1);
    C_ = at::where(is_row.unsqueeze(-1), rows_of(free, none), C_);
    D_ = at::where(is_row.unsqueeze(-1), rows_of(1 - free, one), D_);
    E_ = at::where(is_row, 0, E_);
  }

  // diag(first, other, other).
  static Tensor rows_of(const Tensor& first, const Tensor& other) {
    const Tensor none = at::zeros_like(first);
    return blocks({first, none, none, none, other, none, none, none, other});
  }

  // The SmoothLaw of csrc/friction/smooth_path.h. A contact that is missing has dgamma = 0.
  void set_smooth(const RigidPoint& at) {
    const Tensor u_n = normals(at.u), u_t = tangents(at.u), h_n = normals(at.gamma), h_t = tangents(at.gamma);
    const Tensor mu_2 = at.mu * at.mu, slip_2 = scalar_product(u_t, u_t);
    const Tensor square = u_n * u_n + mu_2 * slip_2, exists = square > 0;
    const Tensor speed = at::where(exists, square, 1).sqrt(), none = at::zeros_like(u_n);
    const auto of = [](const Tensor& x, int i) { return x.select(-1, i); };
    const auto C_t = [&](int i, int j) {
      const Tensor turned = of(h_t, i) * of(u_t, j) / speed;
      return mu_2 * (i == j ? turned + h_n : turned);
    };
    const auto E_t = [&](int i) { return -at.mu * (of(h_t, i) * slip_2 / speed + 2 * h_n * of(u_t, i)); };
    C_ = blocks({C_t(0, 0), C_t(0, 1), of(h_t, 0) * u_n / speed,  //
                 C_t(1, 0), C_t(1, 1), of(h_t, 1) * u_n / speed,  //
                 none, none, h_n});
    D_ = blocks({speed, none, mu_2 * of(u_t, 0),  //
                 none, speed, mu_2 * of(u_t, 1),  //
                 none, none, at::where(exists, u_n, 1)});
    E_ = at::stack({E_t(0), E_t(1), none}, -1);
  }

  void set_system(const Tensor& response) {
    // N = R (C W + D) S. S has the units of the impulses, in which contacts are alike; R brings rows to size 1.
    const Tensor products =
        (C_.unsqueeze(-1) * by_contact(W_.mT()).movedim(-3, -1).unsqueeze(-3)).sum(-2);  // [..., c, 3, 3 c]
    const Tensor identity = at::eye_symint(D_.sym_size(-3), D_.options()).unsqueeze(-1).unsqueeze(-3);  // [c, 1, c, 1]
    const Tensor M = by_row_block(products) + by_row_block(by_row(identity * D_.unsqueeze(-2)));
    S_ = by_row((1 / response.sqrt()).unsqueeze(-1).expand_symint(E_.sym_sizes()));
    const Tensor scaled = M * S_.unsqueeze(-2);
    const Tensor size = scaled.detach().abs().sum(-1);
    R_ = at::where(size > 0, 1 / size, 1);
    N_ = R_.unsqueeze(-1) * scaled;
  }

  // [..., c, 3, k] to [..., 3 c, k].
  static Tensor by_row_block(const Tensor& x) { return x.flatten(-3, -2); }

  Tensor W_, C_, D_, E_, S_, R_, N_, of_lower_, of_upper_;
  double rank_;
};

// The gradients of the data, as lcp::_friction_adjoint has them, in double precision.
Tensors<3> gradients_of_data(const RigidPoint& at, const LinearFriction& law, const Tensor& g_v, const Tensor& g_gamma,
                             const Tensor& g_u) {
  const Tensor of_u = g_u.to(at::kDouble);
  const Tensor push = g_v.to(at::kDouble) + at.to_bodies(of_u);
  const Tensor y = at.to_contacts(times_inverse(at.A, push)) + g_gamma.to(at::kDouble);
  const Tensor p = law.multipliers(at::where(at.unsolved, 0, y));
  const Tensor c = -law.C_transposed(p);
  const Tensor a = times_inverse(at.A, at::where(at.unsolved, 0, push + at.to_bodies(c)));
  return {a, c + of_u, scalar_product(law.E(), by_contact(p))};
}

// lcp::_friction_adjoint in formulas.
Tensors<3> friction_adjoint_formula(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& v,
                                    const Tensor& gamma, const Tensor& u, const Tensor& g_v, const Tensor& g_gamma,
                                    const Tensor& g_u, bool smooth, const std::optional<Tensor>& sizes) {
  const RigidPoint at(A, J, mu, v, gamma, u, sizes);
  const Tensor undefined = at.unsolved & (any_nonzero(g_v) | any_nonzero(g_gamma) | any_nonzero(g_u));
  const auto [a, c, of_mu] = gradients_of_data(at, LinearFriction(at, smooth), g_v, g_gamma, g_u);
  const auto finished = [&](const Tensor& x) { return x.masked_fill(undefined, kNaN).to(v.scalar_type()); };
  return {finished(a), finished(c), finished(of_mu)};
}

// lcp::_row_adjoint in formulas.
Tensors<5> row_adjoint_formula(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& lower,
                               const Tensor& upper, const Tensor& v, const Tensor& gamma, const Tensor& u,
                               const Tensor& g_v, const Tensor& g_gamma, const Tensor& g_u) {
  const PaddedRows rows(mu, lower, upper);
  const RigidPoint at(A, rows.pad_matrix(J), rows.with_mu(mu), v, rows.pad(gamma), rows.pad(u), std::nullopt);
  const LinearFriction law(at, false, &rows);
  const Tensor undefined = at.unsolved & (any_nonzero(g_v) | any_nonzero(g_gamma) | any_nonzero(g_u));
  const Tensor g_impulses = rows.pad(g_gamma);
  const auto [a, c, of_mu] = gradients_of_data(at, law, g_v, g_impulses, rows.pad(g_u));
  const auto finished = [&](const Tensor& x) { return x.masked_fill(undefined, kNaN).to(v.scalar_type()); };
  // A row at a bound acts by a given impulse.
  const Tensor of_impulse = at::where(at.unsolved, 0, rows.of_rows(at.to_contacts(a) + g_impulses.to(at::kDouble)));
  const auto share = [&](const Tensor& of) { return of.narrow_symint(-1, rows.contacts, rows.rows) * of_impulse; };
  return {finished(a), finished(rows.cut(c)), finished(of_mu.narrow_symint(-1, 0, rows.contacts)),
          finished(share(law.of_lower())), finished(share(law.of_upper()))};
}

// Sets the gradients of A, v_free, J, b and mu for those of the data.
void set_gradients(variable_list& result, const Needs& needs, const Tensor& A, const Tensor& v_free, const Tensor& J,
                   const Tensor& mu, const Tensor& v, const Tensor& gamma, const Shape& b_shape, const Tensor& a,
                   const Tensor& c, const Tensor& of_mu) {
  if (needs[0]) result[0] = symmetric(sum_outer(-a, v - v_free, A.sym_sizes()));
  if (needs[1]) {
    const Tensor unsolved = v.isnan().any(-1, true).unsqueeze(-1);
    result[1] = sum_to_shape(times(symmetric(at::where(unsolved, 0, A)), a), shape_of(v_free));
  }
  if (needs[2]) result[2] = sum_outer_turned(a, gamma, J) + sum_outer(c, v, J.sym_sizes());
  if (needs[3]) result[3] = sum_to_shape(c, b_shape);
  if (needs[4]) result[4] = sum_to_shape(of_mu, shape_of(mu));
}

variable_list friction_backward(const variable_list& g, const Needs& needs, const Tensor& A, const Tensor& v_free,
                                const Tensor& J, const Tensor& mu, const Tensor& v, const Tensor& gamma,
                                const Tensor& u, const Shape& b_shape, const bool& smooth,
                                const std::optional<Tensor>& sizes) {
  if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return variable_list(5);
  const auto [a, c, of_mu] = friction_adjoint_op().call(A, J, mu, v, gamma, u, or_zeros(g[0], v), or_zeros(g[1], gamma),
                                                        or_zeros(g[2], u), smooth, sizes);
  variable_list result(5);
  set_gradients(result, needs, A, v_free, J, mu, v, gamma, b_shape, a, c, of_mu);
  return result;
}

variable_list row_backward(const variable_list& g, const Needs& needs, const Tensor& A, const Tensor& v_free,
                           const Tensor& J, const Tensor& mu, const Tensor& lower, const Tensor& upper, const Tensor& v,
                           const Tensor& gamma, const Tensor& u, const Shape& b_shape) {
  variable_list result(7);
  if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return result;
  const auto [a, c, of_mu, of_lower, of_upper] = row_adjoint_op().call(
      A, J, mu, lower, upper, v, gamma, u, or_zeros(g[0], v), or_zeros(g[1], gamma), or_zeros(g[2], u));
  set_gradients(result, needs, A, v_free, J, mu, v, gamma, b_shape, a, c, of_mu);
  if (needs[5]) result[5] = sum_to_shape(of_lower, shape_of(lower));
  if (needs[6]) result[6] = sum_to_shape(of_upper, shape_of(upper));
  return result;
}

// dv, dgamma and du, in double precision.
//   r, of_law: the changes of u at constant impulses, and the right-hand side of the linearised law for them.
struct TangentOfData {
  Tensor dv, dgamma, du;

  // push: the change of the momentum. given: changes of impulses that push includes, or undefined.
  TangentOfData(const RigidPoint& at, const LinearFriction& law, const Tensor& push, const Tensor& ds,
                const Tensor& of_mu, const Tensor& given) {
    const Tensor x = times_inverse(at.A, at::where(at.unsolved, 0, push));
    const Tensor r = at::where(at.missing.rows, 0, at.to_contacts(x) + ds);
    dgamma = law.impulses(of_mu - law.C(r));
    dv = x + times_inverse(at.A, at.to_bodies(dgamma));
    du = r + law.W(dgamma);
    dgamma = plus(dgamma, given);
  }
};

Tensors<5> row_point_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& v_free, const Tensor& J,
                              const Tensor& b, const Tensor& mu, const Tensor& lower, const Tensor& upper,
                              const std::optional<Tensor>& guess, std::optional<double> tolerance,
                              std::optional<std::int64_t> max_iterations) {
  auto [v, gamma, u, status, iterations] =
      below_autograd(row_point_op(), keys, A, v_free, J, b, mu, lower, upper, guess, tolerance, max_iterations);
  const auto node = make_node<row_backward>("LcpRowBackward", A, v_free, J, b, mu, lower, upper);
  set_history(node, {v, gamma, u});
  if (has_tangent(A, v_free, J, b, mu, lower, upper)) {
    const PaddedRows rows(primal(mu), primal(lower), primal(upper));
    const RigidPoint at(primal(A), rows.pad_matrix(primal(J)), rows.with_mu(primal(mu)), primal(v),
                        rows.pad(primal(gamma)), rows.pad(primal(u)), std::nullopt);
    const LinearFriction law(at, false, &rows);
    const auto given = [](const Tensor& x) {
      return tangent(x).defined() ? tangent(x).to(at::kDouble) : at::zeros_like(primal(x), at::kDouble);
    };
    const Tensor dA = given(A), dv_free = given(v_free), dJ = given(J), db = given(b), dmu = given(mu),
                 dlower = given(lower), dupper = given(upper);
    const Tensor undefined =
        at.unsolved & (any_nonzero(dA).any(-2) | any_nonzero(dv_free) | any_nonzero(dJ).any(-2) | any_nonzero(db) |
                       any_nonzero(dmu) | any_nonzero(dlower) | any_nonzero(dupper));
    const auto of_rows = [&](const Tensor& of) { return of.narrow_symint(-1, rows.contacts, rows.rows); };
    const Tensor bounds = rows.as_impulses(of_rows(law.of_lower()) * dlower + of_rows(law.of_upper()) * dupper);
    const Tensor dJ_all = rows.pad_matrix(dJ), ds = times(dJ_all, at.v) + rows.pad(db);
    const Tensor off = at.v - at::where(at.unsolved, 0, primal(v_free)).to(at::kDouble);
    const Tensor push =
        times(at.A, dv_free) - times(symmetric(dA), off) + times(dJ_all.mT(), by_row(at.gamma)) + at.to_bodies(bounds);
    const Tensor of_mu = by_row(law.E() * rows.with_mu(dmu).unsqueeze(-1));
    const TangentOfData found(at, law, push, ds, of_mu, bounds);
    const auto finished = [&](const Tensor& d) { return d.masked_fill(undefined, kNaN).to(v.scalar_type()); };
    v._set_fw_grad(finished(found.dv), 0, false);
    gamma._set_fw_grad(finished(rows.cut(found.dgamma)), 0, false);
    u._set_fw_grad(finished(rows.cut(found.du)), 0, false);
  }
  if (node) node->save(A, v_free, J, mu, lower, upper, v, gamma, u, shape_of(b));
  return {v, gamma, u, status, iterations};
}

Tensors<5> row_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& J, const Tensor& mu,
                                const Tensor& lower, const Tensor& upper, const Tensor& v, const Tensor& gamma,
                                const Tensor& u, const Tensor& g_v, const Tensor& g_gamma, const Tensor& g_u) {
  if (needs_derivative(A, J, mu, lower, upper, v, gamma, u, g_v, g_gamma, g_u)) {
    return row_adjoint_formula(A, J, mu, lower, upper, v, gamma, u, g_v, g_gamma, g_u);
  }
  return below_autograd(row_adjoint_op(), keys, A, J, mu, lower, upper, v, gamma, u, g_v, g_gamma, g_u);
}

// dv, dgamma and du.
Tensors<3> friction_tangent(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                            const Tensor& v, const Tensor& gamma, const Tensor& u, bool smooth,
                            const std::optional<Tensor>& sizes) {
  const RigidPoint at(primal(A), primal(J), primal(mu), v, gamma, u, sizes);
  const LinearFriction law(at, smooth);
  const auto given = [](const Tensor& x) {
    return tangent(x).defined() ? tangent(x).to(at::kDouble) : at::zeros_like(primal(x), at::kDouble);
  };
  const Tensor dA = given(A), dv_free = given(v_free), db = given(b), dmu = given(mu);
  Tensor dJ = given(J);
  const Tensor undefined = at.unsolved & (any_nonzero(dA).any(-2) | any_nonzero(dv_free) | any_nonzero(dJ).any(-2) |
                                          any_nonzero(db) | any_nonzero(dmu));
  dJ = at::where(at.missing.rows.unsqueeze(-1), 0, dJ);
  const Tensor off = at.v - at::where(at.unsolved, 0, primal(v_free)).to(at::kDouble);
  const Tensor push = times(at.A, dv_free) - times(symmetric(dA), off) + times(dJ.mT(), by_row(at.gamma));
  const Tensor of_mu = by_row(law.E() * at::where(at.missing.contacts, 0, dmu).unsqueeze(-1));
  const TangentOfData found(at, law, push, times(dJ, at.v) + db, of_mu, {});
  const auto finished = [&](const Tensor& d) { return d.masked_fill(undefined, kNaN).to(v.scalar_type()); };
  return {finished(found.dv), finished(found.dgamma), finished(found.du)};
}

// Gives v, gamma and u, a solution or a point of the smooth path, their derivative.
void set_friction_derivative(const char* name, const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                             const Tensor& mu, Tensor& v, Tensor& gamma, Tensor& u, bool smooth,
                             const std::optional<Tensor>& sizes) {
  const auto node = make_node<friction_backward>(name, A, v_free, J, b, mu);
  set_history(node, {v, gamma, u});
  if (has_tangent(A, v_free, J, b, mu)) {
    const auto [dv, dgamma, du] =
        friction_tangent(A, v_free, J, b, mu, primal(v), primal(gamma), primal(u), smooth, sizes);
    v._set_fw_grad(dv, 0, false);
    gamma._set_fw_grad(dgamma, 0, false);
    u._set_fw_grad(du, 0, false);
  }
  if (node) node->save(A, v_free, J, mu, v, gamma, u, shape_of(b), smooth, sizes);
}

Tensors<3> friction_path_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& v_free, const Tensor& J,
                                  const Tensor& b, const Tensor& mu, const Tensor& gamma_0, const Tensor& u_0,
                                  double kappa, const std::optional<Tensor>& sizes) {
  auto [v, gamma, u] = below_autograd(friction_path_op(), keys, A, v_free, J, b, mu, gamma_0, u_0, kappa, sizes);
  set_friction_derivative("LcpFrictionPathBackward", A, v_free, J, b, mu, v, gamma, u, true, sizes);
  return {v, gamma, u};
}

Tensors<5> friction_point_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& v_free, const Tensor& J,
                                   const Tensor& b, const Tensor& mu, const std::optional<Tensor>& sizes,
                                   const std::optional<Tensor>& guess, double kappa, std::optional<double> tolerance,
                                   std::optional<std::int64_t> max_iterations) {
  auto [v, gamma, u, status, iterations] =
      below_autograd(friction_point_op(), keys, A, v_free, J, b, mu, sizes, guess, kappa, tolerance, max_iterations);
  if (kappa == 0) {
    set_friction_derivative("LcpFrictionBackward", A, v_free, J, b, mu, v, gamma, u, false, sizes);
  } else if (needs_derivative(A, v_free, J, b, mu)) {
    const auto [v_kappa, gamma_kappa, u_kappa] = friction_path_op().call(A, v_free, J, b, mu, gamma, u, kappa, sizes);
    carry(v, v_kappa);
    carry(gamma, gamma_kappa);
    carry(u, u_kappa);
  }
  return {v, gamma, u, status, iterations};
}

Tensors<3> friction_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& J, const Tensor& mu,
                                     const Tensor& v, const Tensor& gamma, const Tensor& u, const Tensor& g_v,
                                     const Tensor& g_gamma, const Tensor& g_u, bool smooth,
                                     const std::optional<Tensor>& sizes) {
  if (needs_derivative(A, J, mu, v, gamma, u, g_v, g_gamma, g_u)) {
    return friction_adjoint_formula(A, J, mu, v, gamma, u, g_v, g_gamma, g_u, smooth, sizes);
  }
  return below_autograd(friction_adjoint_op(), keys, A, J, mu, v, gamma, u, g_v, g_gamma, g_u, smooth, sizes);
}

// The derivative of P = N^+ at constant rank is dP = -P dN P + P P' dN' (I - N P) + (I - P N) dN' P' P [Golub, Pereyra,
// SIAM J. Numer. Anal. 10, 1973].
variable_list least_norm_backward(const variable_list& g, const Needs& needs, const Tensor& N, const Tensor& y,
                                  const Tensor& x, const double& tolerance) {
  if (!g[0].defined()) return variable_list(2);
  const auto P = [&](const Tensor& right) { return least_norm_op().call(N, right, tolerance); };
  const auto P_transposed = [&](const Tensor& right) { return least_norm_op().call(N.mT(), right, tolerance); };
  const Tensor q = P_transposed(g[0]);
  variable_list result(2);
  if (needs[0]) {
    const auto outer = [&](const Tensor& a, const Tensor& b) { return sum_outer(a, b, N.sym_sizes()); };
    result[0] = outer(y - times(N, x), P(q)) + outer(P_transposed(x), g[0] - P(times(N, g[0]))) - outer(q, x);
  }
  if (needs[1]) result[1] = sum_to_shape(q, shape_of(y));
  return result;
}

Tensor least_norm_autograd(c10::DispatchKeySet keys, const Tensor& N, const Tensor& y, double tolerance) {
  const auto node = make_node<least_norm_backward>("LcpLeastNormBackward", N, y);
  Tensor x = below_autograd(least_norm_op(), keys, N, y, tolerance);
  if (node) autograd::set_history(x, node);
  if (has_tangent(N, y)) {
    const Tensor N_p = primal(N), x_p = primal(x);
    const auto P = [&](const Tensor& right) { return least_norm_op().call(N_p, right, tolerance); };
    const auto P_transposed = [&](const Tensor& right) { return least_norm_op().call(N_p.mT(), right, tolerance); };
    Tensor right = tangent(y), dx;
    if (tangent(N).defined()) {
      const Tensor dN = tangent(N);
      right = plus(right, -times(dN, x_p));
      const Tensor turned = times(dN.mT(), P_transposed(x_p));
      dx = P(P_transposed(times(dN.mT(), primal(y) - times(N_p, x_p)))) + turned - P(times(N_p, turned));
    }
    x._set_fw_grad(plus(dx, P(right)), 0, false);
  }
  if (node) node->save(N, y, x, tolerance);
  return x;
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_friction_point", TORCH_FN(friction_point_autograd));
  library.impl("_friction_path", TORCH_FN(friction_path_autograd));
  library.impl("_friction_adjoint", TORCH_FN(friction_adjoint_autograd));
  library.impl("_row_point", TORCH_FN(row_point_autograd));
  library.impl("_row_adjoint", TORCH_FN(row_adjoint_autograd));
  library.impl("_least_norm", TORCH_FN(least_norm_autograd));
}

}  // namespace
}  // namespace lcp::ops
