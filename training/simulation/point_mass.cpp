#include "lcp/physics/point_mass.h"

#include "run/program.h"
#include "simulation/system.h"

namespace lcp::training {
namespace {

using lcp::physics::PointMassState;
using lcp::physics::Stabilization;
using torch::Tensor;

class PointMassSystem : public System {
 public:
  PointMassSystem()
      : System({.formulations = {"stewart_trinkle", "belbute_peres"},
                .default_steps = 400,
                .example = "--system point_mass --stabilization velocity --restitution 0.8 --mu 0.2",
                .inputs = {"v_x", "v_y", "u_x", "u_y"},
                .optional_inputs = {"x", "y"},
                .rollout_flags = {"height", "speed"},
                .physics = {.dt = 0.01, .mu = 0.5}}) {}

  void add_to(CommandLine& line) override {
    line.add("height", height_, "Height before the first step, m", nonnegative);
    line.add("speed", speed_, "Velocity before the first step, along x, m/s", finite_number);
    line.add("restitution", restitution_, "Share of the normal velocity that an impact gives back", from_zero_to_one);
    line.add("stabilization", stabilization_,
             "position (no penetration, no rebound) or velocity (rebounds, may sink by up to a step)",
             one_of({"position", "velocity"}));
  }

  void check_flags(const Request&) const override {
    if (stabilization_ == "position" && restitution_ > 0) {
      throw UsageError("--restitution has no meaning with --stabilization position; give --stabilization velocity");
    }
  }

  Motion run(const Request& request) const override {
    lcp::physics::PointMassOptions options;
    if (request.formulation == "belbute_peres") {
      options.formulation = lcp::physics::PointMassFormulation::kBelbutePeres;
    }
    options.stabilization = stabilization_ == "velocity" ? Stabilization::kVelocity : Stabilization::kPosition;
    const auto mass = lcp::physics::PointMass::of(physics.mass, physics.dt, physics.mu, physics.gravity, restitution_);
    const PointMassState first = start(request);
    const Tensor u = request.inputs
                         ? request.vector_input({"u_x", "u_y"}).unsqueeze(0)
                         : torch::zeros({request.steps, 1, 2}, request.dtype).expand({-1, request.trajectories, -1});
    const auto solution = lcp::physics::simulate(first, u, mass, options);
    const auto& end = solution.step;

    const Tensor exact = velocities(first, u, [&](const PointMassState& now, const Tensor& force) {
      return lcp::physics::exact_step(now, force, mass, options.stabilization).next;
    });

    const Tensor contact = end.lambda_n > 0;
    Motion motion;
    motion.data = motion_table(u.size(0), request.count())
                      .add({"x", "y"}, request.with_position_noise(end.next.position))
                      .add({"v_x", "v_y"}, request.with_velocity_noise(end.next.velocity))
                      .add("lambda_n", end.lambda_n)
                      .add("lambda_plus", end.lambda_plus)
                      .add("lambda_minus", end.lambda_minus)
                      .add("gamma", end.gamma)
                      .take();
    motion.residual = solution.residual;
    motion.status = solution.status;
    motion.error = largest_difference(end.next.velocity, exact);
    motion.sticking = contact & (end.next.velocity.select(-1, 0) == 0);
    motion.certificate = certify_rollout(first, u, mass, options, solution);
    motion.exact = "contact and Coulomb friction in closed form";
    motion.metrics["contact_fraction"] = contact.to(torch::kDouble).mean().item<double>();
    motion.metrics["lowest_point"] = end.next.position.select(-1, 1).min().item<double>();
    if (!request.inputs) {
      motion.metrics["final_x"] = end.next.position[-1][0][0].item<double>();
      motion.metrics["final_y"] = end.next.position[-1][0][1].item<double>();
    }
    return motion;
  }

 private:
  PointMassState start(const Request& request) const {
    if (request.inputs) return {request.vector_input({"x", "y"}), request.vector_input({"v_x", "v_y"})};
    const auto pair = [](const Tensor& x, const Tensor& y) { return torch::stack({x, y}, -1); };
    const Tensor height = height_ * request.variation(0);
    const Tensor speed = speed_ * request.variation(1);
    return {pair(torch::zeros_like(height), height), pair(speed, torch::zeros_like(speed))};
  }

  double height_ = 1;
  double speed_ = 3;
  double restitution_ = 0;
  std::string stabilization_ = "position";
};

}  // namespace

std::unique_ptr<System> make_point_mass() { return std::make_unique<PointMassSystem>(); }

}  // namespace lcp::training
