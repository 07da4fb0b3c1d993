// Identifies friction and initial states from noisy tracks by least squares through the differentiable rollout.
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <string>

#include "common/command_line.h"
#include "common/error.h"
#include "common/evaluation.h"
#include "common/files.h"
#include "common/one_thread.h"
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

// Whether the spread of the estimates over other noise is what their uncertainty says.
nlohmann::json monte_carlo(const Flags& flags) {
  const ParticleProblem problem = repeat_particles(flags.run, flags.particles, flags.monte_carlo);
  const ParticleModel model(flags.particles, problem);
  const auto fit = shoot(model, flags.particles.initial_mu, flags.shooting).fit;
  const Confidence sure = confidence(fit, problem.noise, 2 * problem.tracks.seen.sum({0, 2}));
  const auto by_seed = [&](const Tensor& x) { return x.view({flags.monte_carlo, flags.particles.particles}); };
  const Tensor mu = by_seed(fit.theta.select(-1, 0)), truth = by_seed(problem.mu);
  const Tensor predicted = by_seed(sure.std.select(-1, 0)), interval = sure.interval.select(-2, 0);
  const Tensor covered = (by_seed(interval.select(-1, 0)) <= truth) & (truth <= by_seed(interval.select(-1, 1)));
  return {{"seeds", flags.monte_carlo},
          {"mu_mean", to_json(mu.mean(0))},
          {"mu_std", to_json((mu - truth).square().mean(0).sqrt())},
          {"predicted_mu_std", to_json(predicted.mean(0))},
          {"covered_by_interval", covered.to(torch::kDouble).mean().item<double>()},
          {"objective_over_noise_squared",
           fit.objective.mean().item<double>() / (flags.particles.noise * flags.particles.noise)},
          {"iterations", fit.iterations.to(torch::kDouble).mean().item<double>()},
          {"unconverged", (fit.status != 0).sum().item<std::int64_t>()}};
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
  flags.particles.settle(line, flags.run);
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const ParticleProblem problem = load_particles(flags.run, flags.particles);
  const ParticleModel model(flags.particles, problem);
  const Shot shot = shoot(model, flags.particles.initial_mu, flags.shooting);
  nlohmann::json metrics = report(flags.run, flags.particles, problem, model, shot.fit);
  metrics.update({{"iterations", shot.fit.iterations.max().item<std::int64_t>()},
                  {"unconverged", (shot.fit.status != 0).sum().item<std::int64_t>()},
                  {"escaped", shot.escaped.sum().item<std::int64_t>()}});
  if (flags.monte_carlo > 0) metrics["monte_carlo"] = monte_carlo(flags);
  write_json(flags.run.out / "config.json", line.config());
  conclude(line, flags.run, metrics);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("identify_shooting", [&] { return identify_shooting(argc, argv); });
}
