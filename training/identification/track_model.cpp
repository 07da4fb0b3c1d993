#include "identification/track_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kVelocitySteps = 8;  // the initial velocity is estimated from this many steps

// An angle that was measured up to full turns, made continuous: [steps + 1, b].
Tensor unwrapped(const Tensor& angle) {
  constexpr double kTurn = 2 * std::numbers::pi;
  return angle - kTurn * at::cat({at::zeros_like(angle[0]).unsqueeze(0), (angle.diff(1, 0) / kTurn).round().cumsum(0)});
}

void set_process(const TrackFlags& flags, TrackProblem& problem) {
  if (flags.process_noise > 0) problem.process = flags.process_noise * problem.reach;
}

}  // namespace

std::vector<std::string> TrackFlags::velocities() const {
  std::vector<std::string> names;
  for (const std::string& name : coordinates) names.push_back(name == "theta" ? "omega" : "v_" + name);
  return names;
}

Tensor row(const std::vector<double>& x) { return at::tensor(x, at::kDouble); }

void TrackFlags::add_bodies_to(CommandLine& line) {
  const auto numbers = finite_numbers(coordinates.size());
  const bool turns = coordinates.back() == "theta";
  std::string columns = "time";
  for (const std::string& name : coordinates) columns += "," + name;
  block.add_to(line);
  line.add("steps", steps, "Steps to simulate", at_least_two);
  line.add("noise", noise,
           "Half the width of the uniform noise on each coordinate, m; with --data that of the data, if it is known",
           nonnegative);
  line.add("process-noise", process_noise,
           std::string("Standard deviation of normal random forces on the body, N, which are constant during "
                       "each step; simulated, and estimated with the rest") +
               (turns ? "; that of the moment is the same times --reach" : ""),
           nonnegative);
  line.add("force", force, turns ? "Force and moment on the body, N, N, N m" : "Force beside gravity, N", numbers);
  line.add("position", position,
           std::string("Initial position, m") + (turns ? ", m, rad" : "") +
               "; with --data the default is the first observation",
           numbers);
  line.add("velocity", velocity, std::string("Velocity before the first step, m/s") + (turns ? ", m/s, rad/s" : ""),
           numbers);
  line.add("data", data, "CSV file of tracks, columns " + columns + ", instead of simulated ones", nullptr,
           Role::kFile);
}

void TrackFlags::add_estimate_to(CommandLine& line) {
  line.add("particles", bodies,
           "Bodies to simulate; if there are several, each has a random mu up to 0.5 and a random start", at_least_one);
  line.add("estimate", estimate, "What is unknown: mu; mu,q0 (the start too); mu,q0,v0 (and the initial velocity)",
           one_of({"mu", "mu,q0", "mu,q0,v0"}));
  line.add("initial-mu", initial_mu, "Friction coefficient to start from", nonnegative);
  line.add("prior", prior, "Weight of the squared distance of the start from (first observation, --velocity)",
           nonnegative);
}

void TrackFlags::validate(const CommandLine& line, const std::vector<std::string>& simulated) {
  if (!data.empty() && !line.given("noise")) noise = 0;
  if (process_noise > 0 && noise == 0) {
    throw UsageError("--process-noise needs --noise > 0: the weight of each depends on the other");
  }
  if (data.empty()) {
    if (bodies > 1) line.exclude({"position", "mu"}, "--particles " + std::to_string(bodies));
    return;
  }
  std::vector<std::string> meaningless = {"steps", "mu", "dt"};
  meaningless.insert(meaningless.end(), simulated.begin(), simulated.end());
  line.exclude(meaningless, "--data");
  if (!line.given("position")) position.clear();
}

Tensor simulated_forces(const RunFlags& run, const TrackFlags& flags, const Tensor& reach, std::int64_t k) {
  Tensor force = row(flags.force).expand({flags.steps, flags.bodies, reach.size(0)});
  if (flags.process_noise > 0) {
    const Tensor normal = at::randn(force.sizes(), generator(run.seed, Stream::kProcessNoise, k), at::kDouble);
    force = force + flags.process_noise * reach * normal;
  }
  return force;
}

TrackProblem observe(const RunFlags& run, const TrackFlags& flags, const BodyState& start, const Tensor& mu,
                     const BodyState& motion, const Tensor& reach, std::int64_t k) {
  const auto with_start = [](const Tensor& first, const Tensor& next) { return at::cat({first.unsqueeze(0), next}); };
  const Tensor positions = with_start(start.position, motion.position);
  const Tensor uniform =
      2 * at::rand(positions.sizes(), generator(run.seed, Stream::kPositionNoise, k), at::kDouble) - 1;
  TrackProblem problem{.tracks = {flags.block.dt, positions + flags.noise * uniform / reach,
                                  at::ones({positions.size(0), positions.size(1), 1}, at::kDouble)},
                       .start = start,
                       .mu = mu,
                       .motion = {positions, with_start(start.velocity, motion.velocity)},
                       .reach = reach,
                       .noise = flags.noise / std::sqrt(3)};
  set_process(flags, problem);
  return problem;
}

namespace {

TrackProblem read_problem(const TrackFlags& flags, const Tensor& reach) {
  TrackProblem problem{
      .tracks = read_tracks(flags.data, flags.coordinates), .reach = reach, .noise = flags.noise / std::sqrt(3)};
  if (flags.noise == 0) problem.noise = std::numeric_limits<double>::quiet_NaN();
  Tensor& observed = problem.tracks.observed;
  for (std::size_t k = 0; k < flags.coordinates.size(); ++k) {
    if (flags.coordinates[k] != "theta") continue;
    const Tensor angle = observed.select(-1, static_cast<std::int64_t>(k));
    angle.copy_(unwrapped(angle));
  }
  const Tensor first = observed[0];
  set_process(flags, problem);
  problem.start = {flags.position.empty() ? first : row(flags.position).expand_as(first),
                   row(flags.velocity).expand_as(first)};
  return problem;
}

// The bodies of all problems, which must have equally many steps.
TrackProblem joined(const std::vector<TrackProblem>& all) {
  const auto together = [&](const auto& of, std::int64_t dim) {
    std::vector<Tensor> parts(all.size());
    std::transform(all.begin(), all.end(), parts.begin(), of);
    return at::cat(parts, dim);
  };
  const TrackProblem& first = all.front();
  return {.tracks = {first.tracks.dt, together([](const auto& one) { return one.tracks.observed; }, 1),
                     together([](const auto& one) { return one.tracks.seen; }, 1)},
          .start = {together([](const auto& one) { return one.start.position; }, 0),
                    together([](const auto& one) { return one.start.velocity; }, 0)},
          .mu = together([](const auto& one) { return one.mu; }, 0),
          .motion = {together([](const auto& one) { return one.motion.position; }, 1),
                     together([](const auto& one) { return one.motion.velocity; }, 1)},
          .reach = first.reach,
          .noise = first.noise,
          .process = first.process};
}

constexpr struct {
  const char* name;
  std::unique_ptr<TrackSystem> (*make)();
} kKinds[] = {{"particle", make_particles}, {"tripod", make_tripods}};

}  // namespace

TrackProblem TrackSystem::load(const RunFlags& run) const {
  const torch::NoGradGuard no_grad;
  return tracks.data.empty() ? simulate(run, 0) : read_problem(tracks, reach());
}

TrackProblem TrackSystem::repeat(const RunFlags& run, std::int64_t first, std::int64_t repeats) const {
  const torch::NoGradGuard no_grad;
  std::vector<TrackProblem> all;
  all.reserve(static_cast<std::size_t>(repeats));
  for (std::int64_t k = 0; k < repeats; ++k) all.push_back(simulate(run, first + k + 1));
  return joined(all);
}

SystemFlag::SystemFlag(int argc, const char* const* argv) : name_(early_value(argc, argv, "system", kKinds[0].name)) {
  for (const auto& kind : kKinds) {
    if (kind.name == name_) system_ = kind.make();
  }
  if (!system_) throw UsageError("--system must be " + listed(names_of(kKinds)) + "; got \"" + name_ + "\"");
}

void SystemFlag::add_to(CommandLine& line) {
  line.add("system", name_,
           "What moves: " + listed(names_of(kKinds)) +
               " (particles that fall and slide, blocks that slide and turn on three supports). The "
               "other flags and their defaults depend on it");
}

TrackModel::TrackModel(const TrackSystem& system, const TrackProblem& problem)
    : system_(system), flags_(system.tracks), problem_(problem), unknowns_(static_cast<std::int64_t>(names().size())) {}

FrictionEvidence TrackModel::evidence(const Tensor& theta) const {
  return system_.evidence(start_of(theta), theta.select(-1, 0), forces(theta), problem_.tracks.dt);
}

std::vector<std::string> TrackModel::names() const {
  std::vector<std::string> all = {"mu"};
  if (flags_.estimate == "mu") return all;
  all.insert(all.end(), flags_.coordinates.begin(), flags_.coordinates.end());
  if (flags_.estimate == "mu,q0") return all;
  const std::vector<std::string> velocities = flags_.velocities();
  all.insert(all.end(), velocities.begin(), velocities.end());
  return all;
}

Tensor TrackModel::start(double mu) const {
  const Tracks& tracks = problem_.tracks;
  Tensor theta = at::full({tracks.count(), 1}, mu, at::kDouble);
  if (flags_.estimate != "mu") theta = at::cat({theta, tracks.observed[0]}, -1);
  if (flags_.estimate == "mu,q0,v0") {
    // The slope of the first positions less the effect of acceleration: q_k = q_0 + k dt v + k (k + 1) / 2 dt^2 a.
    const std::int64_t n = std::min(kVelocitySteps, tracks.steps()) + 1;
    const Tensor k = at::arange(n, at::kDouble).view({n, 1, 1});
    const Tensor linear =
        tracks.observed.slice(0, 0, n) - k * (k + 1) / 2 * tracks.dt * tracks.dt * system_.acceleration();
    const Tensor centred = k - k.mean();
    theta = at::cat({theta, (centred * linear).sum(0) / (centred.square().sum() * tracks.dt)}, -1);
  }
  return at::constant_pad_nd(theta, {0, problem_.random_forces()});
}

Tensor TrackModel::lower() const {
  Tensor bound =
      at::full({unknowns_ + problem_.random_forces()}, -std::numeric_limits<double>::infinity(), at::kDouble);
  bound[0] = 0;
  return bound;
}

BodyState TrackModel::start_of(const Tensor& theta) const {
  const auto k = static_cast<std::int64_t>(flags_.coordinates.size());
  auto shape = theta.sizes().vec();
  shape.back() = k;
  return {unknowns_ > 1 ? theta.slice(-1, 1, 1 + k) : problem_.start.position.expand(shape),
          unknowns_ > 1 + k ? theta.slice(-1, 1 + k, 1 + 2 * k) : problem_.start.velocity.expand(shape)};
}

Tensor TrackModel::forces(const Tensor& theta) const {
  const Tensor force = row(flags_.force);
  const std::int64_t steps = problem_.tracks.steps(), k = force.size(0);
  if (problem_.random_forces() == 0) return force.expand({steps, problem_.tracks.count(), k});
  return force + problem_.process * theta.slice(-1, unknowns_).unflatten(-1, {steps, k}).movedim(-2, 0);
}

BodyState TrackModel::step(const BodyState& state, const Tensor& mu, const Tensor& u, std::int64_t substeps) const {
  const Tensor parts = u.unsqueeze(0).repeat_interleave(substeps, 0);
  const BodyState next = system_.move(state, mu, parts, problem_.tracks.dt / static_cast<double>(substeps));
  return {next.position[-1], next.velocity[-1]};
}

BodyState TrackModel::motion(const Tensor& theta, std::int64_t substeps) const {
  const BodyState start = start_of(theta);
  const Tensor u = forces(theta).repeat_interleave(substeps, 0);
  const BodyState next =
      system_.move(start, theta.select(-1, 0), u, problem_.tracks.dt / static_cast<double>(substeps));
  const auto track = [&](const Tensor& first, const Tensor& after) {
    return at::cat({first.unsqueeze(0), after.slice(0, substeps - 1, std::nullopt, substeps)});
  };
  return {track(start.position, next.position), track(start.velocity, next.velocity)};
}

Tensor TrackModel::residuals(const Tensor& theta, std::int64_t substeps) const {
  const Tracks& tracks = problem_.tracks;
  const Tensor predicted = motion(theta, substeps).position.movedim(0, -2);  // [..., b, steps + 1, k]
  const Tensor error = (predicted - tracks.observed.movedim(0, -2)) * tracks.seen.movedim(0, -2) * problem_.reach;
  Tensor all = error.flatten(-2);
  if (problem_.random_forces() > 0) all = at::cat({all, problem_.noise * theta.slice(-1, unknowns_)}, -1);
  if (flags_.prior > 0 && flags_.estimate != "mu") {
    const Tensor root = std::sqrt(flags_.prior) * problem_.reach;
    const BodyState state = start_of(theta);
    all = at::cat({all, root * (state.position - tracks.observed[0])}, -1);
    if (flags_.estimate == "mu,q0,v0") all = at::cat({all, root * (state.velocity - problem_.start.velocity)}, -1);
  }
  return all;
}

}  // namespace lcp::training
