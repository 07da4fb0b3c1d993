#include "lcp/physics/planar_block.h"

#include "simulation/system.h"
#include "simulation/tripod_flags.h"

namespace lcp::training {
namespace {

using lcp::physics::PlanarBlockFormulation;
using torch::Tensor;

class PlanarBlockSystem : public System {
 public:
  PlanarBlockSystem()
      : System({.formulations = {"exact_direction", "fixed_point", "polyhedral"},
                .default_steps = 40,
                .example = "--system planar_block --formulation polyhedral --directions 4",
                .inputs = {"v_x", "v_y", "u_x", "u_y"},
                .rollout_flags = {"speed", "force", "turning"},
                .physics = {.mu = 0.2},
                .has_positions = false}) {}

  void add_to(CommandLine& line) override {
    line.add("directions", directions_, "Directions of the friction polygon, or of the unknown parts of the velocity",
             even_directions);
    line.add("passes", passes_, "Largest number of LCPs in a step of fixed_point", at_least_one);
    line.add_switch("relaxed", relaxed_,
                    "Let fixed_point use the relaxed map, which converges wherever the block slides");
    line.add("speed", speed_, "Velocity before the first step, along x, m/s", finite_number);
    line.add("force", force_, "Magnitude of the input force, whose direction rotates, N", finite_number);
    line.add("turning", turning_, "Angular velocity of the input force, rad/s", finite_number);
  }

  Motion run(const Request& request) const override {
    lcp::physics::PlanarBlockOptions options;
    options.formulation = request.formulation == "exact_direction" ? PlanarBlockFormulation::kExactDirection
                          : request.formulation == "fixed_point"   ? PlanarBlockFormulation::kFixedPoint
                                                                   : PlanarBlockFormulation::kPolyhedral;
    options.directions = directions_;
    options.max_passes = passes_;
    options.relaxed = relaxed_;
    const auto block = lcp::physics::PlanarBlock::of(physics.mass, physics.dt, physics.mu, physics.gravity);
    const Tensor first = start(request);
    const Tensor u = forces(request);
    const auto solution = lcp::physics::simulate(first, u, block, options);

    const Tensor exact = velocities(first, u, [&](const Tensor& now, const Tensor& force) {
      return lcp::physics::exact_step(now, force, block).v_next;
    });

    const Tensor states = request.with_velocity_noise(with_start(first, solution.step.v_next));
    Motion motion;
    motion.data = motion_table(u.size(0), request.count(), 0)
                      .add({"v_x", "v_y"}, states.slice(0, 0, -1))
                      .add({"u_x", "u_y"}, u)
                      .add({"v_next_x", "v_next_y"}, states.slice(0, 1))
                      .add({"force_x", "force_y"}, solution.step.force)
                      .take();
    motion.residual = solution.residual;
    motion.status = solution.status;
    motion.error = largest_difference(solution.step.v_next, exact);
    motion.sticking = (solution.step.v_next == 0).all(-1);
    motion.certificate = certify_rollout(first, u, block, options, solution);
    motion.exact = "isotropic Coulomb friction";
    if (options.formulation == PlanarBlockFormulation::kFixedPoint) report_convergence(solution, motion);
    return motion;
  }

 private:
  Tensor start(const Request& request) const {
    if (request.inputs) return request.vector_input({"v_x", "v_y"});
    const Tensor v_x = speed_ * request.variation(0);
    return torch::stack({v_x, torch::zeros_like(v_x)}, -1);
  }

  Tensor forces(const Request& request) const {
    if (request.inputs) return request.vector_input({"u_x", "u_y"}).unsqueeze(0);
    const Tensor angle = turning_ * physics.dt * torch::arange(request.steps, torch::kDouble);
    const Tensor u = force_ * torch::stack({torch::cos(angle), torch::sin(angle)}, -1).unsqueeze(1);
    return u.expand({-1, request.trajectories, -1}).to(request.dtype);
  }

  static void report_convergence(const lcp::physics::PlanarBlockSolution& solution, Motion& motion) {
    const std::int64_t open = (~solution.converged).sum().item<std::int64_t>();
    motion.metrics["converged_fraction"] = solution.converged.to(torch::kDouble).mean().item<double>();
    motion.metrics["mean_passes"] = solution.passes.to(torch::kDouble).mean().item<double>();
    motion.metrics["max_passes"] = solution.passes.max().item<std::int64_t>();
    if (open > 0) {
      motion.remarks.push_back(std::to_string(open) + " steps ran out of passes before their direction settled");
    }
  }

  std::int64_t directions_ = 8;
  std::int64_t passes_ = 30;
  bool relaxed_ = false;
  double speed_ = 2;
  double force_ = 3;
  double turning_ = 2;
};

}  // namespace

std::unique_ptr<System> make_planar_block() { return std::make_unique<PlanarBlockSystem>(); }

}  // namespace lcp::training
