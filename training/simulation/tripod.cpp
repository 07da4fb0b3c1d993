#include "lcp/physics/tripod.h"

#include "run/columns.h"
#include "simulation/system.h"
#include "simulation/tripod_flags.h"

namespace lcp::training {
namespace {

using lcp::physics::TripodState;
using torch::Tensor;

class TripodSystem : public System {
 public:
  TripodSystem()
      : System({.formulations = {"polyhedral"},
                .default_steps = 80,
                .example = "--system tripod --directions 16 --velocity 1 0 20",
                .inputs = {"theta", "v_x", "v_y", "omega"},
                .optional_inputs = {"x", "y"},
                .rollout_flags = {"velocity"},
                .physics = {.dt = 0.005, .mu = 0.33}}) {}

  void add_to(CommandLine& line) override {
    tripod_.add_to(line);
    line.add("velocity", velocity_, "VX VY OMEGA before the first step, m/s, m/s, rad/s", finite_numbers(3));
  }

  void check_flags(const Request&) const override { tripod_.tripod(physics); }

  Motion run(const Request& request) const override {
    const lcp::physics::Tripod tripod = tripod_.tripod(physics);
    const TripodState first = start(request);
    const Tensor u = torch::zeros({request.inputs ? 1 : request.steps, 1, 3}, request.dtype);
    const auto solution = lcp::physics::simulate(first, u, tripod, tripod_.directions);
    const TripodState& end = solution.step.next;

    const Tensor exact = velocities(first, u, [&](const TripodState& now, const Tensor& force) {
      return lcp::physics::exact_step(now, force, tripod);
    });

    Motion motion;
    motion.data = motion_table(u.size(0), request.count())
                      .add({"x", "y", "theta"}, request.with_position_noise(end.pose))
                      .add({"v_x", "v_y", "omega"}, request.with_velocity_noise(end.velocity))
                      .take();
    motion.residual = solution.residual;
    motion.status = solution.status;
    // Angular velocities are multiplied by the largest arm of a support, so that all errors are in m/s.
    const Tensor reach = tripod.supports.norm(2, -1).max();
    const Tensor scale = torch::stack({torch::ones_like(reach), torch::ones_like(reach), reach});
    motion.error = largest_difference(scale * end.velocity, scale * exact);
    motion.sticking = (end.velocity == 0).all(-1);
    motion.certificate = certify_rollout(first, u, tripod, tripod_.directions, solution);
    motion.exact = "isotropic Coulomb friction at the supports";
    report(request, tripod_.com_height > 0, solution, motion);
    return motion;
  }

 private:
  TripodState start(const Request& request) const {
    if (request.inputs) {
      return {request.vector_input({"x", "y", "theta"}), request.vector_input({"v_x", "v_y", "omega"})};
    }
    const Tensor velocity = torch::tensor(velocity_, request.dtype) * request.variation(0).unsqueeze(-1);
    return {torch::zeros_like(velocity), velocity};
  }

  static void report(const Request& request, bool tall, const lcp::physics::TripodSolution& solution, Motion& motion) {
    if (tall && (solution.status != 0).any().item<bool>()) {
      motion.remarks.emplace_back(
          "where a step has no solution, no nonnegative loads of the supports balance the block: the block would tip");
    }
    if (request.inputs) return;
    motion.metrics["final_pose"] = entries_of(solution.step.next.pose[-1][0]);
    const Tensor rest = motion.sticking.select(1, 0).nonzero();
    motion.metrics["steps_until_rest"] =
        rest.numel() > 0 ? nlohmann::json(rest[0].item<std::int64_t>() + 1) : nlohmann::json();
  }

  TripodFlags tripod_;
  std::vector<double> velocity_ = {1, 0.3, 8};
};

}  // namespace

std::unique_ptr<System> make_tripod() { return std::make_unique<TripodSystem>(); }

}  // namespace lcp::training
