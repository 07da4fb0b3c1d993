// The tracks of particles that fall and slide.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#include <ATen/ATen.h>

#include "identification/track_program.h"
#include "lcp/physics/point_mass.h"
#include "run/random.h"

namespace lcp::training {
namespace {

using physics::PointMass;
using torch::Tensor;

// The unknowns of contact: lambda_n, lambda_+, lambda_-, sigma, s_1, s_2, s_3 >= 0, where lambda_+ acts against
// v_x > 0 and
//
//   s_1 = sigma - v_x,  s_2 = sigma + v_x,  s_3 = mu lambda_n - lambda_+ - lambda_-.
constexpr std::int64_t kContact = 7;

// With the flags of the example of [BT].
class Particles : public TrackSystem {
 public:
  Particles()
      : TrackSystem({.coordinates = {"x", "y"},
                     .block = {.mass = 1, .dt = 0.05, .mu = 0.2, .gravity = 9.81},
                     .steps = 100,
                     .noise = 5e-3,
                     .force = {5, 0},
                     .position = {0, 3},
                     .velocity = {0, 0}}) {}

  Tensor acceleration() const override {
    return row(tracks.force) / tracks.block.mass - row({0, tracks.block.gravity});
  }

  BodyState move(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const override {
    const auto next = physics::simulate({start.position, start.velocity}, u, mass(dt, mu)).step.next;
    return {next.position, next.velocity};
  }

  FrictionEvidence evidence(const BodyState& start, const Tensor& mu, const Tensor& u, double dt) const override {
    const PointMass particle = mass(dt, mu);
    const physics::PointMassState first{start.position, start.velocity};
    const auto rollout = physics::simulate(first, u, particle);
    const physics::PointMassStep& step = rollout.step;
    const Tensor friction = (step.lambda_plus - step.lambda_minus).abs();
    return {physics::certify_rollout(first, u, particle, {}, rollout),
            at::where(step.lambda_n > 0, friction / step.lambda_n, -1).amax(0),
            ((step.lambda_n > 0) & (step.next.velocity.select(-1, 0) != 0)).any(0)};
  }

  double first_weight() const override { return 1e-3; }

  // Each particle has 11 steps + 5 unknowns, and 2 more in each step with random forces.
  TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const override {
    const TrackFlags& flags = tracks;
    TrackProgram all(flags, problem, bound, kContact);
    BilinearProgram& program = all.program;
    const std::int64_t steps = problem.tracks.steps();
    const double mass = flags.block.mass;
    for (std::int64_t b = 0; b < problem.tracks.count(); ++b) {
      all.add_body(b, {-kUnbounded, 0});
      for (std::int64_t k = 1; k <= steps; ++k) {
        all.add_step(k);
        for (std::int64_t i = 0; i < kContact; ++i) program.add(0, kUnbounded, 0);
        const std::int64_t normal = all.contact(k, 0), plus = all.contact(k, 1), minus = all.contact(k, 2);
        const std::int64_t sigma = all.contact(k, 3), s_1 = all.contact(k, 4), s_2 = all.contact(k, 5);
        const std::int64_t s_3 = all.contact(k, 6), v_x = all.v(k, 0);
        all.balance(k, 0, mass, flags.force[0], {{plus, -1}, {minus, 1}});
        all.balance(k, 1, mass, flags.force[1] - mass * flags.block.gravity, {{normal, 1}});
        program.equations.push_back({{{s_1, 1}, {sigma, -1}, {v_x, 1}}, 0});
        program.equations.push_back({{{s_2, 1}, {sigma, -1}, {v_x, -1}}, 0});
        program.equations.push_back({{{s_3, 1}, {normal, -1, all.mu()}, {plus, 1}, {minus, 1}}, 0});
        program.pairs.push_back({normal, all.q(k, 1)});
        program.pairs.push_back({plus, s_1});
        program.pairs.push_back({minus, s_2});
        program.pairs.push_back({sigma, s_3});
      }
      for (std::int64_t k = 0; k <= steps && bound.size > 0 && bound.euclidean; ++k) {
        if (problem.tracks.seen[k][b][0].item<double>() == 0) continue;
        const Tensor centre = problem.tracks.observed[k][b];
        program.balls.push_back({{all.q(k, 0), all.q(k, 1)},
                                 {centre[0].item<double>(), centre[1].item<double>()},
                                 bound.size * bound.size});
      }
    }
    return all;
  }

  // The forces are `normal` and `friction`, in the direction of x.
  ProgramMotion read(const TrackProgram& program, const MpecSolution& solution,
                     const TrackModel& model) const override {
    const auto [theta, motion, contact] = program.read(solution, model);
    const auto of = [&x = contact](std::int64_t i) { return x.select(-1, i); };
    const Tensor height = motion.position.slice(0, 1).select(-1, 1);
    const Tensor product = at::stack({of(0) * height, of(1) * of(4), of(2) * of(5), of(3) * of(6)}).amax(0);
    return {theta,
            motion,
            {"normal", "friction"},
            after_start(at::stack({of(0), of(2) - of(1)}, -1)),
            after_start(product),
            step_residual(model, theta, motion)};
  }

 protected:
  Tensor reach() const override { return at::ones({2}, at::kDouble); }

  // A single particle has the start and the friction of the flags. Several have random ones, as in [BT].
  TrackProblem simulate(const RunFlags& run, std::int64_t k) const override {
    const std::int64_t b = tracks.bodies;
    const auto uniform = [&](Stream stream, at::IntArrayRef shape) {
      return at::rand(shape, generator(run.seed, stream), at::kDouble);
    };
    Tensor mu = 0.5 * (1 - uniform(Stream::kParameters, {b}));
    Tensor position = uniform(Stream::kStarts, {b, 2}) * row({20, 5}) + row({-10, 0});
    if (b == 1) {
      mu.fill_(tracks.block.mu);
      position.copy_(row(tracks.position));
    }
    const BodyState start{position, row(tracks.velocity).expand({b, 2})};
    const Tensor u = simulated_forces(run, tracks, reach(), k);
    return observe(run, tracks, start, mu, move(start, mu, u, tracks.block.dt), reach(), k);
  }

 private:
  PointMass mass(double dt, const Tensor& mu) const {
    PointMass mass = PointMass::of(tracks.block.mass, dt, 0, tracks.block.gravity);
    mass.mu = mu;
    return mass;
  }
};

}  // namespace

std::unique_ptr<TrackSystem> make_particles() { return std::make_unique<Particles>(); }

}  // namespace lcp::training
