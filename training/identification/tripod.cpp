#include "identification/tripod.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "identification/track_program.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using physics::Tripod;
using torch::Tensor;
using Term = BilinearProgram::Term;

constexpr std::int64_t kSupports = 3;

// The unknowns of contact of a step: c and s, the cosine and the sine of the angle at its start, and of each support i
// the load N_i and, >= 0, the forces lambda_ij along the directions d_j, sigma_i and the slacks
//
//   s_ij = sigma_i + d_j.v_i,   s_i = mu N_i - sum_j lambda_ij,
//
// where v_i = v + omega x R r_i and R r_i = (c r_x - s r_y, s r_x + c r_y).
struct Layout {
  std::int64_t directions;

  std::int64_t support(std::int64_t i) const { return 2 + i * (2 * directions + 3); }
  std::int64_t load(std::int64_t i) const { return support(i); }
  std::int64_t force(std::int64_t i, std::int64_t j) const { return support(i) + 1 + j; }
  std::int64_t sigma(std::int64_t i) const { return support(i) + 1 + directions; }
  std::int64_t slip_slack(std::int64_t i, std::int64_t j) const { return support(i) + 2 + directions + j; }
  std::int64_t cone_slack(std::int64_t i) const { return support(i) + 2 + 2 * directions; }
  std::int64_t count() const { return support(kSupports); }
};

struct Direction {
  double x, y;
};

Direction direction(std::int64_t j, std::int64_t n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

Tripods::Tripods()
    : TrackSystem({.coordinates = {"x", "y", "theta"},
                   .block = {.mass = 1, .dt = 0.01, .mu = 0.33, .gravity = 9.81},
                   .steps = 50,
                   .noise = 5e-4,
                   .force = {0, 0, 0},
                   .position = {0, 0, 0},
                   .velocity = {1, 0.3, 8},
                   .estimate = "mu,q0,v0"}) {}

void Tripods::add_bodies_to(CommandLine& line) {
  TrackSystem::add_bodies_to(line);
  block.add_to(line);
  line.add("reach", length_of_angles_,
           "Length by which angles are multiplied to compare them with positions, m; the noise of theta is "
           "--noise / --reach",
           positive);
  line.add("true-directions", true_directions_, "Directions of the simulated block; 0: --directions",
           [](const std::int64_t& n) { return n == 0 ? "" : even_directions(n); });
  line.add("true-com-height", true_com_height_,
           "Height of the simulated block's centre of mass, m; less than 0: --com-height", finite_number);
}

void Tripods::validate(const CommandLine& line, std::vector<std::string> simulated) {
  simulated.insert(simulated.end(), {"true-directions", "true-com-height"});
  TrackSystem::validate(line, simulated);
  block.tripod(tracks.block);
}

Tripod Tripods::tripod(double dt, const Tensor& mu) const {
  PhysicsFlags parameters = tracks.block;
  parameters.dt = dt;
  Tripod tripod = block.tripod(parameters);
  tripod.mu = mu;
  return tripod;
}

Tensor Tripods::reach() const { return row({1, 1, length_of_angles_}); }

// A single block has the start and the friction of the flags. Several have random friction, start at random within 1 m
// and have 0.5 to 1.5 times the velocity of the flags.
TrackProblem Tripods::simulate(const RunFlags& run, std::int64_t k) const {
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
  Tripods truth = *this;
  if (true_directions_ > 0) truth.block.directions = true_directions_;
  if (true_com_height_ >= 0) truth.block.com_height = true_com_height_;
  const Tensor u = simulated_forces(run, tracks, reach(), k);
  const BodyState start{position, velocity};
  return observe(run, tracks, start, mu, truth.move(start, mu, u, tracks.block.dt), reach(), k);
}

Tensor Tripods::acceleration() const {
  return row(tracks.force) / row({tracks.block.mass, tracks.block.mass, block.inertia});
}

BodyState Tripods::move(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const {
  const auto next = physics::simulate({start.position, start.velocity}, u, tripod(dt, mu), block.directions).step.next;
  return {next.pose, next.velocity};
}

FrictionEvidence Tripods::evidence(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const {
  const Tripod body = tripod(dt, mu);
  const physics::TripodState first{start.position, start.velocity};
  const auto rollout = physics::simulate(first, u, body, block.directions);
  // A block at rest does not determine the load of each support, but it determines their sum: |sum f| <= mu sum N.
  const Tensor used = rollout.step.friction.sum(-2).norm(2, -1) / rollout.step.normal.sum(-1);
  return {physics::certify_rollout(first, u, body, block.directions, rollout), used.amax(0),
          (rollout.step.next.velocity != 0).flatten(2).any(-1).any(0)};
}

TrackProgram Tripods::program(const TrackProblem& problem, const NoiseBound& bound) const {
  if (bound.size > 0 && bound.euclidean) throw UsageError("--bound-norm euclidean needs --system particle");
  const Layout layout{block.directions};
  const std::int64_t n = layout.directions;
  const double mass = tracks.block.mass, height = block.com_height;
  const Tensor rest = physics::static_normals(tripod(problem.tracks.dt, at::zeros({}, at::kDouble)));  // [3]
  TrackProgram all(tracks, problem, bound, layout.count());
  BilinearProgram& program = all.program;
  for (std::int64_t b = 0; b < problem.tracks.count(); ++b) {
    all.add_body(b, std::vector<double>(3, -kUnbounded));
    for (std::int64_t k = 1; k <= problem.tracks.steps(); ++k) {
      all.add_step(k);
      const auto at = [&](std::int64_t place) { return all.contact(k, place); };
      const double angle = problem.tracks.observed[k - 1][b][2].item<double>();
      const std::int64_t c = program.add(-1, 1, std::cos(angle)), s = program.add(-1, 1, std::sin(angle));
      program.dependences.push_back({BilinearProgram::Function::kCosine, all.q(k - 1, 2), c});
      program.dependences.push_back({BilinearProgram::Function::kSine, all.q(k - 1, 2), s});
      std::vector<Term> force_x, force_y, moment, load, tilt_x, tilt_y;
      for (std::int64_t i = 0; i < kSupports; ++i) {
        const double r_x = block.supports[static_cast<std::size_t>(2 * i)];
        const double r_y = block.supports[static_cast<std::size_t>(2 * i + 1)];
        const double N = rest[i].item<double>();
        program.add(height > 0 ? 0 : N, height > 0 ? kUnbounded : N, N);
        for (std::int64_t x = layout.force(i, 0); x < layout.support(i + 1); ++x) program.add(0, kUnbounded, 0);
        load.push_back({at(layout.load(i)), 1});
        // sum_i N_i R r_i + h sum_i f_i = 0.
        tilt_x.insert(tilt_x.end(), {{at(layout.load(i)), r_x, c}, {at(layout.load(i)), -r_y, s}});
        tilt_y.insert(tilt_y.end(), {{at(layout.load(i)), r_x, s}, {at(layout.load(i)), r_y, c}});
        std::vector<Term> cone = {{at(layout.cone_slack(i)), 1}, {at(layout.load(i)), -1, all.mu()}};
        for (std::int64_t j = 0; j < n; ++j) {
          const auto [d_x, d_y] = direction(j, n);
          const std::int64_t lambda = at(layout.force(i, j)), slack = at(layout.slip_slack(i, j));
          const double with_c = r_x * d_y - r_y * d_x, with_s = -r_y * d_y - r_x * d_x;  // R r_i x d_j
          force_x.push_back({lambda, d_x});
          force_y.push_back({lambda, d_y});
          moment.insert(moment.end(), {{lambda, with_c, c}, {lambda, with_s, s}});
          cone.push_back({lambda, 1});
          program.equations.push_back({{{slack, 1},
                                        {at(layout.sigma(i)), -1},
                                        {all.v(k, 0), -d_x},
                                        {all.v(k, 1), -d_y},
                                        {all.v(k, 2), -with_c, c},
                                        {all.v(k, 2), -with_s, s}},
                                       0});
          program.pairs.push_back({lambda, slack});
        }
        program.equations.push_back({cone, 0});
        program.pairs.push_back({at(layout.sigma(i)), at(layout.cone_slack(i))});
      }
      all.balance(k, 0, mass, tracks.force[0], force_x);
      all.balance(k, 1, mass, tracks.force[1], force_y);
      all.balance(k, 2, block.inertia, tracks.force[2], moment);
      if (height == 0) continue;  // the loads are those at rest
      for (const auto& [lambda, d_x, none] : force_x) tilt_x.push_back({lambda, height * d_x});
      for (const auto& [lambda, d_y, none] : force_y) tilt_y.push_back({lambda, height * d_y});
      program.equations.push_back({load, mass * tracks.block.gravity});
      program.equations.push_back({tilt_x, 0});
      program.equations.push_back({tilt_y, 0});
    }
  }
  return all;
}

ProgramMotion Tripods::read(const TrackProgram& program, const MpecSolution& solution, const TrackModel& model) const {
  const Layout layout{block.directions};
  const std::int64_t n = layout.directions;
  const auto [theta, motion, contact] = program.read(solution, model);
  const auto of = [&x = contact](std::int64_t i) { return x.select(-1, i); };
  const Tensor c = of(0), s = of(1);
  Tensor normal = at::zeros_like(c), x = normal, y = normal, moment = normal, product = normal;
  for (std::int64_t i = 0; i < kSupports; ++i) {
    const double r_x = block.supports[static_cast<std::size_t>(2 * i)];
    const double r_y = block.supports[static_cast<std::size_t>(2 * i + 1)];
    normal = normal + of(layout.load(i));
    product = at::maximum(product, of(layout.sigma(i)) * of(layout.cone_slack(i)));
    for (std::int64_t j = 0; j < n; ++j) {
      const auto [d_x, d_y] = direction(j, n);
      const Tensor lambda = of(layout.force(i, j));
      x = x + d_x * lambda;
      y = y + d_y * lambda;
      moment = moment + lambda * (c * (r_x * d_y - r_y * d_x) - s * (r_y * d_y + r_x * d_x));
      product = at::maximum(product, lambda * of(layout.slip_slack(i, j)));
    }
  }
  return {theta,
          motion,
          {"normal", "friction_x", "friction_y", "moment"},
          after_start(at::stack({normal, x, y, moment}, -1)),
          after_start(product),
          step_residual(model, theta, motion)};
}

std::unique_ptr<TrackSystem> make_tripods() { return std::make_unique<Tripods>(); }

}  // namespace lcp::training
