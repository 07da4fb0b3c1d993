#include "identification/particle.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "common/error.h"
#include "common/random.h"
#include "common/text.h"

namespace lcp::training {
namespace {

using physics::PointMass;
using physics::PointMassState;
using torch::Tensor;

constexpr std::int64_t kSeenAtFirst = 8;  // steps that tell the initial velocity

std::string two_numbers(const std::vector<double>& x) {
  return x.size() == 2 && std::isfinite(x[0]) && std::isfinite(x[1]) ? "" : "two finite numbers";
}

Tensor pair(const std::vector<double>& x) { return at::tensor(x, at::kDouble); }

// The first particle is that of the flags; the others start and slide at random, as in [BT].
ParticleProblem simulate(const RunFlags& run, const ParticleFlags& flags, std::int64_t k) {
  const std::int64_t b = flags.particles;
  const auto uniform = [&](Stream stream, at::IntArrayRef shape, std::int64_t use) {
    return at::rand(shape, generator(run.seed, stream, use), at::kDouble);
  };
  Tensor mu = 0.5 * (1 - uniform(Stream::kParameters, {b}, 0));
  Tensor position = uniform(Stream::kStarts, {b, 2}, 0) * pair({20, 5}) + pair({-10, 0});
  if (b == 1) {
    mu.fill_(flags.block.mu);
    position.copy_(pair(flags.position));
  }
  const PointMassState start{position, pair(flags.velocity).expand({b, 2})};
  PointMass mass = PointMass::of(flags.block.mass, flags.block.dt, 0, flags.block.gravity);
  mass.mu = mu;
  const Tensor u = pair(flags.force).expand({flags.steps, b, 2});
  const auto exact = physics::simulate(start, u, mass);
  const Tensor positions = at::cat({position.unsqueeze(0), exact.step.next.position});
  const Tensor noise = flags.noise * (2 * uniform(Stream::kPositionNoise, positions.sizes(), k) - 1);
  return {{flags.block.dt, positions + noise, at::ones({flags.steps + 1, b, 1}, at::kDouble)},
          start,
          mu,
          flags.noise / std::sqrt(3)};
}

}  // namespace

void ParticleFlags::add_to(CommandLine& line) {
  block.add_to(line);
  line.add<std::int64_t>("particles", particles,
                         "Particles to simulate; of several each has a mu of its own, at random up to 0.5",
                         at_least_one);
  line.add<std::int64_t>("steps", steps, "Steps to simulate",
                         [](const std::int64_t& x) { return x >= 2 ? "" : ">= 2"; });
  line.add<double>("noise", noise,
                   "Half the width of the uniform noise on each coordinate, m; of --data, where it is known",
                   nonnegative);
  line.add<std::vector<double>>("force", force, "Force on each particle beside gravity, N", two_numbers);
  line.add<std::vector<double>>("position", position, "Start, m; of --data the first observation unless given",
                                two_numbers);
  line.add<std::vector<double>>("velocity", velocity, "Velocity before the first step, m/s", two_numbers);
  line.add<std::string>("data", data, "CSV file of tracks, columns time,x,y, instead of simulated ones", nullptr,
                        Role::kFile);
  line.add<std::string>("estimate", estimate,
                        "What is unknown: mu; mu,q0 (the start too); mu,q0,v0 (and the initial velocity)",
                        one_of({"mu", "mu,q0", "mu,q0,v0"}));
  line.add<double>("initial-mu", initial_mu, "Friction coefficient to start from", nonnegative);
  line.add<double>("prior", prior, "Weight of the squared distance of the start from (first observation, --velocity)",
                   nonnegative);
}

void ParticleFlags::settle(const CommandLine& line, const RunFlags& run) {
  if (run.dtype != "float64") throw UsageError("--dtype must be float64, in which identification is; got " + run.dtype);
  if (data.empty()) {
    for (const char* name : {"position", "mu"}) {
      if (particles > 1 && line.given(name)) {
        throw UsageError("--" + std::string(name) + " has no meaning with --particles " + std::to_string(particles));
      }
    }
    return;
  }
  for (const char* name : {"particles", "steps", "mu", "dt", "monte-carlo"}) {
    if (line.given(name)) throw UsageError("--" + std::string(name) + " has no meaning with --data");
  }
  if (!line.given("noise")) noise = 0;
  if (!line.given("position")) position.clear();
  data = std::filesystem::weakly_canonical(data).string();
}

ParticleProblem load_particles(const RunFlags& run, const ParticleFlags& flags) {
  const torch::NoGradGuard no_grad;
  if (flags.data.empty()) return simulate(run, flags, 0);
  ParticleProblem problem{read_tracks(flags.data, {"x", "y"}), {}, {}, flags.noise / std::sqrt(3)};
  if (flags.noise == 0) problem.noise = std::numeric_limits<double>::quiet_NaN();
  const Tensor first = problem.tracks.observed[0];
  problem.start = {flags.position.empty() ? first : pair(flags.position).expand_as(first),
                   pair(flags.velocity).expand_as(first)};
  return problem;
}

ParticleProblem repeat_particles(const RunFlags& run, const ParticleFlags& flags, std::int64_t repeats) {
  const torch::NoGradGuard no_grad;
  std::vector<ParticleProblem> all;
  for (std::int64_t k = 1; k <= repeats; ++k) all.push_back(simulate(run, flags, k));
  const auto joined = [&](const auto& of, std::int64_t dim) {
    std::vector<Tensor> parts;
    for (const ParticleProblem& one : all) parts.push_back(of(one));
    return at::cat(parts, dim);
  };
  return {{flags.block.dt, joined([](const auto& one) { return one.tracks.observed; }, 1),
           joined([](const auto& one) { return one.tracks.seen; }, 1)},
          {joined([](const auto& one) { return one.start.position; }, 0),
           joined([](const auto& one) { return one.start.velocity; }, 0)},
          joined([](const auto& one) { return one.mu; }, 0),
          all.front().noise};
}

ParticleModel::ParticleModel(const ParticleFlags& flags, const ParticleProblem& problem)
    : flags_(flags), problem_(problem), unknowns_(static_cast<std::int64_t>(names().size())) {}

std::vector<std::string> ParticleModel::names() const {
  if (flags_.estimate == "mu") return {"mu"};
  if (flags_.estimate == "mu,q0") return {"mu", "x", "y"};
  return {"mu", "x", "y", "v_x", "v_y"};
}

Tensor ParticleModel::start(double mu) const {
  const Tracks& tracks = problem_.tracks;
  const std::int64_t b = tracks.count();
  Tensor theta = at::full({b, 1}, mu, at::kDouble);
  if (unknowns_ > 1) theta = at::cat({theta, tracks.observed[0]}, -1);
  if (unknowns_ > 3) {
    // The slope of what is left of the first steps without gravity and the force: q_k = q_0 + k dt v + k (k + 1) / 2 a.
    const std::int64_t n = std::min(kSeenAtFirst, tracks.steps()) + 1;
    const Tensor k = at::arange(n, at::kDouble).view({n, 1, 1});
    const Tensor a =
        pair({flags_.force[0] / flags_.block.mass, flags_.force[1] / flags_.block.mass - flags_.block.gravity});
    const Tensor left = tracks.observed.slice(0, 0, n) - k * (k + 1) / 2 * tracks.dt * tracks.dt * a;
    const Tensor centred = k - k.mean();
    theta = at::cat({theta, (centred * left).sum(0) / (centred.square().sum() * tracks.dt)}, -1);
  }
  return theta;
}

Tensor ParticleModel::lower() const {
  Tensor bound = at::full({unknowns_}, -std::numeric_limits<double>::infinity(), at::kDouble);
  bound[0] = 0;
  return bound;
}

PointMass ParticleModel::mass_of(const Tensor& theta) const {
  PointMass mass = PointMass::of(flags_.block.mass, problem_.tracks.dt, 0, flags_.block.gravity);
  mass.mu = theta.select(-1, 0);
  return mass;
}

PointMassState ParticleModel::start_of(const Tensor& theta) const {
  auto shape = theta.sizes().vec();
  shape.back() = 2;
  return {unknowns_ > 1 ? theta.slice(-1, 1, 3) : problem_.start.position.expand(shape),
          unknowns_ > 3 ? theta.slice(-1, 3, 5) : problem_.start.velocity.expand(shape)};
}

Tensor ParticleModel::forces() const {
  return pair(flags_.force).expand({problem_.tracks.steps(), problem_.tracks.count(), 2});
}

physics::PointMassSolution ParticleModel::rollout(const Tensor& theta) const {
  return physics::simulate(start_of(theta), forces(), mass_of(theta));
}

Tensor ParticleModel::positions(const Tensor& theta) const {
  return at::cat({start_of(theta).position.unsqueeze(0), rollout(theta).step.next.position});
}

Tensor ParticleModel::residuals(const Tensor& theta) const {
  const Tracks& tracks = problem_.tracks;
  const Tensor predicted = positions(theta).movedim(0, -2);  // [..., b, steps + 1, 2]
  const Tensor error = (predicted - tracks.observed.movedim(0, -2)) * tracks.seen.movedim(0, -2);
  Tensor all = error.flatten(-2);
  if (flags_.prior > 0 && unknowns_ > 1) {
    const double root = std::sqrt(flags_.prior);
    const PointMassState own = start_of(theta);
    all = at::cat({all, root * (own.position - tracks.observed[0])}, -1);
    if (unknowns_ > 3) all = at::cat({all, root * (own.velocity - problem_.start.velocity)}, -1);
  }
  return all;
}

physics::RolloutCertificate ParticleModel::certify(const Tensor& theta,
                                                   const physics::PointMassSolution& rollout) const {
  return physics::certify_rollout(start_of(theta), forces(), mass_of(theta), {}, rollout);
}

}  // namespace lcp::training
