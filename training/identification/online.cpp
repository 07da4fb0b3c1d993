#include "identification/online.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "identification/estimate.h"
#include "lcp/identification/interval.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// A row for each step of each track: track,step,time,mu,mu_std,mu_low,mu_high: from mu less two standard deviations and
// the bias to mu and as much.
Table history(const Tracks& tracks, const Followed& found, const Tensor& bias) {
  const Tensor mu = found.mean.select(-1, 0), deviation = found.std.select(-1, 0);
  const Tensor reach = 2 * deviation + identification::kBiasSafety * bias.abs();
  TrajectoryTable table = track_table(tracks);
  table.add_steps("step").add_steps("time", 0, tracks.dt).add("mu", mu).add("mu_std", deviation);
  table.add("mu_low", (mu - reach).clamp_min(0)).add("mu_high", mu + reach);
  for (const auto& [name, x] : found.columns) table.add(name, x);
  return table.take();
}

BodyState motion_of(const Tensor& state) {
  const std::int64_t k = (state.size(-1) - 1) / 2;
  return {state.slice(-1, 1, 1 + k), state.slice(-1, 1 + k)};
}

// A line for each track from which its motion, [steps + 1, b, k], is farther than the noise explains.
nlohmann::json unexplained_tracks(const TrackProblem& problem, const BodyState& followed) {
  const Tracks& tracks = problem.tracks;
  const Tensor error = (followed.position - tracks.observed) * problem.reach * tracks.seen;
  const Tensor seen = static_cast<double>(problem.reach.size(0)) * tracks.seen.sum({0, 2});
  const Tensor residual = (error.square().sum({0, 2}) / seen).sqrt();
  nlohmann::json lines = nlohmann::json::array();
  for (std::int64_t b = 0; b < tracks.count(); ++b) {
    const std::string track = tracks.count() > 1 ? "positions of track " + std::to_string(b) : "positions";
    const double allowed = problem.noise * std::sqrt(1 + kSuspicious * std::sqrt(2 / seen[b].item<double>()));
    for (const auto& line : unexplained(track, residual[b].item<double>(), allowed, " m")) lines.push_back(line);
  }
  return lines;
}

}  // namespace

void OnlineFlags::add_to(CommandLine& line, const std::string& help_of_largest_mu) {
  run.add_to(line, Precision::kFloat64);
  bodies.add_to(line);
  bodies.system().add_bodies_to(line);
  line.add("largest-mu", largest_mu, help_of_largest_mu, positive);
  line.add("velocity-std", velocity_std,
           "Standard deviation of the initial velocity about --velocity, m/s; angles count as lengths", nonnegative);
}

Tensor next_state(const TrackModel& model, const Tensor& x, const Tensor& noise, std::int64_t substeps) {
  const BodyState state = motion_of(x);
  const Tensor force = row(model.system().tracks.force), &process = model.problem().process;
  const Tensor u = process.defined() ? force + process * noise : force.expand_as(state.position);
  const BodyState next = model.step(state, x.select(-1, 0).clamp_min(0), u, substeps);
  return at::cat({x.slice(-1, 0, 1), next.position, next.velocity}, -1);
}

Belief first_belief(const OnlineFlags& flags, const TrackProblem& problem) {
  const Tensor& first = problem.tracks.observed[0];
  const Tensor mu = at::full({first.size(0), 1}, flags.largest_mu, at::kDouble);
  return {at::cat({mu / 2, first, problem.start.velocity}, -1),
          at::cat({mu / std::sqrt(12), (problem.noise / problem.reach).expand_as(first),
                   (flags.velocity_std / problem.reach).expand_as(first)},
                  -1)};
}

int follow_tracks(CommandLine& line, OnlineFlags& flags, int argc, const char* const* argv,
                  const std::string& needs_noise, const std::string& figure, const Follow& follow) {
  if (const auto status = line.parse(argc, argv)) return *status;
  TrackSystem& system = flags.bodies.system();
  system.validate(line, {});
  if (!(system.tracks.noise > 0)) throw UsageError("--noise must be > 0: " + needs_noise);
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = system.load(flags.run);
  OutputFolder out(line, flags.run);
  const TrackModel model(system, problem);
  const auto run = [&](std::int64_t substeps) {
    Progress progress(substeps > 1 ? "half steps" : "step", 0, problem.tracks.steps(), flags.run.quiet,
                      std::chrono::seconds(1));
    return follow(problem, model, substeps, [&](std::int64_t step) { progress.show(step, ""); });
  };
  const Followed found = run(1);
  const Tensor all_mu = found.mean.select(-1, 0), mu = all_mu[-1], mu_std = found.std[-1].select(-1, 0);
  const Tensor bias = problem.mu.defined() ? at::zeros_like(all_mu) : 2 * (all_mu - run(2).mean.select(-1, 0));
  const BodyState motion = motion_of(found.mean);
  nlohmann::json metrics = {{"mu", to_json(mu)},
                            {"mu_std", to_json(mu_std)},
                            {"mu_bias", to_json(bias[-1])},
                            {"unexplained", unexplained_tracks(problem, motion)}};
  if (!found.warning.empty()) metrics["unexplained"].push_back(found.warning);
  metrics.update(found.metrics);
  metrics.update(motion_errors(problem, motion));
  if (problem.mu.defined()) metrics["mu_error"] = to_json(mu - problem.mu);
  out.write_csv("history.csv", history(problem.tracks, found, bias));
  out.write_csv("fit.csv", fit_table(system.tracks, problem, motion));
  for (std::int64_t b = 0; b < mu.size(0) && !flags.run.quiet; ++b) {
    std::cout << padded("mu" + (mu.size(0) > 1 ? " of track " + std::to_string(b) : ""), 24)
              << short_number(mu[b].item<double>(), 6)
              << (found.prints_std ? " +- " + short_number(mu_std[b].item<double>(), 2) : "")
              << bias_text(problem, bias[-1][b]) << "\n";
  }
  if (!flags.run.quiet) std::cout << found.summary;
  write_results(out, metrics, {figure});
  return 0;
}

}  // namespace lcp::training
