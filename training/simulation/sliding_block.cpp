#include "lcp/physics/sliding_block.h"

#include "lcp/certify.h"
#include "lcp/physics/direct_friction.h"
#include "lcp/solve.h"
#include "run/random.h"
#include "simulation/infeasible_formulation.h"
#include "simulation/system.h"
#include "sliding_block/samples.h"

namespace lcp::training {
namespace {

using lcp::physics::SlidingBlockFormulation;
using torch::Tensor;

class SlidingBlockSystem : public System {
 public:
  SlidingBlockSystem()
      : System({.formulations = {"direct", "forward", "direct2", "traditional", "mixed", "direct_supported"},
                .default_steps = 50,
                .example = "--formulation traditional --trajectories 4",
                .inputs = {"v", "u"},
                .rollout_flags = {"speed"},
                .has_positions = false}) {}

  void add_to(CommandLine& line) override {
    line.add("speed", speed_, "Velocity before the first step, m/s", finite_number);
    line.add("supports", supports_,
             "Supports of the block in direct_supported, each with its own friction and the same share of "
             "the weight",
             at_least_one);
  }

  Motion run(const Request& request) const override {
    const bool infeasible = request.formulation == "direct2";
    const SlidingBlockFormulation formulation = formulation_of(request.formulation);
    const lcp::physics::SlidingBlock block = sliding_block(physics);
    const Tensor first =
        request.inputs ? request.input("v") : torch::full({request.trajectories}, speed_, request.dtype);
    const Tensor u = request.inputs ? request.input("u").unsqueeze(0) : forces(request, formulation);

    const Tensor exact_next = velocities(first, u, [&](const Tensor& now, const Tensor& force) {
      return lcp::physics::exact_step(now, force, block).v_next;
    });

    Motion motion;
    lcp::physics::SlidingBlockSolution solution;
    Tensor v, v_next;
    if (infeasible) {
      // A rollout would end at the first step without a solution. Each step therefore begins in the exact state.
      v = with_start(first, exact_next).slice(0, 0, -1);
      const lcp::physics::Problem problem = infeasible_problem(v, u, block);
      solution = infeasible_step(problem);
      v_next = solution.step.v_next;
      show_infeasibility(problem, solution, motion);
    } else {
      const bool supported = request.formulation == "direct_supported";
      solution = supported ? on_supports(first, u) : lcp::physics::simulate(first, u, block, formulation);
      const Tensor states = request.with_velocity_noise(with_start(first, solution.step.v_next));
      v = states.slice(0, 0, -1);
      v_next = states.slice(0, 1);
      motion.certificate = certify_rollout(first, u, block, formulation, solution);
    }
    motion.data = motion_table(u.size(0), request.count(), 0)
                      .add("v", v)
                      .add("u", u)
                      .add("v_next", v_next)
                      .add("lambda_plus", solution.step.lambda_plus)
                      .add("lambda_minus", solution.step.lambda_minus)
                      .add("gamma", solution.step.gamma)
                      .take();
    motion.residual = solution.residual;
    motion.status = solution.status;
    motion.error = (solution.step.v_next - exact_next).abs();
    motion.sticking = solution.step.v_next == 0;
    motion.exact = "Coulomb friction";
    if (formulation == SlidingBlockFormulation::kForward) {
      const std::int64_t glued =
          (solution.step.lambda_minus < -1e-9 * physics.max_friction()).sum().item<std::int64_t>();
      motion.metrics["glued_steps"] = glued;
      if (glued > 0) {
        motion.remarks.push_back(std::to_string(glued) +
                                 " steps have v + dt u / m < 0, where the forward formulation glues the block to its "
                                 "place: lambda_minus is negative there");
      }
    }
    return motion;
  }

 private:
  static SlidingBlockFormulation formulation_of(const std::string& name) {
    if (name == "forward") return SlidingBlockFormulation::kForward;
    if (name == "direct") return SlidingBlockFormulation::kDirect;
    // A rollout on several supports is certified as the traditional problem, see on_supports.
    return name == "traditional" || name == "direct_supported" ? SlidingBlockFormulation::kTraditional
                                                               : SlidingBlockFormulation::kMixed;
  }

  // Random forces of both signs. The forward formulation, which only describes motion to the right, gets pushes from 0
  // to 2 mu m g, of which three in ten are 0.
  Tensor forces(const Request& request, SlidingBlockFormulation formulation) const {
    at::Generator random = generator(request.seed, Stream::kSimulatedForces);
    if (formulation != SlidingBlockFormulation::kForward) {
      return random_forces(request.steps, request.trajectories, physics, random).to(request.dtype);
    }
    const Tensor push = torch::rand({request.steps, request.trajectories}, random, torch::kDouble);
    const Tensor on = torch::rand({request.steps, request.trajectories}, random, torch::kDouble) >= 0.3;
    return (2 * physics.max_friction() * push * on).to(request.dtype);
  }

  // A rollout of the block on its supports. They move as one, so that their Jacobian has rank 1. `z` of the result is
  // the solution of the traditional LCP with the same motion.
  lcp::physics::SlidingBlockSolution on_supports(const Tensor& first, const Tensor& u) const {
    using namespace lcp::physics;
    const auto options = first.options();
    const Tensor J = torch::ones({supports_, 1}, options);
    const Tensor inverse_mass = torch::full({1, 1}, 1 / physics.mass, options);
    const double share = physics.max_friction() / static_cast<double>(supports_);
    const Tensor limit = torch::full({supports_}, physics.dt * share, options);
    std::vector<Tensor> velocity, force, residual, status;
    for (auto* all : {&velocity, &force, &residual, &status}) all->reserve(static_cast<std::size_t>(u.size(0)));
    Tensor v = first;
    for (std::int64_t k = 0; k < u.size(0); ++k) {
      const Tensor free = (v + physics.dt / physics.mass * u[k]).unsqueeze(-1);
      const Problem problem = direct_friction_problem(J, inverse_mass, free, limit);
      const SolveResult result = solve(problem.M, problem.q);
      const DirectFrictionStep step = read_direct_friction(result.z, result.w, J, inverse_mass, free);
      // The slips differ by round-off, except that those of supports below their limit are exactly 0.
      v = std::get<0>(step.slip.abs().min(-1)) * step.slip.select(-1, 0).sign();
      velocity.push_back(v);
      force.push_back(step.impulse.sum(-1) / physics.dt);
      const Tensor w = (problem.M * result.z.unsqueeze(-2)).sum(-1) + problem.q;
      residual.push_back(torch::minimum(result.z, w).abs().amax(-1));
      status.push_back(result.status);
    }
    const Tensor v_next = torch::stack(velocity), f = torch::stack(force);
    const SlidingBlockStep step{v_next, f.clamp_min(0), (-f).clamp_min(0), v_next.abs()};
    return {step, torch::stack({step.lambda_plus, step.lambda_minus, step.gamma}, -1), torch::stack(residual),
            torch::stack(status)};
  }

  static void show_infeasibility(const lcp::physics::Problem& problem,
                                 const lcp::physics::SlidingBlockSolution& solution, Motion& motion) {
    const Tensor y = farkas_vector(problem);
    const Tensor largest =
        torch::matmul(problem.M.t(), y.unsqueeze(-1)).squeeze(-1).amax(-1);  // max_i (M'y)_i, which must be <= 0
    const Tensor proved = (largest <= 0) & ((problem.q * y).sum(-1) < 0);
    const std::int64_t infeasible = (solution.status == 2).sum().item<std::int64_t>();
    const std::int64_t proofs = proved.sum().item<std::int64_t>();
    motion.metrics["infeasible"] = infeasible;
    motion.metrics["farkas_proofs"] = proofs;
    motion.expects_no_solution = true;
    const Tensor solved = solution.status == 0;
    const Tensor tied = (solved & lcp::certify(problem.M, problem.q, solution.z).ties.any(-1)).sum(0);
    motion.certificate = {(~solved).sum(0), tied, tied};
    motion.remarks.push_back(std::to_string(infeasible) + " steps reported infeasible, " + std::to_string(proofs) +
                             " proved so by y >= 0 with M'y <= 0 and q'y < 0: no z >= 0 has M z + q >= 0");
  }

  double speed_ = 1;
  std::int64_t supports_ = 3;
};

}  // namespace

std::unique_ptr<System> make_sliding_block() { return std::make_unique<SlidingBlockSystem>(); }

}  // namespace lcp::training
