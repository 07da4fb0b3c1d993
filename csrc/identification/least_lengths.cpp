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

// The sum of the lengths at some parameters, and its derivatives.
struct Local {
  double sum;
  Tensor of_groups;  // [groups, p], the slopes of the sums of the groups
  Tensor A;          // [p, p], the curvature of a parabola that touches the sum from above
  Tensor H;          // [p, p], that of the sum itself
};

class LengthsProblem {
 public:
  LengthsProblem(const std::function<Tensor(const Tensor&)>& residuals, const Tensor& group,
                 const LeastLengthsOptions& options)
      : residuals_(residuals), group_(group), options_(options) {}

  double sum(const Tensor& at) const {
    const Tensor r = residuals_(at);
    const OneThread one_thread;
    return sum_of_lengths(r);
  }

  Local local(const Tensor& at) const {
    constexpr double kLargestChange = 1;
    const std::int64_t p = at.size(0), groups = group_.max().item<std::int64_t>() + 1;
    // The residuals, and how they change with each of the parameters.
    const auto found = tasks(p + 1, [&](std::int64_t k) -> Tensor {
      const c10::NoGradGuard no_grad;
      if (k == 0) return residuals_(at);
      Tensor moved = at::zeros_like(at);
      moved[k - 1] = options_.step;
      return residuals_(at + moved) - residuals_(at - moved);
    });
    const Tensor& center = found.front();
    TORCH_CHECK(center.dim() >= 3 && center.size(-1) == 3 && center.size(-3) == group_.size(0),
                "residuals must be [..., ", group_.size(0), ", m, 3]; got ", center.sizes());
    Tensor kept = center.isfinite().all(-1);
    std::vector<Tensor> columns;
    for (std::size_t k = 1; k < found.size(); ++k) {
      kept = kept & (found[k].norm(2, {-1}) <= kLargestChange);
      columns.push_back(found[k] / (2 * options_.step));
    }
    const OneThread one_thread;  // products of matrices depend on the number of threads
    const Tensor r = at::where(kept.unsqueeze(-1), center, 0);
    const Tensor length = lengths_of(r);
    const Tensor J = at::where(kept.unsqueeze(-1).unsqueeze(-1), at::stack(columns, -1), 0);  // [..., b, m, 3, p]
    const Tensor slope = (J * (r / length.unsqueeze(-1)).unsqueeze(-1)).sum(-2);              // [..., b, m, p]
    const Tensor root = length.rsqrt().unsqueeze(-1);
    const Tensor of_vectors = slope.sum(-2);  // [..., b, p]
    const Tensor of_b = of_vectors.dim() > 2 ? of_vectors.flatten(0, -3).sum(0) : of_vectors;
    const auto products = [p](const Tensor& x) {
      const Tensor rows = x.reshape({-1, p});
      return rows.t().matmul(rows);
    };
    const Tensor A = products(J * root.unsqueeze(-1));
    return {sum_of_lengths(center), at::zeros({groups, p}, at.options()).index_add(0, group_, of_b), A,
            A - products(slope * root)};
  }

 private:
  std::vector<Tensor> tasks(std::int64_t count, const std::function<Tensor(std::int64_t)>& work) const {
    if (options_.tasks) return options_.tasks(count, work);
    std::vector<Tensor> all;
    all.reserve(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) all.push_back(work(k));
    return all;
  }

  const std::function<Tensor(const Tensor&)>& residuals_;
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
  constexpr double kFirstDamping = 1e-3, kLargestDamping = 10;
  TORCH_CHECK(start.dim() == 1 && start.size(0) >= 1 && start.scalar_type() == at::kDouble,
              "start must be [p], float64; got ", start.sizes(), ", ", start.scalar_type());
  TORCH_CHECK(group.dim() == 1 && group.size(0) >= 1 && group.scalar_type() == at::kLong,
              "group must be [b], int64; got ", group.sizes(), ", ", group.scalar_type());
  TORCH_CHECK(options.step > 0, "step must be > 0; got ", options.step);
  const c10::NoGradGuard no_grad;
  Tensor at = start;
  const LengthsProblem problem(residuals, group, options);
  Local local = problem.local(at);
  std::int64_t iterations = options.max_iterations;
  for (double damping = kFirstDamping; iterations > 0 && damping <= kLargestDamping; --iterations) {
    const Tensor next = at - inverse(local.A, damping).matmul(local.of_groups.sum(0));
    if (problem.sum(next) < local.sum) {
      at = next;
      local = problem.local(at);
      damping /= 10;
    } else {
      damping *= 10;
    }
  }
  const OneThread one_thread;
  const Tensor changes = local.of_groups.matmul(inverse(local.H, 0));  // that each group causes
  const Tensor std =
      at::where(are_free(local.H), std::numeric_limits<double>::infinity(), changes.square().sum(0).sqrt());
  return {at, changes.t().matmul(changes), std, -inverse(local.A, 0).matmul(local.of_groups.sum(0))};
}

}  // namespace lcp::identification
