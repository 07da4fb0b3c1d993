#include "lcp/physics/falling_block.h"

#include "simulation/system.h"

namespace lcp::training {
namespace {

using torch::Tensor;

class FallingBlockSystem : public System {
 public:
  FallingBlockSystem()
      : System({.formulations = {"direct"},
                .default_steps = 200,
                .example = "--system falling_block --height 2",
                .inputs = {"x", "v"},
                .rollout_flags = {"height", "speed"},
                .physics = {.dt = 0.01}}) {}

  void add_to(CommandLine& line) override {
    line.add("height", height_, "Height before the first step, m", nonnegative);
    line.add("speed", speed_, "Velocity before the first step, upwards, m/s", finite_number);
  }

  Motion run(const Request& request) const override {
    const auto block = lcp::physics::FallingBlock::of(physics.mass, physics.dt, physics.gravity);
    const Tensor x = request.inputs ? request.input("x") : height_ * request.variation(0);
    const Tensor v = request.inputs ? request.input("v") : speed_ * request.variation(1);
    const std::int64_t steps = request.inputs ? 1 : request.steps;
    const auto solution = lcp::physics::simulate(x, v, steps, block);
    const auto& end = solution.step;

    std::vector<Tensor> exact;
    lcp::physics::FallingBlockStep now{x, v, {}};
    for (std::int64_t k = 0; k < steps; ++k) {
      now = lcp::physics::exact_step(now.x_next, now.v_next, block);
      exact.push_back(now.v_next);
    }

    Motion motion;
    motion.data = motion_table(steps, request.count())
                      .add("x", request.with_position_noise(end.x_next))
                      .add("v", request.with_velocity_noise(end.v_next))
                      .add("lambda", end.lambda)
                      .take();
    motion.residual = solution.residual;
    motion.status = solution.status;
    motion.error = (end.v_next - torch::stack(exact)).abs();
    motion.sticking = (end.x_next == 0) & (end.v_next == 0);
    motion.certificate = certify_rollout(x, v, block, solution);
    motion.exact = "the closed form";
    return motion;
  }

 private:
  double height_ = 1;
  double speed_ = 0;
};

}  // namespace

std::unique_ptr<System> make_falling_block() { return std::make_unique<FallingBlockSystem>(); }

}  // namespace lcp::training
