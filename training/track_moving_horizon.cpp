// Identifies friction online, by moving-horizon estimation: after each observation of a track, from a window of the
// latest ones and an arrival cost.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>

#include "identification/estimate.h"
#include "identification/system.h"
#include "lcp/identification/moving_horizon.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/files.h"
#include "run/one_thread.h"
#include "run/output_folder.h"
#include "run/progress.h"
#include "run/results.h"
#include "run/text.h"

namespace {

using namespace lcp::training;
using lcp::identification::MovingHorizon;
using torch::Tensor;

struct Flags {
  SystemFlag bodies;
  RunFlags run = {};
  std::int64_t window = 10;
  double largest_mu = 1;
  double velocity_std = 0;
  std::int64_t iterations = 20;

  void add_to(CommandLine& line) {
    run.add_to(line, Precision::kFloat64);
    bodies.add_to(line);
    bodies.system().add_bodies_to(line);
    line.add<std::int64_t>("window", window, "Steps of the window that is fitted after each observation", at_least_one);
    line.add<double>("largest-mu", largest_mu,
                     "The first estimate of mu is half of this, with the standard deviation of a uniform distribution",
                     positive);
    line.add<double>("velocity-std", velocity_std,
                     "Standard deviation of the initial velocity about --velocity, m/s; angles count as lengths",
                     nonnegative);
    line.add<std::int64_t>("iterations", iterations, "Largest number of iterations after each observation",
                           at_least_one);
    line.footer(
        "Examples: track_moving_horizon --noise 0.05 --window 20 --out runs/online\n"
        "          track_moving_horizon --system tripod --process-noise 0.5 --out runs/tripod\n"
        "Data of your own: CSV as for identify_shooting and identify_tripod. --noise must be that of the data. The "
        "initial\n"
        "velocity must be known: --velocity, with an error of about --velocity-std.");
  }
};

// The state is (mu, q, v); its process noise are the random forces, over their standard deviations. substeps: of each
// step of the tracks.
MovingHorizon run_horizon(const Flags& flags, const TrackFlags& bodies, const TrackProblem& problem,
                          const TrackModel& body, std::int64_t substeps) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t b = tracks.count(), k = problem.reach.size(0);
  const Tensor force = row(bodies.force);
  Progress progress(substeps > 1 ? "half steps" : "step", 0, tracks.steps(), flags.run.quiet, std::chrono::seconds(1));
  const lcp::identification::HorizonModel model{
      [&](const Tensor& x, const Tensor& w) {
        const BodyState state{x.slice(-1, 1, 1 + k), x.slice(-1, 1 + k)};
        const Tensor u = problem.process.defined() ? force + problem.process * w : force.expand_as(state.position);
        const BodyState next = body.step(state, x.select(-1, 0).clamp_min(0), u, substeps);
        return at::cat({x.slice(-1, 0, 1), next.position, next.velocity}, -1);
      },
      [&](const Tensor& x, std::int64_t step) {
        progress.show(step, "");
        const Tensor error = (x.slice(-1, 1, 1 + k) - tracks.observed[step]) * problem.reach / problem.noise;
        return step == 0 ? at::zeros_like(error) : error * tracks.seen[step];  // observation 0 is the first estimate
      }};
  const auto all = [&](const Tensor& x) { return x.expand({b, k}); };
  const Tensor mu = at::full({b, 1}, flags.largest_mu, at::kDouble);
  const Tensor mean = at::cat({mu / 2, tracks.observed[0], problem.start.velocity}, -1);
  const Tensor deviation =
      at::cat({mu / std::sqrt(12), all(problem.noise / problem.reach), all(flags.velocity_std / problem.reach)}, -1);
  return moving_horizon(
      model, mean, deviation, tracks.steps(),
      {.window = flags.window, .noises = problem.process.defined() ? k : 0, .max_iterations = flags.iterations});
}

Table history(const Tracks& tracks, const MovingHorizon& found, const Tensor& bias) {
  Table table = online_table(tracks, found.mean, found.std, bias);
  add_column(table, "iterations", tracks, found.iterations.to(at::kDouble));
  return table;
}

int track_moving_horizon(int argc, const char* const* argv) {
  CommandLine line(
      "track_moving_horizon",
      "Identifies the friction of bodies that slide online: after each observation the last steps are fitted by least\n"
      "squares, from the fit before, with a cost for the arrival at the first of them that stands for all earlier\n"
      "observations. For comparison with track_particle_filter, and with identify_mpec, which needs the whole track.");
  Flags flags{SystemFlag(argc, argv)};
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  TrackSystem& system = flags.bodies.system();
  system.validate(line, {});
  if (!(system.tracks().noise > 0)) throw UsageError("--noise must be > 0: the arrival cost depends on it");
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = system.load(flags.run);
  OutputFolder out(line, flags.run);
  const auto body = system.model(problem);
  const auto run = [&](std::int64_t substeps) { return run_horizon(flags, system.tracks(), problem, *body, substeps); };
  const MovingHorizon found = run(1);
  const Tensor bias = mu_bias(problem, found.mean, [&] { return run(2).mean; });
  const BodyState motion = motion_of(found.mean);
  const Tensor mu = found.mean[-1].select(-1, 0), mu_std = found.std[-1].select(-1, 0);
  nlohmann::json metrics = {{"mu", to_json(mu)},
                            {"mu_std", to_json(mu_std)},
                            {"mu_bias", to_json(bias[-1])},
                            {"unexplained", unexplained_tracks(problem, motion)},
                            {"iterations", found.iterations.sum(0).max().item<std::int64_t>()}};
  metrics.update(motion_errors(problem, motion));
  if (problem.mu.defined()) metrics["mu_error"] = to_json(mu - problem.mu);
  out.write_csv("history.csv", history(problem.tracks, found, bias));
  out.write_csv("fit.csv", fit_table(system.tracks(), problem, motion));
  for (std::int64_t b = 0; b < mu.size(0) && !flags.run.quiet; ++b) {
    std::cout << padded("mu" + (mu.size(0) > 1 ? " of track " + std::to_string(b) : ""), 24)
              << short_number(mu[b].item<double>(), 6) << " +- " << short_number(mu_std[b].item<double>(), 2)
              << bias_text(problem, bias[-1][b]) << "\n";
  }
  write_results(out, metrics, {"horizon.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("track_moving_horizon", [&] { return track_moving_horizon(argc, argv); });
}
