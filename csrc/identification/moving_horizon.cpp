#include "lcp/identification/moving_horizon.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <tuple>
#include <vector>

#include "lcp/identification/least_squares.h"

namespace lcp::identification {
namespace {

using at::Tensor;

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

// R of J = Q R, for J of full column rank: (J'J)^-1 = R^-1 R^-T.
Tensor triangle(const Tensor& jacobian) { return std::get<1>(at::linalg_qr(jacobian, "r")); }

// D R^-1, a square root of the covariance of D theta.
Tensor root_of(const Tensor& D, const Tensor& R) {
  return at::linalg_solve_triangular(R, D, /*upper=*/true, /*left=*/false);
}

void check(const Tensor& mean, const Tensor& deviation, const MovingHorizonOptions& options) {
  TORCH_CHECK(mean.dim() == 2 && mean.scalar_type() == at::kDouble, "mean must be [b, d], float64; got ", mean.sizes(),
              ", ", mean.scalar_type());
  TORCH_CHECK(deviation.sizes() == mean.sizes() && deviation.scalar_type() == at::kDouble,
              "deviation must be of mean's shape and dtype; got ", deviation.sizes(), ", ", deviation.scalar_type());
  TORCH_CHECK(options.window >= 1, "window must be >= 1; got ", options.window);
  TORCH_CHECK(options.noises >= 0, "noises must be >= 0; got ", options.noises);
}

}  // namespace

MovingHorizon moving_horizon(const HorizonModel& model, const Tensor& mean, const Tensor& deviation, std::int64_t steps,
                             const MovingHorizonOptions& options) {
  check(mean, deviation, options);
  const c10::NoGradGuard no_grad;
  const std::int64_t b = mean.size(0), d = mean.size(1), r = options.noises;
  std::int64_t first = 0;  // s
  Tensor m = mean, L = at::diag_embed(deviation);
  Tensor theta = at::zeros_like(mean);  // (xi, w_s, w_s+1, ...)
  const auto start_of = [&](const Tensor& x) { return m + times(L, x.slice(-1, 0, d)); };
  const auto noise_of = [&](const Tensor& x, std::int64_t step) {
    const std::int64_t place = d + (step - first) * r;
    return x.slice(-1, place, place + r);
  };
  std::vector<Tensor> means, deviations, iterations;
  for (std::int64_t k = 0; k <= steps; ++k) {
    const auto fit = least_squares(
        [&](const Tensor& at) {
          Tensor x = start_of(at);
          std::vector<Tensor> errors = {at, model.residuals(x, first)};
          for (std::int64_t i = first; i < k; ++i) {
            x = model.propagate(x, noise_of(at, i));
            errors.push_back(model.residuals(x, i + 1));
          }
          return at::cat(errors, -1);
        },
        theta, {.max_iterations = options.max_iterations});
    theta = fit.theta;
    const Linearization present = linearize(
        [&](const Tensor& at) {
          Tensor x = start_of(at);
          for (std::int64_t i = first; i < k; ++i) x = model.propagate(x, noise_of(at, i));
          return x;
        },
        theta);
    means.push_back(present.residuals);
    deviations.push_back(root_of(present.jacobian, triangle(fit.jacobian)).square().sum(-1).sqrt());
    iterations.push_back(fit.iterations);

    if (k - first == options.window) {
      // The terms of xi, w_s and r_s, linearised at the fit, and x_s+1 as a function of xi and w_s. The least-squares
      // solution of these terms gives x_s+1 a mean and a covariance. With y below, xi' = Q'y puts x_s+1 where it is in
      // the fit.
      const Linearization leaving = linearize(
          [&](const Tensor& at) {
            const Tensor x = start_of(at);
            return at::cat({at, model.residuals(x, first), model.propagate(x, noise_of(at, first))}, -1);
          },
          theta.slice(-1, 0, d + r));
      const Tensor J = leaving.jacobian.slice(1, 0, -d), errors = leaving.residuals.slice(-1, 0, -d);
      const Tensor R = triangle(J);
      const Tensor root = root_of(leaving.jacobian.slice(1, -d), R);
      const Tensor slope = times(J.mT(), errors).unsqueeze(-1);
      const Tensor y = at::linalg_solve_triangular(R.mT(), slope, /*upper=*/false).squeeze(-1);
      const auto [Q, lower] = at::linalg_qr(root.mT());
      m = leaving.residuals.slice(-1, -d) - times(root, y);
      L = lower.mT();
      theta = at::cat({times(Q.mT(), y), theta.slice(-1, d + r)}, -1);
      ++first;
    }
    theta = at::cat({theta, at::zeros({b, r}, mean.options())}, -1);
  }
  return {at::stack(means), at::stack(deviations), at::stack(iterations)};
}

}  // namespace lcp::identification
