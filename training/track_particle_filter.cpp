// Tracks particles that fall and slide with a bootstrap filter, and counts the distinct particles that resampling
// leaves.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include "identification/estimate.h"
#include "identification/system.h"
#include "lcp/identification/particle_filter.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/files.h"
#include "run/one_thread.h"
#include "run/output_folder.h"
#include "run/progress.h"
#include "run/random.h"
#include "run/results.h"
#include "run/text.h"

namespace {

using namespace lcp::training;
using lcp::identification::ParticleFilter;
using torch::Tensor;

struct Flags {
  SystemFlag bodies;
  RunFlags run = {};
  std::int64_t particles = 500;
  double largest_mu = 1;
  double velocity_std = 0;
  double roughening = 0;

  void add_to(CommandLine& line) {
    run.add_to(line, Precision::kFloat64);
    bodies.add_to(line);
    bodies.system().add_bodies_to(line);
    line.add<std::int64_t>("particles", particles, "Number of the filter's particles for each track", at_least_one);
    line.add<double>("largest-mu", largest_mu,
                     "Upper bound of mu of the filter's initial particles, which is uniform from 0", positive);
    line.add<double>("velocity-std", velocity_std,
                     "Standard deviation of their initial velocities about --velocity, m/s; angles count as lengths",
                     nonnegative);
    line.add<double>(
        "roughening", roughening,
        "Noise added after each resampling, relative to the particles' range; 0: none, a usual value is 0.2",
        nonnegative);
    line.footer(
        "Examples: track_particle_filter --noise 0.05 --out runs/bootstrap\n"
        "          track_particle_filter --noise 0.05 --roughening 0.2 --out runs/roughened\n"
        "          track_particle_filter --system tripod --process-noise 0.5 --out runs/tripod\n"
        "Data of your own: CSV as for identify_shooting and identify_tripod. --noise must be that of the data. The "
        "initial\n"
        "velocity must be known: --velocity, with an error of about --velocity-std.");
  }
};

// The initial particles (mu, q, v), scattered about the first observation.
Tensor first_particles(const Flags& flags, const TrackProblem& problem, double noise) {
  const std::int64_t b = problem.tracks.count(), n = flags.particles, k = problem.reach.size(0);
  const at::Generator random = generator(flags.run.seed, Stream::kFilter);
  const auto uniform = [&](std::int64_t d) { return at::rand({b, n, d}, random, at::kDouble); };
  const Tensor mu = flags.largest_mu * uniform(1);
  const Tensor position = problem.tracks.observed[0].unsqueeze(1) + noise * (2 * uniform(k) - 1) / problem.reach;
  const Tensor velocity = problem.start.velocity.unsqueeze(1) +
                          flags.velocity_std * at::randn({b, n, k}, random, at::kDouble) / problem.reach;
  return at::cat({mu, position, velocity}, -1);
}

// substeps: of each step of the tracks.
ParticleFilter run_filter(const Flags& flags, const TrackFlags& bodies, const TrackProblem& problem,
                          const TrackModel& body, std::int64_t substeps) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t k = problem.reach.size(0);
  const Tensor force = row(bodies.force);
  const at::Generator random = generator(flags.run.seed, Stream::kFilter, 2);
  Progress progress(substeps > 1 ? "half steps" : "step", 0, tracks.steps(), flags.run.quiet, std::chrono::seconds(1));
  const lcp::identification::FilterModel model{
      [&](const Tensor& x) {
        const Tensor mu = x.select(-1, 0).clamp_min(0);  // roughening may make it negative
        const BodyState state{x.slice(-1, 1, 1 + k), x.slice(-1, 1 + k)};
        const Tensor u = problem.process.defined()
                             ? force + problem.process * at::randn(state.position.sizes(), random, at::kDouble)
                             : force.expand_as(state.position);
        const BodyState next = body.step(state, mu, u, substeps);
        return at::cat({mu.unsqueeze(-1), next.position, next.velocity}, -1);
      },
      [&](const Tensor& x, std::int64_t step) {
        progress.show(step, "");
        const Tensor error = (x.slice(-1, 1, 1 + k) - tracks.observed[step].unsqueeze(1)) * problem.reach;
        const Tensor log_likelihood = -(error / problem.noise).square().sum(-1) / 2 * tracks.seen[step];
        return step == 0 ? at::zeros_like(log_likelihood) : log_likelihood;  // observation 0 has placed the particles
      }};
  lcp::identification::ParticleFilterOptions options;
  if (flags.roughening > 0) options.roughening = at::full({1 + 2 * k}, flags.roughening, at::kDouble);
  return particle_filter(model, first_particles(flags, problem, bodies.noise), tracks.steps(),
                         generator(flags.run.seed, Stream::kFilter, 1), options);
}

Table history(const Tracks& tracks, const ParticleFilter& filter, const Tensor& bias) {
  Table table = online_table(tracks, filter.mean, filter.std, bias);
  add_column(table, "distinct_particles", tracks, filter.distinct);
  add_column(table, "effective_particles", tracks, filter.effective);
  return table;
}

int track_particle_filter(int argc, const char* const* argv) {
  CommandLine line("track_particle_filter",
                   "Follows noisy tracks of bodies that slide with a bootstrap particle filter, for comparison with\n"
                   "identify_shooting and identify_tripod. A particle of the filter is a friction coefficient, a "
                   "position and a velocity. Since\n"
                   "friction is constant, resampling leaves fewer and fewer values of it.");
  Flags flags{SystemFlag(argc, argv)};
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  TrackSystem& system = flags.bodies.system();
  system.validate(line, {});
  if (!(system.tracks().noise > 0)) throw UsageError("--noise must be > 0: the filter weighs its particles by it");
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = system.load(flags.run);
  OutputFolder out(line, flags.run);
  const auto body = system.model(problem);
  const auto run = [&](std::int64_t substeps) { return run_filter(flags, system.tracks(), problem, *body, substeps); };
  const ParticleFilter filter = run(1);
  const Tensor bias = mu_bias(problem, filter.mean, [&] { return run(2).mean; });
  const Tensor mu = filter.mean[-1].select(-1, 0);
  const Tensor seen = problem.tracks.seen.squeeze(-1) > 0;
  const Tensor distinct = at::where(seen, filter.distinct, flags.particles).amin(1);
  nlohmann::json metrics = {{"mu", to_json(mu)},
                            {"mu_std", to_json(filter.std[-1].select(-1, 0))},
                            {"mu_bias", to_json(bias[-1])},
                            {"distinct_particles", to_json(distinct.to(at::kDouble))},
                            {"unexplained_steps", ((filter.effective == 0) & seen).sum().item<std::int64_t>()}};
  if (problem.mu.defined()) metrics["mu_error"] = to_json(mu - problem.mu);
  const BodyState motion = motion_of(filter.mean);
  metrics["unexplained"] = unexplained_tracks(problem, motion);
  if (flags.particles > 1 && distinct[-1].item<std::int64_t>() == 1) {
    const std::string collapsed = "the filter has collapsed: one value of mu is left, and mu_std says nothing";
    metrics["unexplained"].push_back(collapsed);
  }
  metrics.update(motion_errors(problem, motion));
  out.write_csv("history.csv", history(problem.tracks, filter, bias));
  out.write_csv("fit.csv", fit_table(system.tracks(), problem, motion));
  if (!flags.run.quiet) {
    for (std::int64_t b = 0; b < mu.size(0); ++b) {
      std::cout << padded("mu" + (mu.size(0) > 1 ? " of track " + std::to_string(b) : ""), 24)
                << short_number(mu[b].item<double>(), 6) << bias_text(problem, bias[-1][b]) << "\n";
    }
    std::cout << padded("distinct particles", 24) << distinct[-1].item<std::int64_t>() << " of " << flags.particles
              << " in the end\n";
  }
  write_results(out, metrics, {"filter.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("track_particle_filter", [&] { return track_particle_filter(argc, argv); });
}
