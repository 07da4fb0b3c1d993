// Identifies friction online, by moving-horizon estimation: after each observation of a track, from a window of the
// latest ones and an arrival cost.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

#include "identification/online.h"
#include "lcp/identification/moving_horizon.h"
#include "run/error.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

struct Flags {
  OnlineFlags online;
  std::int64_t window = 10, iterations = 20;
};

// The state is (mu, q, v); its process noise are the random forces, over their standard deviations.
Followed horizon(const Flags& flags, const TrackProblem& problem, const TrackModel& model, std::int64_t substeps,
                 const std::function<void(std::int64_t)>& progress) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t k = problem.reach.size(0);
  const lcp::identification::HorizonModel of_states{
      [&](const Tensor& x, const Tensor& w) { return next_state(model, x, w, substeps); },
      [&](const Tensor& x, std::int64_t step) {
        progress(step);
        const Tensor error = (x.slice(-1, 1, 1 + k) - tracks.observed[step]) * problem.reach / problem.noise;
        return step == 0 ? at::zeros_like(error) : error * tracks.seen[step];  // observation 0 is the first estimate
      }};
  const auto [mean, deviation] = first_belief(flags.online, problem);
  const auto found = moving_horizon(
      of_states, mean, deviation, tracks.steps(),
      {.window = flags.window, .noises = problem.process.defined() ? k : 0, .max_iterations = flags.iterations});
  return {found.mean,
          found.std,
          {{"iterations", found.iterations.to(at::kDouble)}},
          {{"iterations", found.iterations.sum(0).max().item<std::int64_t>()}}};
}

int track_moving_horizon(int argc, const char* const* argv) {
  CommandLine line(
      "track_moving_horizon",
      "Identifies the friction of bodies that slide online: after each observation the last steps are fitted by least\n"
      "squares, from the fit before, with a cost for the arrival at the first of them that stands for all earlier\n"
      "observations. For comparison with track_particle_filter, and with identify_mpec, which needs the whole track.");
  Flags flags{{SystemFlag(argc, argv)}};
  flags.online.add_to(
      line, "The first estimate of mu is half of this, with the standard deviation of a uniform distribution");
  line.add("window", flags.window, "Steps of the window that is fitted after each observation", at_least_one);
  line.add("iterations", flags.iterations, "Largest number of iterations after each observation", at_least_one);
  line.footer(
      "Examples: track_moving_horizon --noise 0.05 --window 20 --out runs/online\n"
      "          track_moving_horizon --system tripod --process-noise 0.5 --out runs/tripod\n" +
      std::string(kOnlineNote));
  return follow_tracks(line, flags.online, argc, argv, "the arrival cost depends on it", "horizon.png",
                       [&](const TrackProblem& problem, const TrackModel& model, std::int64_t substeps,
                           const auto& progress) { return horizon(flags, problem, model, substeps, progress); });
}

}  // namespace

int main(int argc, char** argv) { run_program("track_moving_horizon", track_moving_horizon, argc, argv); }
