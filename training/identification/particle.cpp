#include "identification/particle.h"

#include <ATen/ATen.h>

#include <vector>

#include "run/random.h"

namespace lcp::training {
namespace {

using physics::PointMass;
using torch::Tensor;

// A single particle has the start and the friction of the flags. Several have random ones, as in [BT].
TrackProblem simulate(const RunFlags& run, const TrackFlags& flags, std::int64_t k) {
  const std::int64_t b = flags.bodies;
  const auto uniform = [&](Stream stream, at::IntArrayRef shape) {
    return at::rand(shape, generator(run.seed, stream), at::kDouble);
  };
  Tensor mu = 0.5 * (1 - uniform(Stream::kParameters, {b}));
  Tensor position = uniform(Stream::kStarts, {b, 2}) * row({20, 5}) + row({-10, 0});
  if (b == 1) {
    mu.fill_(flags.block.mu);
    position.copy_(row(flags.position));
  }
  const BodyState start{position, row(flags.velocity).expand({b, 2})};
  const Tensor reach = at::ones({2}, at::kDouble), u = simulated_forces(run, flags, reach, k);
  const auto exact = physics::simulate({start.position, start.velocity}, u, particle_mass(flags, flags.block.dt, mu));
  return observe(run, flags, start, mu, {exact.step.next.position, exact.step.next.velocity}, reach, k);
}

}  // namespace

TrackFlags particle_flags() {
  return {.coordinates = {"x", "y"},
          .block = {.mass = 1, .dt = 0.05, .mu = 0.2, .gravity = 9.81},
          .steps = 100,
          .noise = 5e-3,
          .force = {5, 0},
          .position = {0, 3},
          .velocity = {0, 0}};
}

TrackProblem load_particles(const RunFlags& run, const TrackFlags& flags) {
  const torch::NoGradGuard no_grad;
  return flags.data.empty() ? simulate(run, flags, 0) : read_problem(flags, at::ones({2}, at::kDouble));
}

TrackProblem repeat_particles(const RunFlags& run, const TrackFlags& flags, std::int64_t first, std::int64_t repeats) {
  const torch::NoGradGuard no_grad;
  std::vector<TrackProblem> all;
  all.reserve(static_cast<std::size_t>(repeats));
  for (std::int64_t k = 0; k < repeats; ++k) all.push_back(simulate(run, flags, first + k + 1));
  return joined(all);
}

PointMass particle_mass(const TrackFlags& flags, double dt, const Tensor& mu) {
  PointMass mass = PointMass::of(flags.block.mass, dt, 0, flags.block.gravity);
  mass.mu = mu;
  return mass;
}

ParticleModel::ParticleModel(const TrackFlags& flags, const TrackProblem& problem)
    : TrackModel(flags, problem), flags_(flags) {}

Tensor ParticleModel::acceleration() const {
  return row(flags_.force) / flags_.block.mass - row({0, flags_.block.gravity});
}

BodyState ParticleModel::move(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const {
  const PointMass mass = particle_mass(flags_, dt, mu);
  const auto next = physics::simulate({start.position, start.velocity}, u, mass).step.next;
  return {next.position, next.velocity};
}

FrictionEvidence ParticleModel::evidence(const Tensor& theta) const {
  const PointMass mass = particle_mass(flags_, problem().tracks.dt, theta.select(-1, 0));
  const BodyState start = start_of(theta);
  const physics::PointMassState first{start.position, start.velocity};
  const Tensor u = forces(theta);
  const auto rollout = physics::simulate(first, u, mass);
  const physics::PointMassStep& step = rollout.step;
  const Tensor friction = (step.lambda_plus - step.lambda_minus).abs();
  return {physics::certify_rollout(first, u, mass, {}, rollout),
          at::where(step.lambda_n > 0, friction / step.lambda_n, -1).amax(0),
          ((step.lambda_n > 0) & (step.next.velocity.select(-1, 0) != 0)).any(0)};
}

}  // namespace lcp::training
