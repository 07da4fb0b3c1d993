#include "models/formulas.h"

#include <ATen/ATen.h>

#include <vector>

#include "lcp/nn/relu_pair.h"

namespace lcp::nn {
namespace {

using at::Tensor;

// The matrices [n, n] of the entries (j, k) of the upper triangle: each is 1 at (j, k), `mirrored` at (k, j) and 0
// elsewhere. The triangle begins at the given diagonal, see at::triu_indices.
Tensor basis_of(std::int64_t n, std::int64_t diagonal, double mirrored) {
  const Tensor upper = at::triu_indices(n, n, diagonal);
  const std::int64_t count = upper.size(1);
  Tensor basis = at::zeros({count, n, n});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto j = upper[0][i].item<std::int64_t>(), k = upper[1][i].item<std::int64_t>();
    basis[i][k][j] = mirrored;
    basis[i][j][k] = 1;
  }
  return basis;
}

Tensor sum_of_basis(const Tensor& weights, const Tensor& basis) {
  return (weights.unsqueeze(-1).unsqueeze(-1) * basis).sum(-3);
}

Tensor linear(const Tensor& weight, const Tensor& bias, const Tensor& x) {
  Tensor y = (weight * x.unsqueeze(-2)).sum(-1);
  return bias.defined() ? y + bias : y;
}

// (v, u, 1) in these units, [..., 3].
Tensor state_in_units(const Tensor& v, const Tensor& u, const BlockUnits& units) {
  const auto state = at::broadcast_tensors({v / units.velocity_unit(), u / units.force_unit});
  return at::stack({state[0], state[1], at::ones_like(state[0])}, -1);
}

// The rows with the constraints of TraditionalModelOptions::monotone.
Tensor monotone_rows(const Tensor& rows, const Tensor& held) {
  const auto entry = [](const Tensor& x, std::int64_t i, std::int64_t j) { return x.select(-2, i).select(-1, j); };
  const auto unless_held = [&](std::int64_t i, std::int64_t j, const Tensor& value) {
    return at::where(entry(held, i, j) != 0, entry(rows, i, j), value);
  };
  const Tensor least = (entry(rows, 0, 1) + entry(rows, 1, 0)).abs() / 2;
  std::vector<Tensor> M;
  M.reserve(9);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      const Tensor own = entry(rows, i, j), other = -entry(rows, j, i);
      if (i == 2 && j == 2) {
        M.push_back(unless_held(i, j, at::zeros_like(own)));
      } else if (i == j) {
        M.push_back(unless_held(i, j, at::where(own >= least, own, least)));
      } else if (i == 2 || j == 2) {
        M.push_back(unless_held(i, j, at::where(entry(held, j, i) != 0, other, (own + other) / 2)));
      } else {
        M.push_back(own);
      }
    }
  }
  return at::cat({at::stack(M, -1).unflatten(-1, {3, 3}), rows.slice(-1, 3)}, -1);
}

}  // namespace

Tensor state_map(const Tensor& v, const Tensor& u, const StateMapTensors& parameters, double velocity_scale,
                 double force_scale) {
  const Tensor s = at::stack(at::broadcast_tensors({v / velocity_scale, u / force_scale}), -1);
  Tensor y = linear(parameters.affine_weight, parameters.affine_bias, s);
  if (!parameters.hidden_in_weight.defined()) return y;
  const Tensor hidden = at::tanh(linear(parameters.hidden_in_weight, parameters.hidden_in_bias, s));
  return y + linear(parameters.hidden_out_weight, {}, hidden);
}

std::pair<Tensor, Tensor> structured_bases(std::int64_t n, const std::string& basis) {
  const Tensor A = basis_of(n, 1, -1);
  if (basis == "none") return {A, {}};
  if (basis == "diagonal") return {A, at::eye(n).diag_embed()};
  TORCH_CHECK(basis == "nonnegative", "basis must be none, diagonal or nonnegative; got ", basis);
  return {A, basis_of(n, 0, 1)};
}

Tensor structured_matrix(const Tensor& phi, const Tensor& beta, const Tensor& alpha, const Tensor& A, const Tensor& S) {
  const Tensor gram = (phi.unsqueeze(-2) * phi.unsqueeze(-3)).sum(-1);  // phi phi'
  Tensor M = gram + sum_of_basis(beta, A);
  return alpha.defined() ? M + sum_of_basis(alpha.square(), S) : M;
}

Tensor direct_f(const Tensor& map, double velocity_scale) { return map * velocity_scale; }

Tensor direct_G(const Tensor& map, double velocity_scale, double force_scale) {
  return map.unflatten(-1, {2, 2}) * (velocity_scale / force_scale);
}

Tensor affine(const Tensor& G, const Tensor& p, const Tensor& f) { return f + (G * p.unsqueeze(-2)).sum(-1); }

Tensor direct_forces(const Tensor& lambda, double max_friction, bool slack) {
  return slack ? max_friction - lambda.flip(-1) : lambda;
}

Tensor direct_nonlinearity(const Tensor& f_weight, const Tensor& G_weight, const at::TensorOptions& options) {
  if (!f_weight.defined()) return at::zeros({}, options);
  return f_weight.square().sum() + G_weight.square().sum();
}

ModelStep direct_step(const Tensor& v, const Tensor& u, const Tensor& f, const Tensor& G, double max_friction,
                      bool slack, double mass, double dt) {
  const SolveResult result = slack ? solve(G, f) : solve(-G.flip(-1), f + max_friction * G.sum(-1));
  const Tensor v_next = result.w.select(-1, 0) - result.w.select(-1, 1);
  return {v_next, mass * (v_next - v) / dt - u, result.status};
}

Tensor true_rows(double limit) {
  return at::tensor({1., -1., 1., 1., 1., 0., -1., 1., 1., -1., -1., 0., -1., -1., 0., 0., 0., limit}, at::kDouble)
      .view({3, 6});
}

Tensor friction_rows(const Tensor& frictionless_rows, const Tensor& mu, double factor) {
  const Tensor limit = mu.unsqueeze(-1).unsqueeze(-1) * factor;
  return frictionless_rows + at::constant_pad_nd(limit, {5, 0, 2, 0});  // W33
}

Tensor learned_rows(const Tensor& learned, const Tensor& negative, const Tensor& held, const Tensor& values,
                    bool monotone, bool revive) {
  const Tensor given = negative.defined()
                           ? at::cat({relu_pair(learned.slice(-1, 0, 3), negative, revive), learned.slice(-1, 3)}, -1)
                           : learned;
  const Tensor rows = at::where(held != 0, values, given);
  return monotone ? monotone_rows(rows, held) : rows;
}

Tensor affine_matrix(const Tensor& rows, const Tensor& slopes, const Tensor& held, const Tensor& v, const Tensor& u,
                     const BlockUnits& units) {
  const Tensor free = slopes * (1 - held.slice(1, 0, 3)).unsqueeze(-1);
  const Tensor state = state_in_units(v, u, units).slice(-1, 0, 2).unsqueeze(-2).unsqueeze(-2);
  return rows.slice(-1, 0, 3) + (free * state).sum(-1);
}

Tensor rows_overlap(const Tensor& learned, const Tensor& negative, const Tensor& held, bool revive) {
  const Tensor free = 1 - held.slice(1, 0, 3);
  return relu_pair_overlap(learned.slice(1, 0, 3) * free, negative * free, revive);
}

Tensor missed_entries(const Tensor& G, const Tensor& held, const Tensor& values) {
  return (held.slice(1, 0, 3) * (G - values.slice(1, 0, 3))).flatten(-2);
}

Tensor structured_rows(const Tensor& M, const Tensor& learned, const Tensor& held, const Tensor& values) {
  return at::cat({M, at::where(held.slice(1, 3) != 0, values.slice(1, 3), learned)}, -1);
}

Tensor f_of_rows(const Tensor& rows, const Tensor& v, const Tensor& u, const BlockUnits& units) {
  return (rows.slice(-1, 3) * state_in_units(v, u, units).unsqueeze(-2)).sum(-1);
}

Tensor network_matrix(const Tensor& phi, const Tensor& upper) {
  const Tensor a = upper.select(-1, 0), b = upper.select(-1, 1), c = upper.select(-1, 2), zero = at::zeros_like(a);
  return phi.unsqueeze(-1) * phi.unsqueeze(-2) +
         at::stack({zero, a, b, -a, zero, c, -b, -c, zero}, -1).unflatten(-1, {3, 3});
}

Tensor solution_sticks(const Tensor& lambda, const Tensor& gamma) { return (gamma == 0) | (lambda > 0).all(-1); }

TraditionalTensors traditional_step(const Tensor& v_given, const Tensor& u_given, const Tensor& G, const Tensor& f,
                                    const Tensor& dynamics, const BlockUnits& units, bool rests_by_gamma,
                                    bool exact_rest, const SolveOptions& options) {
  const SolveResult result = solve(G, f, options);
  const auto given = at::broadcast_tensors({v_given.to(dynamics), u_given.to(dynamics), result.z.select(-1, 0)});
  const Tensor &v = given[0], &u = given[1];
  const Tensor lambda = result.z.slice(-1, 0, 2), gamma = result.z.select(-1, 2);
  const Tensor sum = (dynamics * at::cat({state_in_units(v, u, units), result.z}, -1)).sum(-1);
  Tensor v_next = sum * units.velocity_unit();
  // While the block sticks, v_next is the round-off of a sum that cancels; only the derivative of that sum matters.
  if (rests_by_gamma) v_next = at::where(gamma == 0, v_next - v_next.detach(), v_next);
  if (exact_rest) v_next = at::where(solution_sticks(lambda, gamma), at::zeros_like(v_next), v_next);
  return {v_next, lambda * units.force_unit, gamma * units.velocity_unit(), units.mass * (v_next - v) / units.dt - u,
          result.status};
}

}  // namespace lcp::nn
