// Identifies friction and initial states from noisy tracks by least squares through the differentiable rollout.
#include <torch/types.h>
#include <torch/utils.h>

#include <optional>
#include <utility>

#include "identification/particle.h"
#include "identification/shooting.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/one_thread.h"
#include "run/output_folder.h"
#include "run/results.h"
#include "run/trainer.h"

namespace {

using namespace lcp::training;

// Fewer of them would take more time for each, since they share the calls of tensor operations; more could be divided
// among fewer processes.
constexpr std::int64_t kTracksOfATask = 800;

struct Flags {
  RunFlags run;
  TrackFlags tracks = particle_flags();
  ShootingFlags shooting;

  void add_to(CommandLine& line) {
    run.add_to(line, Precision::kFloat64);
    tracks.add_bodies_to(line);
    tracks.add_estimate_to(line);
    shooting.add_to(line);
    line.footer(
        "Example: identify_shooting --estimate mu,q0,v0 --noise 0.05 --out runs/dual\n"
        "Data of your own: CSV with columns time,x,y (s, m, m; y above the ground), of equal steps, and optionally\n"
        "track; without it a track ends where time falls. --mass, --gravity and --force say what acts on it.");
  }
};

int identify_shooting(int argc, const char* const* argv) {
  CommandLine line(
      "identify_shooting",
      "Finds the friction, and if asked the initial state, of particles that fall and slide, from noisy tracks.\n"
      "Minimises the squared distances of simulated and observed positions by Levenberg-Marquardt with the exact\n"
      "derivative of the simulation, and reports the uncertainty of the result and what the tracks do not determine.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.shooting.resume);
  flags.tracks.validate(line, {"particles", "monte-carlo"});
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = load_particles(flags.run, flags.tracks);
  OutputFolder out(line, flags.run, std::move(lock));
  if (checkpoint) out.continue_earlier_run();
  const ParticleModel model(flags.tracks, problem);
  nlohmann::json metrics = identify(out, flags.run, flags.tracks, flags.shooting, problem, model);
  const auto estimates = [&](std::int64_t first, std::int64_t repeats) {
    const TrackProblem repeated = repeat_particles(flags.run, flags.tracks, first, repeats);
    return estimates_of_repeated(flags.run, flags.tracks, flags.shooting, repeated,
                                 ParticleModel(flags.tracks, repeated));
  };
  if (const auto stopped =
          scatter(out, flags.run, flags.tracks, flags.shooting, checkpoint, kTracksOfATask, estimates, metrics)) {
    return *stopped;
  }
  write_results(out, metrics, {"fit.png"});
  require_fits(metrics);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program(
      "identify_shooting", [&] { return identify_shooting(argc, argv); }, Processes::kDivided);
}
