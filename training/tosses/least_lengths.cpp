#include "tosses/least_lengths.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// Lengths are rounded off at 0 by this much.
constexpr double kFloor = 1e-2;
constexpr const char* kFound = "found";

Tensor lengths_of(const Tensor& r) { return (r.square().sum(-1) + kFloor * kFloor).sqrt(); }

// A residual that is not finite counts as so long.
double sum_of_lengths(const Tensor& r) {
  constexpr double kFailed = 10;
  return lengths_of(r).nan_to_num(kFailed, kFailed, kFailed).sum().item<double>();
}

// The sum of the lengths at some parameters, and its derivatives.
struct Local {
  double sum;
  Tensor of_tosses;  // [tosses, p], the slopes of the sums of the tosses
  Tensor A;          // [p, p], the curvature of a parabola that touches the sum from above
  Tensor H;          // [p, p], that of the sum itself
};

class Problem {
 public:
  Problem(const std::function<Tensor(const Tensor&)>& residuals, double step, const Tensor& toss)
      : residuals_(residuals), step_(step), toss_(toss) {}

  double sum(const Tensor& at) const {
    const Tensor r = residuals_(at);
    const OneThread one_thread;
    return sum_of_lengths(r);
  }

  Local local(const Tensor& at) const {
    constexpr double kLargestChange = 1;
    const std::int64_t p = at.size(0), tosses = toss_.max().item<std::int64_t>() + 1;
    // The residuals, and how they change with each of the parameters.
    const int threads = at::get_num_threads();
    const auto found = divide_tasks(p + 1, /*threads=*/1, [&](std::int64_t k) {
      const c10::NoGradGuard no_grad;
      at::set_num_threads(threads);  // for this task, since there is one at a time
      if (k == 0) return Checkpoint{{}, {{kFound, residuals_(at)}}};
      Tensor moved = at::zeros_like(at);
      moved[k - 1] = step_;
      return Checkpoint{{}, {{kFound, residuals_(at + moved) - residuals_(at - moved)}}};
    });
    const Tensor& center = found.front().tensors.at(kFound);
    Tensor kept = center.isfinite().all(-1);
    std::vector<Tensor> columns;
    for (std::size_t k = 1; k < found.size(); ++k) {
      const Tensor& change = found[k].tensors.at(kFound);
      kept = kept & (change.norm(2, {-1}) <= kLargestChange);
      columns.push_back(change / (2 * step_));
    }
    const OneThread one_thread;  // products of matrices depend on the number of threads
    const Tensor r = at::where(kept.unsqueeze(-1), center, 0);
    const Tensor length = lengths_of(r);
    const Tensor J = at::where(kept.unsqueeze(-1).unsqueeze(-1), at::stack(columns, -1), 0);  // [..., b, 2, 3, p]
    const Tensor slope = (J * (r / length.unsqueeze(-1)).unsqueeze(-1)).sum(-2);              // [..., b, 2, p]
    const Tensor root = length.rsqrt().unsqueeze(-1);
    const auto products = [p](const Tensor& x) {
      const Tensor rows = x.reshape({-1, p});
      return rows.t().matmul(rows);
    };
    const Tensor of_windows = slope.sum(-2).flatten(0, -3).sum(0);  // [b, p]
    const Tensor A = products(J * root.unsqueeze(-1));
    return {sum_of_lengths(center), at::zeros({tosses, p}, at.options()).index_add(0, toss_, of_windows), A,
            A - products(slope * root)};
  }

 private:
  const std::function<Tensor(const Tensor&)>& residuals_;
  double step_;
  Tensor toss_;
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

LeastLengths minimize_lengths(const std::function<Tensor(const Tensor&)>& residuals, Tensor at, double step,
                              const Tensor& toss, std::int64_t iterations) {
  constexpr double kFirstDamping = 1e-3, kLargestDamping = 10;
  const Problem problem(residuals, step, toss);
  Local local = problem.local(at);
  for (double damping = kFirstDamping; iterations > 0 && damping <= kLargestDamping; --iterations) {
    const Tensor next = at - inverse(local.A, damping).matmul(local.of_tosses.sum(0));
    if (problem.sum(next) < local.sum) {
      at = next;
      local = problem.local(at);
      damping /= 10;
    } else {
      damping *= 10;
    }
  }
  const OneThread one_thread;
  const Tensor variances = local.of_tosses.matmul(inverse(local.H, 0)).square().sum(0);
  return {at, at::where(are_free(local.H), std::numeric_limits<double>::infinity(), variances.sqrt()),
          -inverse(local.A, 0).matmul(local.of_tosses.sum(0))};
}

}  // namespace lcp::training
