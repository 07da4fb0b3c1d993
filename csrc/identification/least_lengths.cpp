#include "lcp/identification/least_lengths.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "lcp/detail/one_thread.h"

namespace lcp::identification {
namespace {

using at::Tensor;
using detail::OneThread;

// Lengths are rounded off at 0 by this much.
constexpr double kFloor = 1e-2;

Tensor lengths_of(const Tensor& r) { return (r.square().sum(-1) + kFloor * kFloor).sqrt(); }

// A residual that is not finite counts as so long.
double sum_of_lengths(const Tensor& r) {
  constexpr double kFailed = 10;
  return lengths_of(r).nan_to_num(kFailed, kFailed, kFailed).sum().item<double>();
}

// The derivatives of a sum over residuals in own parameters, for each of the b.
struct OwnLocal {
  Tensor slope;      // [b, q]
  Tensor curvature;  // [b, q, q]
  Tensor mixed;      // [b, p, q], the derivatives of the slopes in the common parameters
};

// A sum without the own parameters: these are where it is least for the common ones.
struct Eliminated {
  Tensor to_slope, to_curvature;  // [b, p] and [p, p], to be subtracted
};

Eliminated eliminated(const OwnLocal& own) {
  const Tensor solved = at::linalg_solve(own.curvature, own.mixed.mT());  // [b, q, p]
  return {(own.slope.unsqueeze(-1) * solved).sum(-2), at::matmul(own.mixed, solved).sum(0)};
}

// The sum of the lengths at some parameters, and its derivatives.
struct Local {
  double sum;
  Tensor of_groups;  // [groups, p], the slopes of the sums of the groups
  Tensor A;          // [p, p], the curvature of a parabola that touches the sum from above
  Tensor H;          // [p, p], that of the sum itself
  OwnLocal own;      // of that parabola; undefined without own parameters
};

using ResidualsWithOwn = std::function<Tensor(const Tensor& theta, const Tensor& own)>;

class LengthsProblem {
 public:
  LengthsProblem(const ResidualsWithOwn& residuals, const Tensor& group, const LeastLengthsOptions& options)
      : residuals_(residuals), group_(group), options_(options) {}

  double sum(const Tensor& at, const Tensor& own) const {
    const Tensor r = residuals_(at, own);
    const OneThread one_thread;
    return sum_of_lengths(r) + prior(own);
  }

  Local local(const Tensor& at, const Tensor& own) const {
    constexpr double kLargestChange = 1;
    const std::int64_t p = at.size(0), q = own.size(1), groups = group_.max().item<std::int64_t>() + 1;
    // The residuals, and how they change with each of the parameters.
    const auto found = tasks(p + q + 1, [&](std::int64_t k) -> Tensor {
      const c10::NoGradGuard no_grad;
      if (k == 0) return residuals_(at, own);
      if (k <= p) {
        Tensor moved = at::zeros_like(at);
        moved[k - 1] = options_.step;
        return residuals_(at + moved, own) - residuals_(at - moved, own);
      }
      Tensor moved = at::zeros_like(own);
      moved.select(1, k - 1 - p).fill_(options_.own_step);
      return residuals_(at, own + moved) - residuals_(at, own - moved);
    });
    const Tensor& center = found.front();
    TORCH_CHECK(center.dim() >= 3 && center.size(-1) == 3 && center.size(-3) == group_.size(0),
                "residuals must be [..., ", group_.size(0), ", m, 3]; got ", center.sizes());
    Tensor kept = center.isfinite().all(-1);
    std::vector<Tensor> columns;
    for (std::int64_t k = 1; k <= p + q; ++k) {
      const Tensor& change = found[static_cast<std::size_t>(k)];
      kept = kept & (change.norm(2, {-1}) <= kLargestChange);
      columns.push_back(change / (2 * (k <= p ? options_.step : options_.own_step)));
    }
    const OneThread one_thread;  // products of matrices depend on the number of threads
    const Tensor r = at::where(kept.unsqueeze(-1), center, 0);
    const Tensor length = lengths_of(r);
    // [..., b, m, 3, p], and the same of own parameters.
    const Tensor all = at::where(kept.unsqueeze(-1).unsqueeze(-1), at::stack(columns, -1), 0);
    const Tensor J = all.narrow(-1, 0, p), direction = (r / length.unsqueeze(-1)).unsqueeze(-1);
    const Tensor slope = (J * direction).sum(-2);  // [..., b, m, p]
    const Tensor root = length.rsqrt().unsqueeze(-1);
    const auto products = [p](const Tensor& x) {
      const Tensor rows = x.reshape({-1, p});
      return rows.t().matmul(rows);
    };
    const auto of_each = [](const Tensor& x) {  // [..., b, m, n] -> [b, n]
      const Tensor sums = x.sum(-2);
      return sums.dim() > 2 ? sums.flatten(0, -3).sum(0) : sums;
    };
    Tensor of_b = of_each(slope), A = products(J * root.unsqueeze(-1)), H = A - products(slope * root);
    OwnLocal own_local;
    if (q > 0) {
      const Tensor own_J = all.narrow(-1, p, q), own_slope = (own_J * direction).sum(-2);
      // [b, rows, n] of [..., b, m, n]
      const auto rows_of_each = [](const Tensor& x) { return x.movedim(-3, 0).flatten(1, -2); };
      const auto blocks = [&](const Tensor& x) {  // [..., b, m, 3, n] -> [b, rows, n], weighted
        return (x * root.unsqueeze(-1)).flatten(-3, -2).movedim(-3, 0).flatten(1, -2);
      };
      const Tensor common = blocks(J), mine = blocks(own_J), one = at::eye(q, at.options());
      own_local = {of_each(own_slope) + own, at::matmul(mine.mT(), mine) + one, at::matmul(common.mT(), mine)};
      const Tensor common_along = rows_of_each(slope * root), own_along = rows_of_each(own_slope * root);
      const OwnLocal of_sum = {own_local.slope, own_local.curvature - at::matmul(own_along.mT(), own_along),
                               own_local.mixed - at::matmul(common_along.mT(), own_along)};
      const Eliminated parabola = eliminated(own_local);
      of_b = of_b - parabola.to_slope;
      A = A - parabola.to_curvature;
      H = H - eliminated(of_sum).to_curvature;
    }
    return {sum_of_lengths(center) + prior(own), at::zeros({groups, p}, at.options()).index_add(0, group_, of_b), A, H,
            own_local};
  }

 private:
  static double prior(const Tensor& own) { return own.numel() > 0 ? own.square().sum().item<double>() / 2 : 0; }

  std::vector<Tensor> tasks(std::int64_t count, const std::function<Tensor(std::int64_t)>& work) const {
    if (options_.tasks) return options_.tasks(count, work);
    std::vector<Tensor> all;
    all.reserve(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) all.push_back(work(k));
    return all;
  }

  const ResidualsWithOwn& residuals_;
  Tensor group_;
  const LeastLengthsOptions& options_;
};

constexpr double kSingular = 1e-12;

// H in units in which its diagonal is of ones, and these units.
std::pair<Tensor, Tensor> scaled(const Tensor& H) {
  const Tensor diagonal = H.diagonal(), scale = at::where(diagonal > 0, diagonal.rsqrt(), 0);
  return {scale.unsqueeze(1) * H * scale, scale};
}

// The pseudo-inverse of H + damping diag(H), which is symmetric.
Tensor inverse(const Tensor& H, double damping) {
  const auto [unit, scale] = scaled(H);
  const Tensor damped = unit + damping * at::eye(H.size(0), H.options());
  return at::linalg_pinv(damped, kSingular, /*hermitian=*/true) * scale.unsqueeze(1) * scale;
}

// The own parameters after a step in which the common ones change.
Tensor own_after(const Tensor& own, const OwnLocal& local, const Tensor& change, double damping) {
  if (own.size(1) == 0) return own;
  const OneThread one_thread;
  const Tensor slope = local.slope + at::matmul(local.mixed.mT(), change);
  const Tensor damped = local.curvature + damping * at::diag_embed(local.curvature.diagonal(0, -2, -1));
  return own - at::linalg_solve(damped, slope);
}

// Which parameters take part in a direction without curvature, so that the data do not determine them alone.
Tensor are_free(const Tensor& H) {
  constexpr double kPart = 1e-6;
  const auto [values, vectors] = at::linalg_eigh(scaled(H).first);
  const Tensor unseen = values <= kSingular * values.amax().clamp_min(std::numeric_limits<double>::min());
  return (vectors.square() * unseen).sum(1) > kPart;
}

}  // namespace

LeastLengths least_lengths(const std::function<Tensor(const Tensor&)>& residuals, const Tensor& start,
                           const Tensor& group, const LeastLengthsOptions& options) {
  const auto without_own = [&](const Tensor& theta, const Tensor& /*own*/) { return residuals(theta); };
  LeastLengths found = least_lengths(without_own, start, at::empty({group.size(0), 0}, at::kDouble), group, options);
  found.own = Tensor();
  return found;
}

LeastLengths least_lengths(const ResidualsWithOwn& residuals, const Tensor& start, const Tensor& own_start,
                           const Tensor& group, const LeastLengthsOptions& options) {
  constexpr double kFirstDamping = 1e-3, kLargestDamping = 10;
  TORCH_CHECK(start.dim() == 1 && start.size(0) >= 1 && start.scalar_type() == at::kDouble,
              "start must be [p], float64; got ", start.sizes(), ", ", start.scalar_type());
  TORCH_CHECK(group.dim() == 1 && group.size(0) >= 1 && group.scalar_type() == at::kLong,
              "group must be [b], int64; got ", group.sizes(), ", ", group.scalar_type());
  TORCH_CHECK(own_start.dim() == 2 && own_start.size(0) == group.size(0) && own_start.scalar_type() == at::kDouble,
              "own must be [", group.size(0), ", q], float64; got ", own_start.sizes(), ", ", own_start.scalar_type());
  TORCH_CHECK(options.step > 0, "step must be > 0; got ", options.step);
  TORCH_CHECK(options.own_step > 0, "own_step must be > 0; got ", options.own_step);
  const c10::NoGradGuard no_grad;
  Tensor at = start, own = own_start;
  const LengthsProblem problem(residuals, group, options);
  Local local = problem.local(at, own);
  std::int64_t iterations = options.max_iterations;
  for (double damping = kFirstDamping; iterations > 0 && damping <= kLargestDamping; --iterations) {
    const Tensor change = -inverse(local.A, damping).matmul(local.of_groups.sum(0));
    const Tensor next = at + change, own_next = own_after(own, local.own, change, damping);
    if (problem.sum(next, own_next) < local.sum) {
      at = next;
      own = own_next;
      local = problem.local(at, own);
      damping /= 10;
    } else {
      damping *= 10;
    }
  }
  const OneThread one_thread;
  const Tensor changes = local.of_groups.matmul(inverse(local.H, 0));  // that each group causes
  const Tensor std =
      at::where(are_free(local.H), std::numeric_limits<double>::infinity(), changes.square().sum(0).sqrt());
  return {at, changes.t().matmul(changes), std, -inverse(local.A, 0).matmul(local.of_groups.sum(0)), own};
}

}  // namespace lcp::identification
