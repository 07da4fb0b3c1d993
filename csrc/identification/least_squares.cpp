#include "lcp/identification/least_squares.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

namespace lcp::identification {
namespace {

using at::Tensor;

constexpr double kRounding = std::numeric_limits<double>::epsilon();
// The largest multiple of the rounding of theta that counts as round-off of the residuals.
constexpr double kRoundOff = 1000;
// The largest multiple of the tolerance that the cosines between the residuals and the columns of the Jacobian have at
// a minimum. The tolerance itself bounds the last step, which damping makes shorter than the distance from the minimum.
constexpr double kStationary = 100;

// A level of forward-mode differentiation. PyTorch has only one for all threads, so that a second thread waits.
class DualLevel {
 public:
  DualLevel() : lock_(lock()), level_(torch::autograd::ForwardADLevel::get_next_idx()) { is_mine_ = true; }
  ~DualLevel() {
    torch::autograd::ForwardADLevel::release_idx(level_);
    is_mine_ = false;
  }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;

  std::int64_t level() const { return static_cast<std::int64_t>(level_); }

 private:
  static std::unique_lock<std::mutex> lock() {
    TORCH_CHECK(!is_mine_, "residuals must not be linearized within residuals: there is one level of forward mode");
    return std::unique_lock(mutex_);
  }

  static inline std::mutex mutex_;
  static inline thread_local bool is_mine_ = false;
  std::unique_lock<std::mutex> lock_;
  std::uint64_t level_;
};

// Sums of products whose order does not depend on the size of the batch, unlike the order of at::matmul.
Tensor squares(const Tensor& r) { return r.square().sum(-1); }
Tensor gradient_of(const Linearization& at) { return (at.jacobian * at.residuals.unsqueeze(-1)).sum(-2); }

// J'J. Each product is computed by one thread, from memory with the same alignment. So its rounding depends neither on
// the other problems nor on the number of threads.
Tensor gram_of(const Linearization& at) {
  const std::int64_t count = at.jacobian.size(0), p = at.jacobian.size(2);
  Tensor gram = at::empty({count, p, p}, at.jacobian.options());
  // A parallel_for with a single item would open no parallel region, and mm would divide its work among the threads.
  at::parallel_for(0, std::max<std::int64_t>(count, 2), 1, [&](std::int64_t begin, std::int64_t end) {
    const c10::NoGradGuard no_grad;
    for (std::int64_t b = begin; b < std::min(end, count); ++b) {
      const Tensor J = at.jacobian[b].clone(at::MemoryFormat::Contiguous);
      gram[b].copy_(at::mm(J.t(), J));
    }
  });
  return gram;
}

// -A^-1 b for symmetric positive definite A, one problem after the other: the rounding of a batched LAPACK routine
// depends on the size of the batch.
Tensor solved(const Tensor& A, const Tensor& b) {
  const std::int64_t p = b.size(1);
  const Tensor matrices = A.contiguous(), x = at::empty_like(b, at::MemoryFormat::Contiguous);
  const Tensor vectors = b.contiguous();
  at::parallel_for(0, b.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    Eigen::LDLT<Eigen::MatrixXd> factors(p);
    for (std::int64_t k = begin; k < end; ++k) {
      factors.compute(Eigen::Map<const Eigen::MatrixXd>(matrices.const_data_ptr<double>() + k * p * p, p, p));
      const Eigen::Map<const Eigen::VectorXd> of_one(vectors.const_data_ptr<double>() + k * p, p);
      Eigen::Map<Eigen::VectorXd>(x.mutable_data_ptr<double>() + k * p, p) = -factors.solve(of_one);
    }
  });
  return x;
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

LeastSquares least_squares(const Residuals& residuals, const Tensor& start, const LeastSquaresOptions& options) {
  // The residuals are evaluated for all problems; problems that have ended are evaluated at their start.
  const auto linearized = [&](const Tensor& theta, const Tensor& rows) {
    if (rows.size(0) == start.size(0)) return linearize(residuals, theta);
    const Linearization all = linearize(residuals, start.index_copy(0, rows, theta));
    return Linearization{all.residuals.index_select(0, rows), all.jacobian.index_select(0, rows)};
  };
  return least_squares(linearized, start, options);
}

LeastSquares least_squares(const std::function<Linearization(const Tensor&, const Tensor&)>& linearized,
                           const Tensor& start, const LeastSquaresOptions& options) {
  TORCH_CHECK(start.dim() == 2 && start.scalar_type() == at::kDouble, "start must be [b, p], float64; got ",
              start.sizes(), ", ", start.scalar_type());
  const std::int64_t b = start.size(0), p = start.size(1);
  const Tensor lower = options.lower.defined()
                           ? options.lower
                           : at::full({p}, -std::numeric_limits<double>::infinity(), start.options());
  TORCH_CHECK(lower.sizes() == at::IntArrayRef({p}), "lower must be [", p, "]; got ", lower.sizes());

  const c10::NoGradGuard no_grad;
  LeastSquares all;
  all.theta = start.maximum(lower);
  Linearization here = linearized(all.theta, at::arange(b));
  TORCH_CHECK(here.residuals.dim() == 2 && here.residuals.size(0) == b, "residuals must be [", b, ", m]; got ",
              here.residuals.sizes());
  const double least_scale = options.least_curvature * static_cast<double>(here.residuals.size(1));
  all.residuals = here.residuals.clone();
  all.jacobian = here.jacobian.clone();
  all.objective = squares(here.residuals);
  all.iterations = at::zeros({b}, at::kLong);
  const auto code = [](LeastSquaresStatus s) { return static_cast<std::int64_t>(s); };
  const Tensor defined = all.objective.isfinite() & here.jacobian.isfinite().flatten(1).all(-1);
  all.status =
      at::where(defined, code(LeastSquaresStatus::kStopped), code(LeastSquaresStatus::kUndefined)).to(at::kChar);
  if (options.observer) options.observer(0, all.theta, all.objective);

  // The tensors below have a row for each problem that goes on, whose numbers are `rows`.
  Tensor rows = at::arange(b);
  Tensor theta = all.theta, objective = all.objective;
  Tensor damping = at::full({b}, 1e-3, start.options()), growth = at::full({b}, 2, start.options());
  const auto keep = [&](const Tensor& kept) {
    if (kept.all().item<bool>()) return;
    const Tensor left = kept.nonzero().squeeze(-1);
    for (Tensor* x : {&rows, &theta, &objective, &damping, &growth, &here.residuals, &here.jacobian}) {
      *x = x->index_select(0, left);
    }
  };
  const auto store = [&](const Tensor& to, const Tensor& from, const Tensor& chosen) {
    const Tensor which = chosen.nonzero().squeeze(-1);
    to.index_copy_(0, rows.index_select(0, which), from.index_select(0, which));
  };
  keep(defined);
  for (std::int64_t k = 0; k < options.max_iterations && rows.numel() > 0; ++k) {
    // A parameter is held if a descent step would take it beyond its bound, or if the residuals do not depend on it.
    const Tensor slope = gradient_of(here);
    const Tensor gram = gram_of(here);
    const Tensor scale = at::diagonal(gram, 0, -2, -1);
    const Tensor fixed = ((theta <= lower) & (slope > 0)) | (scale == 0);
    const Tensor moves = ~(fixed.unsqueeze(-1) | fixed.unsqueeze(-2));
    const Tensor damped = at::where(moves, gram, 0) +
                          at::diag_embed(at::where(fixed, 1, damping.unsqueeze(-1) * scale.clamp_min(least_scale)));
    const Tensor step = solved(damped, at::where(fixed, 0, slope));
    Tensor trial = (theta + step).maximum(lower);
    Tensor change = (here.jacobian * (trial - theta).unsqueeze(-2)).sum(-1);
    // A step within the rounding of theta, with parameters in units in which they change the residuals by 1, changes
    // the residuals by no more than their own rounding.
    const Tensor size = (scale * theta.square()).sum(-1), moved = (scale * (trial - theta).square()).sum(-1);
    const Tensor goes_on =
        (squares(change) > options.tolerance * options.tolerance * objective) & (moved > kRounding * kRounding * size);
    if (!goes_on.all().item<bool>()) {
      const double cosine = kStationary * options.tolerance, rounding = kRoundOff * kRounding;
      const Tensor along = at::where(fixed, 0, slope.square() / scale).sum(-1);
      const Tensor stationary = (along <= cosine * cosine * objective) | (objective <= rounding * rounding * size);
      const Tensor status =
          at::where(stationary, code(LeastSquaresStatus::kConverged), code(LeastSquaresStatus::kStalled));
      store(all.status, status.to(at::kChar), ~goes_on);
      const Tensor left = goes_on.nonzero().squeeze(-1);
      trial = trial.index_select(0, left);
      change = change.index_select(0, left);
      keep(goes_on);
      if (rows.numel() == 0) break;
    }

    const Linearization there = linearized(trial, rows);
    const Tensor next = squares(there.residuals);
    const Tensor predicted = objective - squares(here.residuals + change);
    const Tensor gain = (objective - next) / predicted;
    const Tensor finite = next.isfinite() & there.jacobian.isfinite().flatten(1).all(-1);
    const Tensor better = finite & (next < objective);
    damping = at::where(better, damping * (1 - (2 * gain - 1).pow(3)).clamp_min(1. / 3), damping * growth);
    growth = at::where(better, 2, 2 * growth);
    theta = at::where(better.unsqueeze(-1), trial, theta);
    objective = at::where(better, next, objective);
    here.residuals = at::where(better.unsqueeze(-1), there.residuals, here.residuals);
    here.jacobian = at::where(better.unsqueeze(-1).unsqueeze(-1), there.jacobian, here.jacobian);
    store(all.theta, theta, better);
    store(all.objective, objective, better);
    store(all.residuals, here.residuals, better);
    store(all.jacobian, here.jacobian, better);
    all.iterations.index_add_(0, rows, at::ones_like(rows));
    if (options.observer) options.observer(k + 1, all.theta, all.objective);
  }
  return all;
}

}  // namespace lcp::identification
