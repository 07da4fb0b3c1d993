// Tracks particles that fall and slide with a bootstrap filter, and counts the distinct particles that resampling
// leaves; or with a Kalman filter, for comparison.
#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "identification/kalman_filter.h"
#include "identification/online.h"
#include "lcp/identification/particle_filter.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

struct Flags {
  OnlineFlags online;
  std::int64_t particles = 500;
  double roughening = 0;
  std::string filter = "particle";
};

// The initial particles (mu, q, v), scattered about the first observation.
Tensor first_particles(const Flags& flags, const TrackProblem& problem, double noise) {
  const std::int64_t b = problem.tracks.count(), n = flags.particles, k = problem.reach.size(0);
  const at::Generator random = generator(flags.online.run.seed, Stream::kFilter);
  const auto uniform = [&](std::int64_t d) { return at::rand({b, n, d}, random, at::kDouble); };
  const Tensor mu = flags.online.largest_mu * uniform(1);
  const Tensor position = problem.tracks.observed[0].unsqueeze(1) + noise * (2 * uniform(k) - 1) / problem.reach;
  const Tensor velocity = problem.start.velocity.unsqueeze(1) +
                          flags.online.velocity_std * at::randn({b, n, k}, random, at::kDouble) / problem.reach;
  return at::cat({mu, position, velocity}, -1);
}

Followed filter(const Flags& flags, const TrackProblem& problem, const TrackModel& model, double noise,
                std::int64_t substeps, const std::function<void(std::int64_t)>& progress) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t k = problem.reach.size(0), seed = flags.online.run.seed;
  const at::Generator random = generator(seed, Stream::kFilter, 2);
  const lcp::identification::FilterModel of_particles{
      [&](const Tensor& x) {
        const Tensor possible = at::cat({x.slice(-1, 0, 1).clamp_min(0), x.slice(-1, 1)}, -1);  // after roughening
        const bool forced = problem.process.defined();
        const Tensor forces = forced ? at::randn(x.slice(-1, 1, 1 + k).sizes(), random, at::kDouble) : Tensor();
        return next_state(model, possible, forces, substeps);
      },
      [&](const Tensor& x, std::int64_t step) {
        progress(step);
        const Tensor error = (x.slice(-1, 1, 1 + k) - tracks.observed[step].unsqueeze(1)) * problem.reach;
        const Tensor log_likelihood = -(error / problem.noise).square().sum(-1) / 2 * tracks.seen[step];
        return step == 0 ? at::zeros_like(log_likelihood) : log_likelihood;  // observation 0 has placed the particles
      }};
  lcp::identification::ParticleFilterOptions options;
  if (flags.roughening > 0) options.roughening = at::full({1 + 2 * k}, flags.roughening, at::kDouble);
  const auto found = particle_filter(of_particles, first_particles(flags, problem, noise), tracks.steps(),
                                     generator(seed, Stream::kFilter, 1), options);
  const Tensor seen = tracks.seen.squeeze(-1) > 0;
  const Tensor distinct = at::where(seen, found.distinct, flags.particles).amin(1);
  const auto left = distinct[-1].item<std::int64_t>();
  return {found.mean,
          found.std,
          {{"distinct_particles", found.distinct}, {"effective_particles", found.effective}},
          {{"distinct_particles", to_json(distinct.to(at::kDouble))},
           {"unexplained_steps", ((found.effective == 0) & seen).sum().item<std::int64_t>()}},
          padded("distinct particles", 24) + std::to_string(left) + " of " + std::to_string(flags.particles) +
              " in the end\n",
          flags.particles > 1 && left == 1
              ? "the filter has collapsed: one value of mu is left, and mu_std says nothing"
              : "",
          /*prints_std=*/false};
}

int track_particle_filter(int argc, const char* const* argv) {
  CommandLine line("track_particle_filter",
                   "Follows noisy tracks of bodies that slide with a bootstrap particle filter, for comparison with\n"
                   "identify_shooting and identify_tripod. A particle of the filter is a friction coefficient, a "
                   "position and a velocity. Since\n"
                   "friction is constant, resampling leaves fewer and fewer values of it.");
  Flags flags{{SystemFlag(argc, argv)}};
  flags.online.add_to(line, "Upper bound of mu of the filter's initial particles, which is uniform from 0");
  line.add("filter", flags.filter,
           "particle, or a Kalman filter: extended, which linearises a step, or unscented, which maps points by it",
           one_of({"particle", "extended", "unscented"}));
  line.add("particles", flags.particles, "Number of the filter's particles for each track", at_least_one);
  line.add("roughening", flags.roughening,
           "Noise added after each resampling, relative to the particles' range; 0: none, a usual value is 0.2",
           nonnegative);
  line.footer(
      "Examples: track_particle_filter --noise 0.05 --out runs/bootstrap\n"
      "          track_particle_filter --noise 0.05 --roughening 0.2 --out runs/roughened\n"
      "          track_particle_filter --filter unscented --out runs/unscented\n"
      "          track_particle_filter --system tripod --process-noise 0.5 --out runs/tripod\n" +
      std::string(kOnlineNote));
  const double& noise = flags.online.bodies.system().tracks.noise;
  return follow_tracks(
      line, flags.online, argc, argv, "the filter weighs its particles by it", "filter.png",
      [&](const TrackProblem& problem, const TrackModel& model, std::int64_t substeps, const auto& progress) {
        if (flags.filter == "particle") {
          return filter(flags, problem, model, noise, substeps, progress);
        }
        const KalmanFilter kind = flags.filter == "extended" ? KalmanFilter::kExtended : KalmanFilter::kUnscented;
        return kalman_filter(kind, flags.online, problem, model, substeps, progress);
      });
}

}  // namespace

int main(int argc, char** argv) { run_program("track_particle_filter", track_particle_filter, argc, argv); }
