// Identifies friction and initial states from noisy tracks by least squares through the differentiable rollout.
#include "identification/shooting.h"
#include "run/error.h"

namespace {

using namespace lcp::training;

// Fewer of them would take more time for each, since they share the calls of tensor operations; more could be divided
// among fewer processes.
constexpr std::int64_t kTracksOfATask = 800;

int identify_shooting(int argc, const char* const* argv) {
  CommandLine line(
      "identify_shooting",
      "Finds the friction, and if asked the initial state, of particles that fall and slide, from noisy tracks.\n"
      "Minimises the squared distances of simulated and observed positions by Levenberg-Marquardt with the exact\n"
      "derivative of the simulation, and reports the uncertainty of the result and what the tracks do not determine.");
  RunFlags run;
  ShootingFlags shooting;
  const std::unique_ptr<TrackSystem> particles = make_particles();
  run.add_to(line, Precision::kFloat64);
  particles->add_bodies_to(line);
  particles->tracks.add_estimate_to(line);
  shooting.add_to(line);
  line.footer(
      "Example: identify_shooting --estimate mu,q0,v0 --noise 0.05 --out runs/dual\n"
      "Data of your own: CSV with columns time,x,y (s, m, m; y above the ground), of equal steps, and optionally\n"
      "track; without it a track ends where time falls. --mass, --gravity and --force say what acts on it.");
  if (const auto status = line.parse(argc, argv)) return *status;
  return identify_by_shooting(line, run, *particles, shooting, kTracksOfATask);
}

}  // namespace

int main(int argc, char** argv) {
  run_program("identify_shooting", identify_shooting, argc, argv, Processes::kDivided);
}
