#include "identification/kalman_filter.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "lcp/identification/least_squares.h"

namespace lcp::training {
namespace {

using torch::Tensor;

struct Normal {
  Tensor mean, covariance;  // [b, n] and [b, n, n]
};

using Map = std::function<Tensor(const Tensor& x)>;  // [..., b, n] to [..., b, d]

Normal extended(const Map& step, const Normal& before) {
  const auto at = identification::linearize(step, before.mean);
  return {at.residuals, at.jacobian.matmul(before.covariance).matmul(at.jacobian.mT())};
}

Normal unscented(const Map& step, const Normal& before) {
  // The covariance has no Cholesky factor where a component is known.
  const auto [values, vectors] = at::linalg_eigh(before.covariance);
  const Tensor S = vectors * values.clamp_min(0).sqrt().unsqueeze(-2);
  const auto n = static_cast<double>(before.mean.size(-1));
  const Tensor reach = std::sqrt(n) * S.movedim(-1, 0);  // [n, b, n]
  const Tensor next = step(at::cat({before.mean + reach, before.mean - reach}));
  const Tensor mean = next.mean(0), from = (next - mean).movedim(0, -1);
  return {mean, from.matmul(from.mT()) / (2 * n)};
}

}  // namespace

Followed kalman_filter(KalmanFilter kind, const OnlineFlags& flags, const TrackProblem& problem,
                       const TrackModel& model, std::int64_t substeps,
                       const std::function<void(std::int64_t)>& progress) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t k = problem.reach.size(0), d = 1 + 2 * k, noises = problem.process.defined() ? k : 0;
  const Map step = [&](const Tensor& x) { return next_state(model, x.slice(-1, 0, d), x.slice(-1, d), substeps); };
  const auto [mean, deviation] = first_belief(flags, problem);
  Normal now{mean, at::diag_embed(deviation.square())};
  std::vector<Tensor> means = {now.mean}, deviations = {deviation};
  const Tensor noise = (problem.noise / problem.reach).square();
  for (std::int64_t t = 1; t <= tracks.steps(); ++t) {
    progress(t);
    const Tensor unit = at::diag_embed(at::ones({tracks.count(), noises}, at::kDouble));
    const Normal with_noise{
        at::constant_pad_nd(now.mean, {0, noises}),
        at::constant_pad_nd(now.covariance, {0, noises, 0, noises}) + at::constant_pad_nd(unit, {d, 0, d, 0})};
    now = kind == KalmanFilter::kExtended ? extended(step, with_noise) : unscented(step, with_noise);
    const Tensor of_q = now.covariance.slice(-1, 1, 1 + k);  // [b, d, k]
    const Tensor innovation = of_q.slice(-2, 1, 1 + k) + at::diag(noise);
    const Tensor gain = at::linalg_solve(innovation, of_q.mT()).mT() * tracks.seen[t].unsqueeze(-1);
    const Tensor error = tracks.observed[t] - now.mean.slice(-1, 1, 1 + k);
    now.mean = now.mean + (gain * error.unsqueeze(-2)).sum(-1);
    now.covariance = now.covariance - gain.matmul(of_q.mT());
    now.covariance = (now.covariance + now.covariance.mT()) / 2;
    means.push_back(now.mean);
    deviations.push_back(at::diagonal(now.covariance, 0, -2, -1).clamp_min(0).sqrt());
  }
  const Tensor all = at::stack(means), std = at::stack(deviations), mu = all.select(-1, 0);
  return {all, std, {}, {{"negative_mu_steps", (mu < 0).sum().item<std::int64_t>()}}};
}

}  // namespace lcp::training
