#include "noise/perturbed_lcp.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace lcp::training {

using at::Tensor;

Solutions all_solutions(const Tensor& M, const Tensor& q, std::optional<double> tolerance) {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(M.dim() >= 2 && M.size(-1) == M.size(-2), "M must be [..., n, n]; got ", M.sizes());
  const std::int64_t n = M.size(-1);
  TORCH_CHECK(n >= 1 && n <= 10, "n must be from 1 to 10; got ", n);
  TORCH_CHECK(q.dim() >= 1 && q.size(-1) == n, "q must be [..., n] with n = ", n, "; got ", q.sizes());
  const bool known = M.scalar_type() == at::kDouble || M.scalar_type() == at::kFloat;
  TORCH_CHECK(known && q.scalar_type() == M.scalar_type(), "M and q must both be float64 or float32; got ",
              M.scalar_type(), " and ", q.scalar_type());

  const Tensor right = at::broadcast_tensors({q, M.select(-1, 0)})[0];
  const double relative = tolerance.value_or(M.scalar_type() == at::kDouble ? 1e-9 : 1e-4);
  const Tensor small = relative * right.abs().amax(-1);
  const std::int64_t bases = std::int64_t{1} << n;
  std::vector<std::int64_t> shape = right.sizes().vec();
  shape.insert(shape.begin(), bases);
  Solutions all{at::empty(shape, M.options()), at::empty({shape.data(), shape.size() - 1}, at::kBool)};
  for (std::int64_t k = 0; k < bases; ++k) {
    const Tensor basic = at::full({n}, k, at::kLong).bitwise_right_shift(at::arange(n)).bitwise_and(1).to(at::kBool);
    // The basic variables y solve w - M z = q, in which the nonbasic ones are 0.
    const Tensor columns = at::where(basic, -M, at::eye(n, M.options()));
    const Tensor y = std::get<0>(at::linalg_solve_ex(columns, right.unsqueeze(-1))).squeeze(-1);
    const Tensor error = ((columns * y.unsqueeze(-2)).sum(-1) - right).abs().amax(-1);  // inf or NaN where singular
    const Tensor z = at::where(basic, y, 0);
    const Tensor earlier = all.z.slice(0, 0, k);
    const Tensor same = (earlier - z).abs().amax(-1) <= small + relative * z.abs().amax(-1);
    all.z[k] = z;
    all.found[k] = (y.amin(-1) >= -small) & (error <= small) & ~(same & all.found.slice(0, 0, k)).any(0);
  }
  return all;
}

// With e = c force + b and t >= 0, lambda_plus = max(force, 0) + t and lambda_minus = max(-force, 0) + t give
//
//   w_1 = gamma + s + e,   w_2 = gamma + s - e,   w_3 = F - |force| - 2 t.
//
// Let t = (F - |force|) / 2 where s < 0, else 0. Then w_3 >= 0, with equality where s < 0 or |force| = F, and only
// there is gamma > 0. From c |force| = min(max(|b| - max(s, 0), 0), c F) follow
//
//   |e| = |b| - c |force| = max(min(|b|, max(s, 0)), |b| - c F),   gamma + s = max(max(s, 0), |b| - c F) >= |e|,
//
// so that w_1, w_2 >= 0. Where force != 0, |e| = gamma + s and e has the sign of b, so that w = 0 in the row of the
// force. Where t > 0, s < 0 and |force| < F, so that gamma + s = e = 0 and w_1 = w_2 = 0. This is therefore a
// solution. No other solution has another force, since M is positive semidefinite with z'Mz = c (lambda_plus -
// lambda_minus)^2; nor another gamma if F > 0.
BiasedFriction biased_friction(const Tensor& q, const Tensor& c) {
  TORCH_CHECK(q.dim() >= 1 && q.size(-1) == 3, "q must be [..., 3]; got ", q.sizes());
  const Tensor q_1 = q.select(-1, 0), q_2 = q.select(-1, 1), limit = q.select(-1, 2);
  const Tensor s = (q_1 + q_2) / 2, b = (q_1 - q_2) / 2;
  const auto positive_part = [](const Tensor& x) { return at::where(x < 0, 0, x); };  // with derivative 1 at 0
  const Tensor dead_zone = positive_part(s), excess = positive_part(b.abs() - dead_zone);
  const auto where_solved = [&](const Tensor& x) {
    return at::where(limit >= 0, x, std::numeric_limits<double>::quiet_NaN());
  };
  // dead_zone - s is max(-s, 0). In this form its derivative at s = 0 is that of lcp::solve, too.
  return {where_solved(-b.sign() * at::minimum(excess / c, limit)),
          where_solved(dead_zone - s + positive_part(excess - c * limit))};
}

}  // namespace lcp::training
