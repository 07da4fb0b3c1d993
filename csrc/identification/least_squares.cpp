#include "lcp/identification/least_squares.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <limits>
#include <vector>

#include "lcp/solve_mixed.h"

namespace lcp::identification {
namespace {

using at::Tensor;

class DualLevel {
 public:
  DualLevel() : level_(torch::autograd::ForwardADLevel::get_next_idx()) {}
  ~DualLevel() { torch::autograd::ForwardADLevel::release_idx(level_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;

  std::int64_t level() const { return static_cast<std::int64_t>(level_); }

 private:
  std::uint64_t level_;
};

// These products are sums whose order does not depend on the size of the batch, as that of at::matmul does.
Tensor squares(const Tensor& r) { return r.square().sum(-1); }
Tensor gradient_of(const Linearization& at) { return (at.jacobian * at.residuals.unsqueeze(-1)).sum(-2); }

// J'J, a sum over the residuals in their order.
Tensor gram_of(const Linearization& at) {
  const Tensor J = at.jacobian.contiguous();
  const std::int64_t m = J.size(1), p = J.size(2);
  Tensor gram = at::zeros({J.size(0), p, p}, J.options());
  const double* const rows = J.const_data_ptr<double>();
  double* const grams = gram.mutable_data_ptr<double>();
  at::parallel_for(0, J.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      for (std::int64_t k = 0; k < m; ++k) {
        const double* const row = rows + (b * m + k) * p;
        for (std::int64_t i = 0; i < p; ++i) {
          double* const to = grams + (b * p + i) * p;
          for (std::int64_t j = 0; j < p; ++j) to[j] += row[i] * row[j];
        }
      }
    }
  });
  return gram;
}

// -A^-1 b, as a mixed LCP without complementary pairs: its result depends on A and b alone, whereas the rounding of
// LAPACK depends on the size of the batch.
Tensor solved(const Tensor& A, const Tensor& b) {
  const std::int64_t k = b.size(-1);
  const auto none = [&](at::IntArrayRef shape) { return at::empty(shape, b.options()); };
  return solve_mixed(A, none({k, 0}), none({0, k}), none({0, 0}), b, none({0})).x;
}

}  // namespace

Linearization linearize(const Residuals& residuals, const Tensor& theta) {
  const std::int64_t b = theta.size(0), p = theta.size(1);
  const DualLevel dual;
  const Tensor directions = at::eye(p, theta.options()).unsqueeze(1).expand({p, b, p});
  const Tensor points = at::_make_dual(theta.unsqueeze(0).expand({p, b, p}).contiguous(), directions, dual.level());
  const auto [value, tangent] = at::_unpack_dual(residuals(points), dual.level());
  const Tensor columns = tangent.defined() ? tangent : at::zeros_like(value);
  return {value[0].clone(), columns.permute({1, 2, 0}).contiguous()};
}

Linearization linearize_samples(const Residuals& residuals, const Tensor& theta, std::int64_t samples) {
  const c10::AutoGradMode grad(true);
  const Tensor rows = theta.detach().unsqueeze(1).expand({-1, samples, -1}).requires_grad_();
  const Tensor values = residuals(rows);
  const std::int64_t d = values.size(-1);
  std::vector<Tensor> gradients;
  gradients.reserve(d);
  for (std::int64_t k = 0; k < d; ++k) {
    gradients.push_back(torch::autograd::grad({values.select(-1, k).sum()}, {rows}, {}, k + 1 < d)[0]);
  }
  return {values.detach().flatten(1), at::stack(gradients, 2).flatten(1, 2)};
}

LeastSquares least_squares(const Residuals& residuals, const Tensor& start, const LeastSquaresOptions& options) {
  return least_squares([&](const Tensor& theta) { return linearize(residuals, theta); }, start, options);
}

LeastSquares least_squares(const std::function<Linearization(const Tensor&)>& linearized, const Tensor& start,
                           const LeastSquaresOptions& options) {
  TORCH_CHECK(start.dim() == 2 && start.scalar_type() == at::kDouble, "start must be [b, p], float64; got ",
              start.sizes(), ", ", start.scalar_type());
  const std::int64_t b = start.size(0), p = start.size(1);
  const Tensor lower = options.lower.defined()
                           ? options.lower
                           : at::full({p}, -std::numeric_limits<double>::infinity(), start.options());
  TORCH_CHECK(lower.sizes() == at::IntArrayRef({p}), "lower must be [", p, "]; got ", lower.sizes());

  const c10::NoGradGuard no_grad;
  Tensor theta = start.maximum(lower);
  Linearization here = linearized(theta);
  TORCH_CHECK(here.residuals.dim() == 2 && here.residuals.size(0) == b, "residuals must be [", b, ", m]; got ",
              here.residuals.sizes());
  Tensor objective = squares(here.residuals);
  const Tensor defined = objective.isfinite() & here.jacobian.isfinite().flatten(1).all(-1);
  Tensor running = defined.clone();
  Tensor iterations = at::zeros({b}, at::kLong);
  Tensor damping = at::full({b}, 1e-3, start.options()), growth = at::full({b}, 2, start.options());
  if (options.observer) options.observer(0, theta, objective);
  for (std::int64_t k = 0; k < options.max_iterations && running.any().item<bool>(); ++k) {
    // A parameter is held if a descent step would take it beyond its bound, or if the residuals do not depend on it.
    const Tensor slope = gradient_of(here);
    const Tensor held = (theta <= lower) & (slope > 0);
    const Tensor gram = gram_of(here);
    const Tensor scale = at::diagonal(gram, 0, -2, -1);
    const Tensor fixed = held | (scale == 0) | ~running.unsqueeze(-1);
    const Tensor moves = ~(fixed.unsqueeze(-1) | fixed.unsqueeze(-2));
    const Tensor damped =
        at::where(moves, gram, 0) + at::diag_embed(at::where(fixed, 1, damping.unsqueeze(-1) * scale));
    const Tensor step = solved(damped, at::where(fixed, 0, slope));
    const Tensor trial = (theta + step).maximum(lower);
    const Tensor taken = trial - theta;
    const Tensor change = (here.jacobian * taken.unsqueeze(-2)).sum(-1);
    running = running & (squares(change) > options.tolerance * options.tolerance * objective);
    if (!running.any().item<bool>()) break;

    const Linearization there = linearized(at::where(running.unsqueeze(-1), trial, theta));
    const Tensor next = squares(there.residuals);
    const Tensor predicted = objective - squares(here.residuals + change);
    const Tensor gain = (objective - next) / predicted;
    const Tensor finite = next.isfinite() & there.jacobian.isfinite().flatten(1).all(-1);
    const Tensor better = running & finite & (next < objective);
    damping = at::where(better, damping * (1 - (2 * gain - 1).pow(3)).clamp_min(1. / 3), damping * growth);
    growth = at::where(better, 2, 2 * growth);
    theta = at::where(better.unsqueeze(-1), trial, theta);
    objective = at::where(better, next, objective);
    here.residuals = at::where(better.unsqueeze(-1), there.residuals, here.residuals);
    here.jacobian = at::where(better.unsqueeze(-1).unsqueeze(-1), there.jacobian, here.jacobian);
    iterations += running.to(at::kLong);
    if (options.observer) options.observer(k + 1, theta, objective);
  }
  const auto status = [](LeastSquaresStatus s) { return static_cast<std::int64_t>(s); };
  return {theta,
          objective,
          here.residuals,
          here.jacobian,
          iterations,
          at::where(defined, at::where(running, status(LeastSquaresStatus::kStopped), 0),
                    status(LeastSquaresStatus::kUndefined))
              .to(at::kChar)};
}

}  // namespace lcp::identification
