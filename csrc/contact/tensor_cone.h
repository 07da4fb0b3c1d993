// The projection of cone.h, for tensors. Only this header of the folder knows LibTorch.
//
// The formulas of this header exist beside the kernel of cone.h because derivatives of the kernel's derivatives are
// needed, too: PyTorch differentiates these operators. Where no such derivative is asked for, the kernel is used, which
// is many times faster. tests/contact/tensor_cone_test.cpp holds both to the same results.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <tuple>

namespace lcp::contact {

/// gamma = P(y), where y is projected on the cone of each contact in the norm of R = diag(R_t, R_t, R_n). With
/// a = R_t / R_n and s = |y_t|, a contact that slides has
///
///   gamma_n = (y_n + mu a s) / (1 + mu^2 a),   gamma_t = mu gamma_n y_t / s.
///
/// The names of the members are those of cone.h.
struct TensorCone {
  using Tensor = at::Tensor;

  Tensor tangent, normal, mu;  ///< [...]: R_t and R_n, and the friction coefficient
  Tensor ratio, share;         ///< [...]: a, and 1 / (1 + mu^2 a)
  Tensor slip, along;          ///< [...], |y_t|; [..., 2], y_t / |y_t|, and 0 where y_t is
  Tensor sliding, sticking;    ///< [...], bool: the region; neither where there is no impulse
  Tensor gamma_n, gamma;       ///< [...]; [..., 3]

  /// y: [..., 3], (t1, t2, n). tangent, normal, mu: [...].
  TensorCone(const Tensor& y, const Tensor& tangent_given, const Tensor& normal_given, const Tensor& mu_given)
      : tangent(tangent_given),
        normal(normal_given),
        mu(mu_given),
        ratio(tangent / normal),
        share(1 / (1 + mu * mu * ratio)) {
    const Tensor y_t = y.narrow(-1, 0, 2), y_n = y.select(-1, 2);
    const Tensor square = (y_t * y_t).sum(-1), moves = square > 0;
    const Tensor length = at::where(moves, square, 1).sqrt();  // so that the derivative at 0 is no NaN
    slip = at::where(moves, length, 0);
    along = y_t / length.unsqueeze(-1);
    const Tensor separate = y_n <= -mu * ratio * slip;
    sticking = ~separate & (mu > 0) & (slip <= mu * y_n);
    sliding = ~separate & ~sticking;
    gamma_n = at::where(sliding, (y_n + mu * ratio * slip) * share, at::where(sticking, y_n, 0));
    gamma = join(at::where(sliding.unsqueeze(-1), (mu * gamma_n).unsqueeze(-1) * along,
                           at::where(sticking.unsqueeze(-1), y_t, 0)),
                 gamma_n);
  }

  /// K = P'(y) R^-1, [..., 3, 3].
  Tensor compliance() const {
    const auto block = [](const Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1); };
    const Tensor moves = slip > 0;
    const Tensor around = at::where(sliding & moves, mu * gamma_n / (at::where(moves, slip, 1) * tangent), 0);
    const Tensor across = at::eye(2, along.options()) - along.unsqueeze(-1) * along.unsqueeze(-2);
    const Tensor direction = join(mu.unsqueeze(-1) * along, at::ones_like(mu));
    const Tensor slides = block(around) * at::constant_pad_nd(across, {0, 1, 0, 1}) +
                          block(share / normal) * direction.unsqueeze(-1) * direction.unsqueeze(-2);
    const Tensor R = at::stack({tangent, tangent, normal}, -1);
    const Tensor sticks = (1 / R).unsqueeze(-1) * at::eye(3, along.options());
    return at::where(block(sliding), slides, at::where(block(sticking), sticks, 0));
  }

  /// The change of gamma, [..., 3], for changes of R_t, R_n and mu, [...] each, at constant y.
  Tensor change(const Tensor& d_tangent, const Tensor& d_normal, const Tensor& d_mu) const {
    const Tensor d_ratio = (d_tangent - ratio * d_normal) / normal;
    const Tensor d_gamma_n = share * (mu * (slip - mu * gamma_n) * d_ratio + ratio * (slip - 2 * mu * gamma_n) * d_mu);
    const Tensor d_gamma = join((mu * d_gamma_n + gamma_n * d_mu).unsqueeze(-1) * along, d_gamma_n);
    return at::where(sliding.unsqueeze(-1), d_gamma, 0);
  }

  /// The transpose of `change`: the gradients with respect to R_t, R_n and mu for a gradient g, [..., 3], of gamma.
  std::tuple<Tensor, Tensor, Tensor> change_adjoint(const Tensor& g) const {
    const Tensor g_along = (along * g.narrow(-1, 0, 2)).sum(-1);
    const Tensor g_gamma_n = mu * g_along + g.select(-1, 2);
    const Tensor g_ratio = at::where(sliding, g_gamma_n * share * mu * (slip - mu * gamma_n), 0) / normal;
    const Tensor g_mu = g_gamma_n * share * ratio * (slip - 2 * mu * gamma_n) + gamma_n * g_along;
    return {g_ratio, -ratio * g_ratio, at::where(sliding, g_mu, 0)};
  }

 private:
  static Tensor join(const Tensor& tangents, const Tensor& of_normal) {
    return at::cat({tangents, of_normal.unsqueeze(-1)}, -1);
  }
};

}  // namespace lcp::contact
