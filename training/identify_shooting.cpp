// Identifies friction and initial states from noisy tracks by least squares through the differentiable rollout.
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/evaluation.h"
#include "common/files.h"
#include "common/one_thread.h"
#include "common/text.h"
#include "identification/estimate.h"
#include "identification/particle.h"
#include "identification/shooting.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

struct Flags {
  RunFlags run;
  ParticleFlags particles;
  ShootingFlags shooting;
  std::int64_t monte_carlo = 0;

  void add_to(CommandLine& line) {
    run.add_to(line);
    particles.add_to(line);
    shooting.add_to(line);
    line.add<std::int64_t>("monte-carlo", monte_carlo,
                           "Repeat with the noise of so many seeds: does the spread agree with mu_std?", at_least_zero);
    line.footer(
        "Example: identify_shooting --estimate mu,q0,v0 --noise 0.05 --out runs/dual\n"
        "Data of your own: CSV with columns time,x,y (s, m, m; y above the ground), of equal steps, and optionally\n"
        "track; without it a track ends where time falls. --mass, --gravity and --force say what acts on it.");
  }
};

constexpr std::int64_t kProfile = 51;  // values of mu

// The objective of each track over the values of mu that it might have.
Table profile_of(const ParticleModel& model, const Shot& shot) {
  const double most = std::max(1.0, 1.5 * shot.fit.theta.select(-1, 0).max().item<double>());
  const Tensor mu = torch::linspace(0, most, kProfile, torch::kDouble);
  const Tensor objective = profile(model, shot.fit, mu);
  Table table;
  const auto add = [&](const std::string& name, const Tensor& x) {
    const Tensor column = x.contiguous();
    table.add(name, {column.const_data_ptr<double>(), column.const_data_ptr<double>() + column.numel()});
  };
  add("mu", mu);
  for (std::int64_t k = 0; k < objective.size(1); ++k) add("objective_" + std::to_string(k), objective.select(1, k));
  return table;
}

int identify_shooting(int argc, const char* const* argv) {
  CommandLine line(
      "identify_shooting",
      "Finds the friction, and if asked the start, of particles that fall and slide, from noisy tracks: the\n"
      "least squares of simulated less observed positions, by Levenberg-Marquardt with the exact derivative\n"
      "of the simulation; and says how sure it is, and what the tracks cannot tell.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.particles.settle(line);
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const ParticleProblem problem = load_particles(flags.run, flags.particles);
  const ParticleModel model(flags.particles, problem);
  const Shot shot = shoot(model, flags.particles.initial_mu, flags.shooting);
  const auto& fit = shot.fit;
  const Confidence sure = confidence(fit, problem.noise, 2 * problem.tracks.seen.sum({0, 2}));
  const auto rollout = model.rollout(fit.theta);
  const auto certificate = model.certify(fit.theta, rollout);
  nlohmann::json metrics = {
      {"unknowns", model.names()},
      {"mu", to_json(fit.theta.select(-1, 0))},
      {"mu_std", to_json(sure.std.select(-1, 0))},
      {"mu_interval", to_json(sure.interval.select(-2, 0))},
      {"theta", to_json(fit.theta)},
      {"theta_std", to_json(sure.std)},
      {"noise_std", to_json(sure.noise)},
      {"objective", fit.objective.sum().item<double>()},
      {"objectives", to_json(fit.objective)},
      {"iterations", fit.iterations.max().item<std::int64_t>()},
      {"unconverged", (fit.status != 0).sum().item<std::int64_t>()},
      {"escaped", shot.escaped.sum().item<std::int64_t>()},
      {"kinked_steps", to_json(certificate.kinked.to(torch::kDouble))},
      {"unobservable", unobservable(model, fit, rollout)},
  };
  if (problem.mu.defined()) {
    metrics["mu_error"] = to_json(fit.theta.select(-1, 0) - problem.mu);
    metrics["objective_over_noise_squared"] =
        fit.objective.sum().item<double>() / (flags.particles.noise * flags.particles.noise);
  }
  write_json(flags.run.out / "config.json", line.config());
  write_csv(flags.run.out / "fit.csv", fit_table(problem.tracks, model.positions(fit.theta)));
  write_csv(flags.run.out / "profile.csv", profile_of(model, shot));
  conclude(line, flags.run, metrics);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("identify_shooting", [&] { return identify_shooting(argc, argv); });
}
