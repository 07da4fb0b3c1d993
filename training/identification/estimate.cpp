#include "identification/estimate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "lcp/identification/uncertainty.h"
#include "run/columns.h"
#include "run/files.h"
#include "run/identifiability.h"
#include "run/results.h"
#include "run/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kShown = 10;                    // the estimates of at most this many bodies are printed
constexpr std::int64_t kValues = 101;                  // objective.csv has this many equidistant values of mu
constexpr double kNormalQuantile = 1.959963984540054;  // 95 % of a normal distribution are within +- this

// The objective of each track as a function of mu, with the other unknowns as identified.
Table objective_table(const TrackModel& model, const Tensor& theta) {
  const Tensor found = theta.select(-1, 0);
  const Tensor grid = at::linspace(0, std::max(1.0, 1.5 * found.max().item<double>()), kValues, at::kDouble);
  const Tensor mu = std::get<0>(at::cat({grid, found}).sort());
  Tensor guesses = theta.expand({mu.size(0), -1, -1}).clone();
  guesses.select(-1, 0).copy_(mu.unsqueeze(-1).expand_as(guesses.select(-1, 0)));
  const Tensor objective = model.residuals(guesses).square().sum(-1);
  Table table;
  table.add("mu", entries_of(mu));
  for (std::int64_t k = 0; k < objective.size(1); ++k) {
    table.add("objective_" + std::to_string(k), entries_of(objective.select(1, k)));
  }
  return table;
}

// The quantile of Student's distribution with nu degrees of freedom that holds the middle 95 %.
//   [AS] Abramowitz, Stegun: Handbook of Mathematical Functions, 26.7.5.
double student_quantile(double nu) {
  const double z = kNormalQuantile, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * nu) + (5 * z5 + 16 * z3 + 3 * z) / (96 * nu * nu) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * nu * nu * nu);
}

// A line for each direction of the unknowns that the tracks do not determine: "track 2: mu is not determined: it never
// slides; only mu >= 0.8".
std::vector<std::string> unobservable(const TrackModel& model, const identification::LeastSquares& fit,
                                      const FrictionEvidence& evidence) {
  std::vector<std::string> lines;
  for (std::int64_t b = 0; b < fit.theta.size(0); ++b) {
    const std::string track = fit.theta.size(0) > 1 ? "track " + std::to_string(b) + ": " : "";
    IdentifiabilityReport identifiability;
    identifiability.add(fit.jacobian[b], model.names());
    const nlohmann::json known = identifiability.json();
    for (const std::string direction : known["unidentifiable_directions"]) {
      if (direction != "mu") {
        lines.push_back(track + direction + " is not determined");
        continue;
      }
      const double least = evidence.least_mu[b].item<double>();
      lines.push_back(track + "mu is not determined: " +
                      (least < 0                         ? "it never touches the ground"
                       : evidence.slides[b].item<bool>() ? "it has no effect on what is identified"
                                                         : "it never slides; only mu >= " + short_number(least)));
    }
  }
  return lines;
}

void print_estimates(const identification::LeastSquares& fit, const Confidence& accuracy,
                     const std::vector<std::string>& unknown) {
  const auto number = [](const Tensor& x, int digits) { return short_number(x.item<double>(), digits); };
  const std::int64_t count = fit.theta.size(0);
  for (std::int64_t b = 0; b < std::min(count, kShown); ++b) {
    std::cout << padded("mu" + (count > 1 ? " of track " + std::to_string(b) : ""), 24) << number(fit.theta[b][0], 8);
    if (accuracy.std[b][0].isfinite().item<bool>()) {
      std::cout << " +- " << number(accuracy.std[b][0], 2) << ", 95 %: " << number(accuracy.interval[b][0][0], 8)
                << " to " << number(accuracy.interval[b][0][1], 8);
    }
    std::cout << "\n";
  }
  if (count > kShown) std::cout << "and " << count - kShown << " more tracks in metrics.json\n";
  for (const std::string& line : unknown) std::cout << line << "\n";
}

}  // namespace

Confidence confidence(const TrackProblem& problem, const identification::LeastSquares& fit) {
  const bool known = !std::isnan(problem.noise);
  const Tensor observed = static_cast<double>(problem.reach.size(0)) * problem.tracks.seen.sum({0, 2});
  const Tensor freedom = (observed - fit.theta.size(-1)).clamp_min(1);
  Confidence result;
  result.noise = known ? at::full_like(fit.objective, problem.noise) : (fit.objective / freedom).sqrt();
  result.std = identification::uncertainty(fit.jacobian, result.noise).std;
  Tensor quantile = at::full_like(fit.objective, kNormalQuantile);
  for (std::int64_t b = 0; b < quantile.size(0) && !known; ++b) {
    quantile[b] = student_quantile(freedom[b].item<double>());
  }
  const Tensor half = quantile.unsqueeze(-1) * result.std;
  result.interval = at::stack({fit.theta - half, fit.theta + half}, -1);
  return result;
}

Table fit_table(const TrackFlags& flags, const Tracks& tracks, const Tensor& fitted) {
  Table table;
  add_column(table, "track", tracks, at::arange(tracks.count(), at::kDouble));
  add_column(table, "time", tracks, tracks.dt * at::arange(tracks.steps() + 1, at::kDouble).unsqueeze(-1));
  const auto add = [&](const char* suffix, const Tensor& x) {
    for (std::size_t k = 0; k < flags.coordinates.size(); ++k) {
      add_column(table, flags.coordinates[k] + suffix, tracks, x.select(-1, static_cast<std::int64_t>(k)));
    }
  };
  add("", tracks.observed);
  add("_fit", fitted);
  return table;
}

nlohmann::json write_estimate(OutputFolder& out, const TrackFlags& flags, const TrackProblem& problem,
                              const TrackModel& model, const identification::LeastSquares& fit) {
  const Confidence accuracy = confidence(problem, fit);
  const FrictionEvidence evidence = model.evidence(fit.theta);
  const double objective = fit.objective.sum().item<double>();
  nlohmann::json metrics = {
      {"unknowns", model.names()},
      {"mu", to_json(fit.theta.select(-1, 0))},
      {"mu_std", to_json(accuracy.std.select(-1, 0))},
      {"mu_interval", to_json(accuracy.interval.select(-2, 0))},
      {"theta", to_json(fit.theta)},
      {"theta_std", to_json(accuracy.std)},
      {"noise_std", to_json(accuracy.noise)},
      {"objective", objective},
      {"objectives", to_json(fit.objective)},
      {"kinked_steps", to_json(evidence.certificate.kinked.to(at::kDouble))},
      {"tied_steps", to_json(evidence.certificate.tied.to(at::kDouble))},
      {"unobservable", unobservable(model, fit, evidence)},
  };
  if (flags.noise > 0) metrics["objective_over_noise_squared"] = objective / (flags.noise * flags.noise);
  if (problem.mu.defined()) metrics["mu_error"] = to_json(fit.theta.select(-1, 0) - problem.mu);
  out.write_csv("fit.csv", fit_table(flags, problem.tracks, model.positions(fit.theta)));
  out.write_csv("objective.csv", objective_table(model, fit.theta));
  if (!out.quiet()) print_estimates(fit, accuracy, metrics["unobservable"]);
  return metrics;
}

nlohmann::json monte_carlo_metrics(const TrackFlags& flags, const TrackProblem& problem,
                                   const identification::LeastSquares& fit, std::int64_t repeats) {
  const Confidence accuracy = confidence(problem, fit);
  const auto by_seed = [&](const Tensor& x) { return x.view({repeats, -1}); };
  const Tensor mu = by_seed(fit.theta.select(-1, 0)), truth = by_seed(problem.mu);
  const Tensor interval = accuracy.interval.select(-2, 0);
  const Tensor covered = (by_seed(interval.select(-1, 0)) <= truth) & (truth <= by_seed(interval.select(-1, 1)));
  return {{"seeds", repeats},
          {"mu_mean", to_json(mu.mean(0))},
          {"mu_std", to_json((mu - truth).square().mean(0).sqrt())},
          {"predicted_mu_std", to_json(by_seed(accuracy.std.select(-1, 0)).mean(0))},
          {"covered_by_interval", covered.to(at::kDouble).mean().item<double>()},
          {"objective_over_noise_squared", fit.objective.mean().item<double>() / (flags.noise * flags.noise)},
          {"iterations", fit.iterations.to(at::kDouble).mean().item<double>()},
          {"unconverged", (fit.status != 0).sum().item<std::int64_t>()}};
}

}  // namespace lcp::training
