#include "identification/estimate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "common/evaluation.h"
#include "common/files.h"
#include "common/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kShown = 10;                    // particles on the console
constexpr std::int64_t kValues = 101;                  // of mu
constexpr double kNormalQuantile = 1.959963984540054;  // of 95 %

// The largest share of the normal impulse that friction took, of each particle: [b]; -1 where there was no contact.
Tensor used_friction(const physics::PointMassStep& step) {
  const Tensor friction = (step.lambda_plus - step.lambda_minus).abs();
  return at::where(step.lambda_n > 0, friction / step.lambda_n, -1).amax(0);
}

// The objective of each track over the values of mu that it might have, all else as identified.
Table objective_table(const ParticleModel& model, const Tensor& theta) {
  const Tensor found = theta.select(-1, 0);
  const Tensor grid = at::linspace(0, std::max(1.0, 1.5 * found.max().item<double>()), kValues, at::kDouble);
  const Tensor mu = std::get<0>(at::cat({grid, found}).sort());
  Tensor guesses = theta.expand({mu.size(0), -1, -1}).clone();
  guesses.select(-1, 0).copy_(mu.unsqueeze(-1).expand_as(guesses.select(-1, 0)));
  const Tensor objective = model.residuals(guesses).square().sum(-1);
  Table table;
  const auto add = [&](const std::string& name, const Tensor& x) {
    const Tensor column = x.contiguous();
    table.add(name, {column.const_data_ptr<double>(), column.const_data_ptr<double>() + column.numel()});
  };
  add("mu", mu);
  for (std::int64_t k = 0; k < objective.size(1); ++k) add("objective_" + std::to_string(k), objective.select(1, k));
  return table;
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

void tell(const identification::LeastSquares& fit, const Confidence& sure, const std::vector<std::string>& unknown) {
  const auto number = [](const Tensor& x, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, x.item<double>());
    return std::string(text);
  };
  const std::int64_t count = fit.theta.size(0);
  for (std::int64_t b = 0; b < std::min(count, kShown); ++b) {
    std::cout << padded("mu" + (count > 1 ? " of particle " + std::to_string(b) : ""), 24)
              << number(fit.theta[b][0], "%.8g");
    if (sure.std[b][0].isfinite().item<bool>()) {
      std::cout << " +- " << number(sure.std[b][0], "%.2g") << ", 95 %: " << number(sure.interval[b][0][0], "%.8g")
                << " to " << number(sure.interval[b][0][1], "%.8g");
    }
    std::cout << "\n";
  }
  if (count > kShown) std::cout << "and " << count - kShown << " more in metrics.json\n";
  for (const std::string& line : unknown) std::cout << line << "\n";
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
  const Tensor slides = ((rollout.step.lambda_n > 0) & (rollout.step.next.velocity.select(-1, 0) != 0)).any(0);
  std::vector<std::string> lines;
  for (std::int64_t b = 0; b < fit.theta.size(0); ++b) {
    const std::string particle = fit.theta.size(0) > 1 ? "particle " + std::to_string(b) + ": " : "";
    Gauge gauge;
    gauge.add(fit.jacobian[b], model.names());
    const nlohmann::json known = gauge.json();
    for (const std::string direction : known["unidentifiable_directions"]) {
      if (direction != "mu") {
        lines.push_back(particle + direction + " is not determined");
        continue;
      }
      const double least = used[b].item<double>();
      lines.push_back(particle + "mu is not determined: " +
                      (least < 0                ? "it never touches the ground"
                       : slides[b].item<bool>() ? "it has no effect on what is identified"
                                                : "it never slides; only mu >= " + short_number(least)));
    }
  }
  return lines;
}

nlohmann::json report(const RunFlags& run, const ParticleFlags& flags, const ParticleProblem& problem,
                      const ParticleModel& model, const identification::LeastSquares& fit) {
  const Confidence sure = confidence(fit, problem.noise, 2 * problem.tracks.seen.sum({0, 2}));
  const auto rollout = model.rollout(fit.theta);
  const auto certificate = model.certify(fit.theta, rollout);
  const double objective = fit.objective.sum().item<double>();
  nlohmann::json metrics = {
      {"unknowns", model.names()},
      {"mu", to_json(fit.theta.select(-1, 0))},
      {"mu_std", to_json(sure.std.select(-1, 0))},
      {"mu_interval", to_json(sure.interval.select(-2, 0))},
      {"theta", to_json(fit.theta)},
      {"theta_std", to_json(sure.std)},
      {"noise_std", to_json(sure.noise)},
      {"objective", objective},
      {"objectives", to_json(fit.objective)},
      {"kinked_steps", to_json(certificate.kinked.to(at::kDouble))},
      {"tied_steps", to_json(certificate.tied.to(at::kDouble))},
      {"unobservable", unobservable(model, fit, rollout)},
  };
  if (flags.noise > 0) metrics["objective_over_noise_squared"] = objective / (flags.noise * flags.noise);
  if (problem.mu.defined()) metrics["mu_error"] = to_json(fit.theta.select(-1, 0) - problem.mu);
  std::error_code none;
  std::filesystem::remove(run.out / "metrics.json", none);  // until there is a new one
  write_csv(run.out / "fit.csv", fit_table(problem.tracks, model.positions(fit.theta)));
  write_csv(run.out / "objective.csv", objective_table(model, fit.theta));
  if (!run.quiet) tell(fit, sure, metrics["unobservable"]);
  return metrics;
}

}  // namespace lcp::training
