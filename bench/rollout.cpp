// rollout/: 1000 trajectories, on as many threads as there are cores, up to 2, of 1000 steps, and of 50 steps of a
// tripod, 100 of a planar block or of a body on compliant ground, 200 of a cube and 50 of a cube with polyhedral
// friction or with kappa. "gradient" is a rollout and the gradient of its last state with respect to mu and the first,
// "tangent" one in forward mode and the tangent of its last state. Beside it: the time inside lcp:: of it; the problems
// of its steps, solved by one call for each step, as a loop has to, and by one for all steps, "gradient" with that of z
// in q, for the cube that of v in b, for compliant ground that of v in v_hat; and a copy of as many bytes as the
// rollout must read and write. Memory that is freed is kept: page faults in fresh memory would be most of the time of
// some.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <lcp/friction_problem.h>
#include <lcp/physics/compliant_block.h>
#include <lcp/physics/compliant_particle.h>
#include <lcp/physics/planar_block.h>
#include <lcp/physics/point_mass.h>
#include <lcp/physics/rigid_scene.h>
#include <lcp/physics/sliding_block.h>
#include <lcp/physics/tripod.h>
#include <lcp/solve_contact.h>
#include <lcp/solve_friction.h>
#include <lcp/step.h>
#include <malloc.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "inside_lcp.h"
#include "measure.h"
#include "physics/rigid_stepper.h"
#include "support/own_point_mass.h"

namespace lcp::bench {
namespace {

using at::Tensor;

constexpr std::int64_t kSteps = 1000;
constexpr std::int64_t kPlanarSteps = 100;
constexpr std::int64_t kCompliantSteps = 100;
constexpr std::int64_t kCubeSteps = 200;
constexpr std::int64_t kPyramidSteps = 50;  // so few that the LCPs of all fit in memory
constexpr std::int64_t kTripodSteps = 50;
constexpr std::int64_t kTrajectories = 1000;
constexpr double kSmoothing = 1e-3;  // kappa of the smoothed cubes, J

struct Result {
  Tensor last, status;
};

/// Solves the problems of `count` steps of a rollout as one batch.
using Solves = std::function<Work(std::int64_t first, std::int64_t count, bool gradient)>;

/// A rollout of a system from (state, mu).
struct Rollout {
  Tensor state, mu;
  std::function<Result(const Tensor& state, const Tensor& mu)> run;
  Solves solves;
  std::int64_t bytes, gradient_bytes;  ///< that a step of a trajectory must read and write
};

// The states before the steps of a rollout, without their history.
Tensor starts_of(const Tensor& first, const Tensor& next) {
  return at::cat({first.unsqueeze(0), next.slice(0, 0, -1)}).detach();
}

/// problems: of all steps; of a mixed formulation, those that it reduces to. A step reads and writes its input, the
/// next state, z, w, the residual and the status; with the gradient, also the complementary basis, to and fro, and the
/// gradient of the next state.
Rollout rollout_of(const Tensor& state, const Tensor& mu,
                   std::function<Result(const Tensor& state, const Tensor& mu)> run, const physics::Problem& problems,
                   std::int64_t states, std::int64_t inputs) {
  const auto solves = [all_M = problems.M, all_q = problems.q.contiguous()](std::int64_t first_step, std::int64_t count,
                                                                            bool gradient) -> Work {
    const Tensor q = all_q.narrow(0, first_step, count),
                 M = all_M.dim() > 2 ? all_M.narrow(0, first_step, count) : all_M;
    if (!gradient) return solving(M, q);
    const Tensor leaf = q.clone().requires_grad_();
    return [=, ones = at::ones_like(q)] {
      benchmark::DoNotOptimize(torch::autograd::grad({solve(M, leaf).z}, {leaf}, {ones}));
    };
  };
  const std::int64_t n = problems.q.size(-1), forward = 8 * (inputs + states + 2 * n + 1) + 1;
  return {state, mu, std::move(run), solves, forward, forward + 2 * n + 8 * states};
}

Rollout sliding_block(physics::SlidingBlockFormulation formulation) {
  torch::manual_seed(0);
  const auto block = physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor u = 4.4 * torch::randn({kSteps, kTrajectories}, torch::kDouble);
  const Tensor first = torch::randn({kTrajectories}, torch::kDouble);
  const Tensor v = starts_of(first, physics::simulate(first, u, block, formulation).step.v_next);
  const bool direct = formulation == physics::SlidingBlockFormulation::kDirect;
  return rollout_of(
      first, block.mu,
      [=](const Tensor& start, const Tensor& mu) -> Result {
        const auto solution = physics::simulate(start, u, {block.mass, block.dt, mu, block.gravity}, formulation);
        return {solution.step.v_next[-1], solution.status};
      },
      direct ? physics::direct_problem(v, u, block) : physics::traditional_problem(v, u, block), 1, 1);
}

// Blocks that turn, and now and then rest. The problems are those of the last passes.
Rollout planar_block(const physics::PlanarBlockOptions& options) {
  torch::manual_seed(0);
  const auto block = physics::PlanarBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor u = 4.4 * torch::randn({kPlanarSteps, kTrajectories, 2}, torch::kDouble);
  const Tensor first = torch::randn({kTrajectories, 2}, torch::kDouble);
  const auto rollout = physics::simulate(first, u, block, options);
  return rollout_of(
      first, block.mu,
      [=](const Tensor& start, const Tensor& mu) -> Result {
        const auto solution = physics::simulate(start, u, {block.mass, block.dt, mu, block.gravity}, options);
        return {solution.step.v_next[-1], solution.status};
      },
      physics::direction_problem(starts_of(first, rollout.step.v_next), u, rollout.direction, block,
                                 options.directions),
      options.formulation == physics::PlanarBlockFormulation::kFixedPoint ? 8 : 6, 2);
}

// is_own: steps of lcp/step.h in place of those of the library, which are the same.
Rollout point_mass(const physics::PointMassOptions& options, bool is_own = false) {
  torch::manual_seed(0);
  const auto mass = physics::PointMass::of(1, 0.01, 0.5, 9.81);
  const Tensor height = torch::rand({kTrajectories}, torch::kDouble);
  const Tensor position = torch::stack({torch::zeros_like(height), height}, -1);
  const Tensor u = torch::zeros({kSteps, 1, 2}, torch::kDouble);
  const Tensor first = 3 * torch::randn({kTrajectories, 2}, torch::kDouble);
  const auto next = physics::simulate({position, first}, u, mass, options).step.next;
  const physics::PointMassState starts = {starts_of(position, next.position), starts_of(first, next.velocity)};
  return rollout_of(
      first, mass.mu,
      [=](const Tensor& velocity, const Tensor& mu) -> Result {
        if (is_own) {
          static const bool registered = register_step<testing::PointMass>("bench::point_mass");
          const Tensor parameters = at::stack({mass.mass, mass.dt, mu, mass.gravity, mass.restitution}, -1);
          const StepRollout own =
              simulate_step("bench::point_mass", parameters, at::cat({position, velocity}, -1), u.movedim(0, -2));
          return {own.x_next.select(-2, -1).narrow(-1, 0, 2), registered ? own.status : Tensor()};
        }
        const auto solution = physics::simulate({position, velocity}, u,
                                                {mass.mass, mass.dt, mu, mass.gravity, mass.restitution}, options);
        return {solution.step.next.position[-1], solution.status};
      },
      physics::reduced_problem(starts, u, mass, options.stabilization), 4, 2);
}

// Tripods that slide and turn until they rest.
Rollout tripod() {
  torch::manual_seed(0);
  const auto body = physics::Tripod::of(1, 2e-3, 0.01, 0.3, 9.81, 0.01);
  constexpr std::int64_t kDirections = 4;
  const Tensor pose = torch::randn({kTrajectories, 3}, torch::kDouble);
  const Tensor first = torch::randn({kTrajectories, 3}, torch::kDouble) * torch::tensor({0.5, 0.5, 5.}, torch::kDouble);
  const Tensor u = torch::zeros({kTripodSteps, 1, 3}, torch::kDouble);
  const auto next = physics::simulate({pose, first}, u, body, kDirections).step.next;
  return rollout_of(
      first, body.mu,
      [=](const Tensor& velocity, const Tensor& mu) -> Result {
        physics::Tripod with = body;
        with.mu = mu;
        const auto solution = physics::simulate({pose, velocity}, u, with, kDirections);
        return {solution.step.next.pose[-1], solution.status};
      },
      physics::polyhedral_problem({starts_of(pose, next.pose), starts_of(first, next.velocity)}, u, body, kDirections),
      6, 3);
}

/// Bodies that fall from `state` on compliant ground. A step reads and writes its input, the next state, the impulses,
/// the status and the iterations; with the gradient, also y of csrc/contact/problem.h, to and fro, and the gradient of
/// the next state.
template <class Body>
Rollout on_compliant_ground(const physics::CompliantState& state, const Body& body, std::int64_t contacts) {
  const Tensor u = torch::zeros({kCompliantSteps, 1, 3}, torch::kDouble);
  const auto next = physics::simulate(state, u, body).step.next;
  const physics::CompliantState starts = {starts_of(state.position, next.position),
                                          starts_of(state.velocity, next.velocity)};
  const auto solves = [all = contact_problem(starts, u, body), guess = starts.velocity](
                          std::int64_t first, std::int64_t count, bool gradient) -> Work {
    const auto some = [=](const Tensor& x) { return x.dim() > 2 ? x.narrow(0, first, count) : x; };
    const Tensor J = all.J.dim() > 3 ? some(all.J) : all.J;
    const ContactOptions options = {.guess = some(guess)};
    const auto solved = [=, A = all.A, mu = all.mu, v_free = some(all.v_free), R = some(all.R)](const Tensor& v_hat) {
      return solve_contact(A, v_free, J, v_hat, R, mu, options).v;
    };
    const Tensor v_hat = some(all.v_hat);
    if (!gradient) return [=] { benchmark::DoNotOptimize(solved(v_hat)); };
    const Tensor leaf = v_hat.clone().requires_grad_();
    return [=] {
      const Tensor result = solved(leaf);
      benchmark::DoNotOptimize(torch::autograd::grad({result}, {leaf}, {at::ones_like(result)}));
    };
  };
  const std::int64_t numbers = 3 + 6 + 3 * contacts, forward = 8 * numbers + 9;
  return {state.velocity,
          body.ground.mu,
          [=](const Tensor& velocity, const Tensor& mu) -> Result {
            Body with = body;
            with.ground.mu = mu;
            const auto solution = physics::simulate({state.position, velocity}, u, with);
            return {solution.step.next.position[-1], solution.status};
          },
          solves,
          forward,
          forward + 8 * (2 * 3 * contacts + 6)};
}

Rollout compliant_particle() {
  torch::manual_seed(0);
  const auto ground = physics::CompliantGround::of(0.5, 1e4, 0.02);
  const Tensor size = torch::tensor({1., 1., 0.2}, torch::kDouble);
  return on_compliant_ground(
      {torch::rand({kTrajectories, 3}, torch::kDouble) * size, torch::randn({kTrajectories, 3}, torch::kDouble)},
      physics::CompliantParticle::of(1, 0.01, 9.81, ground), 1);
}

// Blocks that fall, tumble, slide and rest.
Rollout compliant_block() {
  torch::manual_seed(0);
  const auto ground = physics::CompliantGround::of(0.5, 1e4, 0.02);
  const auto numbers = [](double x, double z, double angle) { return torch::tensor({x, z, angle}, torch::kDouble); };
  const Tensor position = numbers(0, 0.4, 0) + numbers(1, 0.2, 1) * torch::rand({kTrajectories, 3}, torch::kDouble);
  return on_compliant_ground({position, numbers(1, 0.5, 2) * torch::randn({kTrajectories, 3}, torch::kDouble)},
                             physics::CompliantBlock::of(2, 0.6, 0.4, 0.01, 9.81, ground), 4);
}

// The chosen contacts of all steps of a rollout of one body, those of each step first and as many as `sizes` says.
struct ChosenContacts {
  Tensor A, mu, v_free, J, b, R, sizes;
};

ChosenContacts chosen_contacts(const physics::RigidScene& scene, const physics::RigidOptions& options,
                               const physics::RigidState& start, const Tensor& u,
                               const physics::RigidSolution& rollout) {
  const physics::RigidStepper stepper(scene, options, at::kDouble);
  std::vector<Tensor> all_v_free, all_J, all_b, all_R, all_sizes;
  physics::RigidState now = start;
  for (std::int64_t s = 0; s < u.size(0); ++s) {
    const Tensor v_free = stepper.free_velocity(now, u[s]);
    const physics::StepContacts contacts = stepper.find(now, v_free);
    const Tensor J = contacts.J.unflatten(-2, {-1, 3}), b = contacts.b.unflatten(-1, {-1, 3});
    const Tensor free = (J.select(-2, 2) * v_free.unsqueeze(-2)).sum(-1) + b.select(-1, 2);
    const Tensor chosen = (free < 0) | (rollout.gamma[s].unflatten(-1, {-1, 3}).select(-1, 2) > 0);
    const Tensor index = chosen.logical_not().to(at::kByte).argsort(true, -1);
    all_v_free.push_back(v_free);
    all_J.push_back(J.take_along_dim(index.unsqueeze(-1).unsqueeze(-1), -3));
    all_b.push_back(b.take_along_dim(index.unsqueeze(-1), -2));
    const Tensor R = contacts.R.defined() ? contacts.R.unflatten(-1, {-1, 3}) : at::zeros_like(b);
    all_R.push_back(R.take_along_dim(index.unsqueeze(-1), -2));
    all_sizes.push_back(chosen.sum(-1));
    const physics::RigidState& next = rollout.next;
    now = {next.position[s], next.orientation[s], next.velocity[s], next.angular_velocity[s]};
  }
  const Tensor sizes = at::stack(all_sizes);
  const auto most = sizes.max().item<std::int64_t>();
  const auto rows = [most](const std::vector<Tensor>& x) { return at::stack(x).narrow(-2, 0, most).flatten(-2); };
  return {stepper.A(),
          scene.mu.expand({most}).contiguous(),
          at::stack(all_v_free),
          at::stack(all_J).narrow(-3, 0, most).flatten(-3, -2),
          rows(all_b),
          rows(all_R),
          sizes};
}

// Solves their problems; the gradient is that of v in b, or of z in q for polyhedral contact.
Solves solves_of(const ChosenContacts& all, const physics::RigidOptions& options) {
  return [=](std::int64_t first, std::int64_t count, bool gradient) -> Work {
    const auto some = [=](const Tensor& x) { return x.narrow(0, first, count); };
    const Tensor A = all.A, mu = all.mu, v_free = some(all.v_free), J = some(all.J), b = some(all.b), R = some(all.R),
                 sizes = some(all.sizes);
    const double tolerance = physics::RigidOptions::kTolerance;
    std::function<Tensor(const Tensor&)> solved;
    Tensor varied = b;
    if (options.formulation == physics::RigidFormulation::kExactCone) {
      solved = [=](const Tensor& x) {
        return solve_friction(A, v_free, J, x, mu, {.sizes = sizes, .tolerance = tolerance}).v;
      };
    } else if (options.formulation == physics::RigidFormulation::kCompliant) {
      solved = [=](const Tensor& x) {
        return solve_contact(A, v_free, J, -x, R, mu, {.sizes = sizes, .tolerance = tolerance}).v;
      };
    } else {
      // The unknowns of each contact one behind another, so that those of the contacts that exist come first.
      const std::int64_t contacts = mu.size(0), directions = options.directions.count;
      const Tensor of_contact = at::arange(contacts).unsqueeze(-1);
      const Tensor order = at::cat({of_contact, contacts + directions * of_contact + at::arange(directions),
                                    contacts * (1 + directions) + of_contact},
                                   -1)
                               .flatten();
      const FrictionProblem problem = friction_problem(A, v_free, J, b, mu, options.directions);
      varied = problem.q.index_select(-1, order);
      SolveOptions how;
      how.sizes = (directions + 2) * sizes;
      how.ties = options.ties;
      how.tolerance = tolerance;
      solved = [M = problem.M.index_select(-2, order).index_select(-1, order), how](const Tensor& q) {
        return solve(M, q, how).z;
      };
    }
    if (!gradient) return [=] { benchmark::DoNotOptimize(solved(varied)); };
    const Tensor leaf = varied.clone().requires_grad_();
    return [=] {
      const Tensor result = solved(leaf);
      benchmark::DoNotOptimize(torch::autograd::grad({result}, {leaf}, {at::ones_like(result)}));
    };
  };
}

// Cubes of 10 cm, thrown so that they tumble, bounce and slide.
Rollout cube(physics::RigidFormulation formulation, std::int64_t steps, double kappa = 0) {
  torch::manual_seed(0);
  const auto of_double = torch::kDouble;
  const auto numbers = [&](const std::vector<double>& x) { return torch::tensor(x, of_double); };
  const physics::RigidScene scene{.bodies = {physics::RigidBody::box(0.37, {0.1, 0.1, 0.1})},
                                  .planes = {physics::Plane::inclined()},
                                  .dt = 1. / 148,
                                  .gravity = numbers({0, 0, -9.81}),
                                  .mu = numbers({0.3}),
                                  .restitution = numbers({0.1}),
                                  .stiffness = numbers({2000}),
                                  .dissipation = numbers({0.02})};
  physics::RigidOptions options;
  options.formulation = formulation;
  const std::vector<std::int64_t> of_bodies = {kTrajectories, 1, 3};
  const Tensor position = torch::rand(of_bodies, of_double) * numbers({0.3, 0.3, 0.1}) + numbers({0, 0, 0.1});
  const physics::RigidState start = {position, torch::randn({kTrajectories, 1, 4}, of_double),
                                     torch::randn(of_bodies, of_double), 4 * torch::randn(of_bodies, of_double)};
  const Tensor u = torch::zeros({steps, 1, 1, 6}, of_double);
  physics::RigidOptions smoothed = options;
  smoothed.kappa = kappa;
  const std::int64_t numbers_of_a_step = 13 + 3 * 8, flags = 8 + 1 + 8;  // the pairs, the status, the iterations
  const std::int64_t forward = 8 * numbers_of_a_step + flags;
  return {start.velocity,
          scene.mu,
          [=](const Tensor& velocity, const Tensor& mu) -> Result {
            physics::RigidScene with = scene;
            with.mu = mu;
            const auto solution = physics::simulate(
                {start.position, start.orientation, velocity, start.angular_velocity}, u, with, smoothed);
            return {solution.next.position[-1], solution.status};
          },
          solves_of(chosen_contacts(scene, options, start, u, physics::simulate(start, u, scene, options)), options),
          forward,
          2 * forward + 8 * 3};
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 1 << 28);
}

void on_threads(benchmark::State& state, std::int64_t problems, const std::function<Work()>& prepare,
                InsideLcp* observer) {
  keep_freed_memory();
  at::set_num_threads(std::min(2, static_cast<int>(std::thread::hardware_concurrency())));
  const Work run = prepare();
  run();
  if (observer) observer->seconds();
  for (auto _ : state) {
    run();
    if (observer) state.SetIterationTime(observer->seconds());
  }
  at::set_num_threads(1);
  state.counters["problems"] = static_cast<double>(problems);
}

// A rollout and the tangent of its last state by that of mu and the first.
Work tangent_of(const Rollout& rollout) {
  return [=, along = at::ones_like(rollout.state), along_mu = at::ones_like(rollout.mu)] {
    const c10::NoGradGuard no_grad;
    const auto level = torch::autograd::ForwardADLevel::get_next_idx();
    const Tensor state = rollout.state.detach(), mu = rollout.mu.detach();
    state._set_fw_grad(along, level, /*is_inplace_op=*/false);
    mu._set_fw_grad(along_mu, level, /*is_inplace_op=*/false);
    benchmark::DoNotOptimize(rollout.run(state, mu).last._fw_grad(level));
    torch::autograd::ForwardADLevel::release_idx(level);
  };
}

void add_rollout(const std::string& system, std::int64_t steps, const std::function<Rollout()>& make) {
  const std::int64_t problems = steps * kTrajectories;
  for (const bool gradient : {false, true}) {
    const auto work = [=]() -> Work {
      const Rollout rollout = make();
      if (!gradient) {
        return [=] {
          const c10::NoGradGuard no_grad;
          rollout.run(rollout.state, rollout.mu);
        };
      }
      return [=] {
        const Tensor state = rollout.state.detach().requires_grad_();
        const Tensor mu = rollout.mu.detach().requires_grad_();
        torch::autograd::grad({rollout.run(state, mu).last.sum()}, {state, mu});
      };
    };
    const auto solves = [=](std::int64_t steps_of_a_call) {
      return [=]() -> Work {
        const Rollout rollout = make();
        std::vector<Work> calls;
        for (std::int64_t s = 0; s < steps; s += steps_of_a_call) {
          calls.push_back(rollout.solves(s, steps_of_a_call, gradient));
        }
        return [calls] {
          for (const Work& call : calls) call();
        };
      };
    };
    const auto copies = [=]() -> Work {
      const Rollout rollout = make();
      const std::int64_t half = (gradient ? rollout.gradient_bytes : rollout.bytes) * problems / 2;
      const Tensor from = at::ones({half / 8}, torch::kDouble);
      return [from, to = from.clone()] { to.copy_(from); };
    };
    const std::string name = "rollout/" + system + (gradient ? " gradient" : " forward");
    benchmark::RegisterBenchmark((name + "/whole").c_str(), [=](benchmark::State& state) {
      const Rollout rollout = make();
      report(state, {(rollout.run(rollout.state, rollout.mu).status == 0).sum().item<std::int64_t>(), 0}, problems);
      on_threads(state, problems, work, nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/inside lcp").c_str(), [=](benchmark::State& state) {
      InsideLcp observer;
      on_threads(state, problems, work, &observer);
    })->UseManualTime();
    benchmark::RegisterBenchmark((name + "/one batch").c_str(), [=](benchmark::State& state) {
      on_threads(state, problems, solves(steps), nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/step by step").c_str(), [=](benchmark::State& state) {
      on_threads(state, problems, solves(1), nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/copy").c_str(), [=](benchmark::State& state) {
      on_threads(state, problems, copies, nullptr);
    })->UseRealTime();
  }
  benchmark::RegisterBenchmark(("rollout/" + system + " tangent/whole").c_str(), [=](benchmark::State& state) {
    on_threads(
        state, problems, [&] { return tangent_of(make()); }, nullptr);
  })->UseRealTime();
}

}  // namespace

void add_rollouts() {
  using Sliding = physics::SlidingBlockFormulation;
  using Planar = physics::PlanarBlockFormulation;
  using Point = physics::PointMassFormulation;
  add_rollout("sliding_block direct", kSteps, [] { return sliding_block(Sliding::kDirect); });
  add_rollout("sliding_block traditional", kSteps, [] { return sliding_block(Sliding::kTraditional); });
  add_rollout("sliding_block mixed", kSteps, [] { return sliding_block(Sliding::kMixed); });
  const auto add_planar_block = [](const char* name, Planar formulation, bool relaxed) {
    physics::PlanarBlockOptions options;
    options.formulation = formulation;
    options.relaxed = relaxed;
    add_rollout(name, kPlanarSteps, [=] { return planar_block(options); });
  };
  add_planar_block("planar_block exact_direction", Planar::kExactDirection, false);
  add_planar_block("planar_block fixed_point", Planar::kFixedPoint, false);
  add_planar_block("planar_block fixed_point relaxed", Planar::kFixedPoint, true);
  using physics::Stabilization;
  const auto add_point_mass = [](const char* name, Point formulation, Stabilization stabilization) {
    add_rollout(name, kSteps, [=] { return point_mass({formulation, stabilization}); });
  };
  add_point_mass("point_mass stewart_trinkle", Point::kStewartTrinkle, Stabilization::kPosition);
  add_point_mass("point_mass belbute_peres", Point::kBelbutePeres, Stabilization::kPosition);
  add_point_mass("point_mass velocity level", Point::kStewartTrinkle, Stabilization::kVelocity);
  add_rollout("point_mass own step", kSteps, [] {
    return point_mass({Point::kStewartTrinkle, Stabilization::kVelocity}, /*is_own=*/true);
  });
  add_rollout("tripod", kTripodSteps, tripod);
  add_rollout("compliant_particle", kCompliantSteps, compliant_particle);
  add_rollout("compliant_block", kCompliantSteps, compliant_block);
  using physics::RigidFormulation;
  add_rollout("cube", kCubeSteps, [] { return cube(RigidFormulation::kExactCone, kCubeSteps); });
  add_rollout("cube compliant", kCubeSteps, [] { return cube(RigidFormulation::kCompliant, kCubeSteps); });
  add_rollout("cube polyhedral", kPyramidSteps, [] { return cube(RigidFormulation::kPolyhedral, kPyramidSteps); });
  add_rollout("cube smoothed", kPyramidSteps,
              [] { return cube(RigidFormulation::kExactCone, kPyramidSteps, kSmoothing); });
  add_rollout("cube polyhedral smoothed", kPyramidSteps,
              [] { return cube(RigidFormulation::kPolyhedral, kPyramidSteps, kSmoothing); });
}

}  // namespace lcp::bench
