#include "identification/tripod.h"

#include <ATen/ATen.h>

#include <numbers>
#include <vector>

#include "run/random.h"

namespace lcp::training {
namespace {

using physics::Tripod;
using torch::Tensor;

Tensor reach_of(const TripodTrackFlags& flags) { return row({1, 1, flags.reach}); }

// A single block has the start and the friction of the flags. Several have random friction, start at random within 1 m
// and have 0.5 to 1.5 times the velocity of the flags.
TrackProblem simulate(const RunFlags& run, const TripodTrackFlags& flags, std::int64_t k) {
  const TrackFlags& tracks = flags.tracks;
  const std::int64_t b = tracks.bodies;
  const auto uniform = [&](Stream stream, at::IntArrayRef shape, std::int64_t use = 0) {
    return at::rand(shape, generator(run.seed, stream, use), at::kDouble);
  };
  Tensor mu = 0.5 * (1 - uniform(Stream::kParameters, {b}));
  Tensor position = (2 * uniform(Stream::kStarts, {b, 3}) - 1) * row({1, 1, std::numbers::pi});
  Tensor velocity = (0.5 + uniform(Stream::kStarts, {b, 3}, 1)) * row(tracks.velocity);
  if (b == 1) {
    mu.fill_(tracks.block.mu);
    position.copy_(row(tracks.position));
    velocity.copy_(row(tracks.velocity));
  }
  TripodTrackFlags truth = flags;
  if (flags.true_directions > 0) truth.block.directions = flags.true_directions;
  if (flags.true_com_height >= 0) truth.block.com_height = flags.true_com_height;
  const Tensor reach = reach_of(flags), u = simulated_forces(run, tracks, reach, k);
  const auto exact =
      physics::simulate({position, velocity}, u, tripod_of(truth, tracks.block.dt, mu), truth.block.directions);
  return observe(run, tracks, {position, velocity}, mu, {exact.step.next.pose, exact.step.next.velocity}, reach, k);
}

}  // namespace

TripodTrackFlags::TripodTrackFlags()
    : tracks{.coordinates = {"x", "y", "theta"},
             .block = {.mass = 1, .dt = 0.01, .mu = 0.33, .gravity = 9.81},
             .steps = 50,
             .noise = 5e-4,
             .force = {0, 0, 0},
             .position = {0, 0, 0},
             .velocity = {1, 0.3, 8},
             .estimate = "mu,q0,v0"} {}

void TripodTrackFlags::add_bodies_to(CommandLine& line) {
  tracks.add_bodies_to(line);
  block.add_to(line);
  line.add<double>("reach", reach,
                   "Length by which angles are multiplied to compare them with positions, m; the noise of theta is "
                   "--noise / --reach",
                   positive);
  line.add<std::int64_t>("true-directions", true_directions, "Directions of the simulated block; 0: --directions",
                         [](const std::int64_t& n) { return n == 0 ? "" : even_directions(n); });
  line.add<double>("true-com-height", true_com_height,
                   "Height of the simulated block's centre of mass, m; less than 0: --com-height", finite_number);
}

void TripodTrackFlags::validate(const CommandLine& line, std::vector<std::string> simulated) {
  simulated.insert(simulated.end(), {"true-directions", "true-com-height"});
  tracks.validate(line, simulated);
  block.tripod(tracks.block);
}

Tripod tripod_of(const TripodTrackFlags& flags, double dt, const Tensor& mu) {
  PhysicsFlags parameters = flags.tracks.block;
  parameters.dt = dt;
  Tripod tripod = flags.block.tripod(parameters);
  tripod.mu = mu;
  return tripod;
}

TrackProblem load_tripods(const RunFlags& run, const TripodTrackFlags& flags) {
  const torch::NoGradGuard no_grad;
  return flags.tracks.data.empty() ? simulate(run, flags, 0) : read_problem(flags.tracks, reach_of(flags));
}

TrackProblem repeat_tripods(const RunFlags& run, const TripodTrackFlags& flags, std::int64_t first,
                            std::int64_t repeats) {
  const torch::NoGradGuard no_grad;
  std::vector<TrackProblem> all;
  all.reserve(static_cast<std::size_t>(repeats));
  for (std::int64_t k = 0; k < repeats; ++k) all.push_back(simulate(run, flags, first + k + 1));
  return joined(all);
}

TripodModel::TripodModel(const TripodTrackFlags& flags, const TrackProblem& problem)
    : TrackModel(flags.tracks, problem), flags_(flags) {}

Tensor TripodModel::acceleration() const {
  return row(flags_.tracks.force) / row({flags_.tracks.block.mass, flags_.tracks.block.mass, flags_.block.inertia});
}

BodyState TripodModel::move(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const {
  const Tripod tripod = tripod_of(flags_, dt, mu);
  const auto next = physics::simulate({start.position, start.velocity}, u, tripod, flags_.block.directions).step.next;
  return {next.pose, next.velocity};
}

FrictionEvidence TripodModel::evidence(const Tensor& theta) const {
  const Tripod tripod = tripod_of(flags_, problem().tracks.dt, theta.select(-1, 0));
  const BodyState start = start_of(theta);
  const physics::TripodState first{start.position, start.velocity};
  const Tensor u = forces(theta);
  const auto rollout = physics::simulate(first, u, tripod, flags_.block.directions);
  // A block at rest does not determine the load of each support, but it determines their sum: |sum f| <= mu sum N.
  const Tensor used = rollout.step.friction.sum(-2).norm(2, -1) / rollout.step.normal.sum(-1);
  return {physics::certify_rollout(first, u, tripod, flags_.block.directions, rollout), used.amax(0),
          (rollout.step.next.velocity != 0).flatten(2).any(-1).any(0)};
}

}  // namespace lcp::training
