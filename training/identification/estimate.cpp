#include "identification/estimate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "common/evaluation.h"
#include "common/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kNormalQuantile = 1.959963984540054;  // of 95 %

// The largest share of the normal impulse that friction took, of each particle: [b]; -1 where there was no contact.
Tensor used_friction(const physics::PointMassStep& step) {
  const Tensor friction = (step.lambda_plus - step.lambda_minus).abs();
  return at::where(step.lambda_n > 0, friction / step.lambda_n, -1).amax(0);
}

}  // namespace

double student_quantile(double nu) {
  const double z = kNormalQuantile, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * nu) + (5 * z5 + 16 * z3 + 3 * z) / (96 * nu * nu) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * nu * nu * nu);
}

Confidence confidence(const identification::LeastSquares& fit, double noise, const Tensor& data) {
  const bool known = !std::isnan(noise);
  const Tensor freedom = (data - fit.theta.size(-1)).clamp_min(1);
  Confidence result;
  result.noise = known ? at::full_like(fit.objective, noise) : (fit.objective / freedom).sqrt();
  result.std = identification::uncertainty(fit.jacobian, result.noise).std;
  Tensor quantile = at::full_like(fit.objective, kNormalQuantile);
  for (std::int64_t b = 0; b < quantile.size(0) && !known; ++b) {
    quantile[b] = student_quantile(freedom[b].item<double>());
  }
  const Tensor half = quantile.unsqueeze(-1) * result.std;
  result.interval = at::stack({fit.theta - half, fit.theta + half}, -1);
  return result;
}

std::vector<std::string> unobservable(const ParticleModel& model, const identification::LeastSquares& fit,
                                      const physics::PointMassSolution& rollout) {
  const Tensor used = used_friction(rollout.step);
  std::vector<std::string> lines;
  for (std::int64_t b = 0; b < fit.theta.size(0); ++b) {
    const std::string particle = fit.theta.size(0) > 1 ? "particle " + std::to_string(b) + ": " : "";
    Gauge gauge;
    gauge.add(fit.jacobian[b], model.names());
    for (const std::string direction : gauge.json()["unidentifiable_directions"]) {
      if (direction != "mu") {
        lines.push_back(particle + direction + " is not determined");
        continue;
      }
      const double least = used[b].item<double>();
      lines.push_back(
          particle + "mu is not determined: " +
          (least < 0 ? "it never touches the ground" : "it never slides; only mu >= " + short_number(least)));
    }
  }
  return lines;
}

Table fit_table(const Tracks& tracks, const Tensor& fitted) {
  Table table;
  const Tensor seen = tracks.seen.squeeze(-1).t().flatten() > 0;
  const auto add = [&](const char* name, const Tensor& x) {  // [steps + 1, b]
    const Tensor column = x.expand({tracks.steps() + 1, tracks.count()}).t().flatten().masked_select(seen);
    table.add(name, {column.const_data_ptr<double>(), column.const_data_ptr<double>() + column.numel()});
  };
  add("track", at::arange(tracks.count(), at::kDouble));
  add("time", tracks.dt * at::arange(tracks.steps() + 1, at::kDouble).unsqueeze(-1));
  add("x", tracks.observed.select(-1, 0));
  add("y", tracks.observed.select(-1, 1));
  add("x_fit", fitted.select(-1, 0));
  add("y_fit", fitted.select(-1, 1));
  return table;
}

}  // namespace lcp::training
