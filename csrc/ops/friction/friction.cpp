// The operators of rigid contact that are made of others, and the C++ functions of all of them.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <numbers>

#include "lcp/certify_friction.h"
#include "lcp/friction_problem.h"
#include "lcp/solve_friction.h"
#include "ops/contact/tensors.h"
#include "ops/friction/operators.h"
#include "ops/registration.h"

namespace lcp::ops {

void check_directions(std::string_view name, const Value& value) {
  TORCH_CHECK(std::get<std::int64_t>(value) >= 3, name, " must be >= 3; got ", std::get<std::int64_t>(value));
}

namespace {

// Both with the common batch, one behind another in the first of the last `core_dims` dimensions.
Tensor joined(const Tensor& a, const Tensor& b, std::int64_t core_dims) {
  const auto batch = at::infer_size_symdimvector(a.sym_sizes().slice(0, a.dim() - core_dims),
                                                 b.sym_sizes().slice(0, b.dim() - core_dims));
  const auto wide = [&](const Tensor& x) {
    c10::SymDimVector shape = batch;
    for (std::int64_t k = x.dim() - core_dims; k < x.dim(); ++k) shape.push_back(x.sym_size(k));
    return x.expand_symint(shape);
  };
  return at::cat({wide(a), wide(b)}, -core_dims);
}

void check_rows(const std::optional<Tensor>& sizes, const std::optional<Tensor>& H, const std::optional<Tensor>& offset,
                const std::optional<Tensor>& lower, const std::optional<Tensor>& upper) {
  TORCH_CHECK(!H || (lower && upper), "lower and upper must be given with H");
  TORCH_CHECK(!H || !sizes, "sizes must be absent where there are rows H");
  TORCH_CHECK(H || (!offset && !lower && !upper), "offset, lower and upper must be absent without H");
}

Tensors<4> certify_friction_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                                      const Tensor& mu, const Tensor& v, const Tensor& gamma,
                                      const std::optional<Tensor>& sizes, const std::optional<Tensor>& H,
                                      const std::optional<Tensor>& offset, const std::optional<Tensor>& lower,
                                      const std::optional<Tensor>& upper) {
  check(kCertifyFriction, A, v_free, J, b, mu, v, gamma, sizes, H, offset, lower, upper);
  check_rows(sizes, H, offset, lower, upper);
  if (!H) return certify_contacts_op().call(A, v_free, J, b, mu, v, gamma, sizes);
  return certify_rows_op().call(A, v_free, joined(J, *H, 2), joined(b, offset ? *offset : at::zeros_like(*lower), 1),
                                mu, *lower, *upper, v, gamma);
}

Tensors<4> solve_friction_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                                    const Tensor& mu, const std::optional<Tensor>& sizes,
                                    const std::optional<Tensor>& guess, double kappa, std::optional<double> tolerance,
                                    std::optional<std::int64_t> max_iterations, const std::optional<Tensor>& H,
                                    const std::optional<Tensor>& offset, const std::optional<Tensor>& lower,
                                    const std::optional<Tensor>& upper) {
  check(kSolveFriction, A, v_free, J, b, mu, sizes, guess, kappa, tolerance, max_iterations, H, offset, lower, upper);
  check_rows(sizes, H, offset, lower, upper);
  if (H) {
    TORCH_CHECK(kappa == 0, "kappa must be 0 where there are rows H; got ", kappa);
    const auto [v, gamma, u, status, iterations] =
        row_point_op().call(A, v_free, joined(J, *H, 2), joined(b, offset ? *offset : at::zeros_like(*lower), 1), mu,
                            *lower, *upper, guess, tolerance, max_iterations);
    return {v, gamma, status, iterations};
  }
  const auto [v, gamma, u, status, iterations] =
      friction_point_op().call(A, v_free, J, b, mu, sizes, guess, kappa, tolerance, max_iterations);
  return {v, gamma, status, iterations};
}

// The directions, [count, 2].
Tensor directions_of(std::int64_t count, double angle, const at::TensorOptions& options) {
  const double step = 2 * std::numbers::pi / static_cast<double>(count);
  const Tensor angles = angle + step * at::arange(count, options.dtype(at::kDouble));
  return at::stack({angles.cos(), angles.sin()}, -1).to(options);
}

// The normal rows of all contacts, [..., c, k], and behind them the rows in each direction, [..., c count, k].
//   rows: [..., c, 3, k], of each contact (t1, t2, n).
Tensor along(const Tensor& rows, const Tensor& directions) {
  const Tensor tangents = (directions.unsqueeze(-1) * rows.narrow(-2, 0, 2).unsqueeze(-3)).sum(-2);
  return at::cat({rows.select(-2, 2), tangents.flatten(-3, -2)}, -2);
}

Tensors<2> friction_problem_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                                      const Tensor& mu, std::int64_t directions, double angle) {
  check(kFrictionProblem, A, v_free, J, b, mu, directions, angle);
  const Tensor d = directions_of(directions, angle, A.options());
  const Tensor G = along(by_contact(J.mT()).movedim(-3, -1), d);
  // The velocity of a contact is computed first. Where it cancels, as in rolling, all directions then have the same
  // round-off and remain tied.
  const Tensor velocity = along(by_contact(times(J, v_free) + b).unsqueeze(-1), d).squeeze(-1);
  const Tensor solved = times_inverse(A.unsqueeze(-3), G);  // A^-1 G', the columns as rows
  const Tensor W = (G.unsqueeze(-2) * solved.unsqueeze(-3)).sum(-1);
  const c10::SymInt contacts = mu.sym_size(-1), sides = contacts * directions;
  // The slip speed of a contact acts on all of its directions.
  const Tensor one = at::eye_symint(contacts, A.options());
  const Tensor slips = one.unsqueeze(1).expand_symint({contacts, directions, contacts}).flatten(0, 1);
  const auto placed = [&](const Tensor& x, const c10::SymInt& row, const c10::SymInt& column) {
    const c10::SymInt size = contacts * 2 + sides;
    return at::constant_pad_nd_symint(x, {column, size - column - x.sym_size(-1), row, size - row - x.sym_size(-2)}, 0);
  };
  const c10::SymInt last = contacts + sides;
  const Tensor M = placed(W, 0, 0) + placed(slips, contacts, last) - placed(slips.t(), last, contacts) +
                   placed(at::diag_embed(mu), last, 0);
  return {M, at::constant_pad_nd_symint(velocity, {0, contacts}, 0)};
}

Tensors<2> friction_motion_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& z,
                                     std::int64_t directions, double angle) {
  check(kFrictionMotion, A, v_free, J, z, directions, angle);
  const c10::SymInt contacts = J.sym_size(-2) / 3, sides = contacts * directions;
  TORCH_CHECK(z.sym_size(-1) == contacts * 2 + sides, "z must be [..., ", contacts * 2 + sides, "] for ", contacts,
              " contacts with ", directions, " directions; got ", z.sym_sizes());
  const Tensor d = directions_of(directions, angle, A.options());
  Shape shape = shape_of(z);
  shape.back() = contacts;
  shape.emplace_back(directions);
  const Tensor in_directions = z.narrow_symint(-1, contacts, sides).reshape_symint(shape);
  const Tensor friction = (in_directions.unsqueeze(-1) * d).sum(-2);  // [..., c, 2]
  const Tensor gamma = by_row(at::cat({friction, z.narrow_symint(-1, 0, contacts).unsqueeze(-1)}, -1));
  return {v_free + times_inverse(A, times(J.mT(), gamma)), gamma};
}

LCP_LIBRARY_IMPL(CompositeImplicitAutograd, library) {
  library.impl("friction_problem", TORCH_FN(friction_problem_composite));
  library.impl("friction_motion", TORCH_FN(friction_motion_composite));
  library.impl("solve_friction", TORCH_FN(solve_friction_composite));
  library.impl("certify_friction", TORCH_FN(certify_friction_composite));
}

// Without these decompositions, torch.vmap would run the operators element by element.
LCP_LIBRARY_IMPL(FuncTorchBatchedDecomposition, library) {
  library.impl("friction_problem", TORCH_FN(friction_problem_composite));
  library.impl("friction_motion", TORCH_FN(friction_motion_composite));
  library.impl("solve_friction", TORCH_FN(solve_friction_composite));
  library.impl("certify_friction", TORCH_FN(certify_friction_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {
namespace {

// The rows as the operators take them.
struct RowArguments {
  std::optional<at::Tensor> H, offset, lower, upper;

  explicit RowArguments(const std::optional<FrictionRows>& rows) {
    if (!rows) return;
    H = rows->H;
    if (rows->offset.defined()) offset = rows->offset;
    if (rows->lower.defined()) lower = rows->lower;
    if (rows->upper.defined()) upper = rows->upper;
  }
};

}  // namespace

FrictionResult solve_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& b,
                              const at::Tensor& mu, const FrictionOptions& options) {
  const RowArguments rows(options.rows);
  auto [v, gamma, status, iterations] =
      ops::solve_friction_op().call(A, v_free, J, b, mu, options.sizes, options.guess, options.kappa, options.tolerance,
                                    options.max_iterations, rows.H, rows.offset, rows.lower, rows.upper);
  return {v, gamma, status, iterations};
}

FrictionCertificate certify_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                     const at::Tensor& b, const at::Tensor& mu, const at::Tensor& v,
                                     const at::Tensor& gamma, const std::optional<at::Tensor>& sizes,
                                     const std::optional<FrictionRows>& given) {
  const RowArguments rows(given);
  auto [residual, margin, rank, unique] = ops::certify_friction_op().call(A, v_free, J, b, mu, v, gamma, sizes, rows.H,
                                                                          rows.offset, rows.lower, rows.upper);
  return {residual, margin, rank, unique};
}

FrictionProblem friction_problem(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                 const at::Tensor& b, const at::Tensor& mu, const FrictionDirections& directions) {
  auto [M, q] = ops::friction_problem_op().call(A, v_free, J, b, mu, directions.count, directions.angle);
  return {M, q};
}

FrictionMotion friction_motion(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& z,
                               const FrictionDirections& directions) {
  auto [v, gamma] = ops::friction_motion_op().call(A, v_free, J, z, directions.count, directions.angle);
  return {v, gamma};
}

}  // namespace lcp
