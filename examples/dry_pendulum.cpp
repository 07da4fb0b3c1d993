// A system of one's own: a pendulum with dry friction in its joint, as an LCP of two unknowns in each step.
//
//   inertia (v_next - v) = dt (torque - weight sin(angle) + f),   |f| <= friction,   v_next = forward - backward
//   0 <= forward  perp  friction + f >= 0,   0 <= backward  perp  friction - f >= 0
//
// The program lets it swing until it sticks. dry_pendulum.py learns its friction from a track; it compiles this file.
#include <lcp/step.h>
#include <torch/types.h>

#include <array>
#include <cstdio>

struct DryPendulum {
  // kg m^2; N m, mass times gravity times length; N m; s.
  static constexpr std::array kParameters = {"inertia", "weight", "friction", "dt"};
  static constexpr std::array kStates = {"angle", "velocity"};   // rad, rad/s
  static constexpr std::array kInputs = {"torque"};              // N m
  static constexpr std::array kPairs = {"forward", "backward"};  // rad/s

  template <class R>
  static std::array<R, 2> pairs(const std::array<R, 4>& parameters, const std::array<R, 2>& state,
                                const std::array<R, 1>& input, const std::array<R, 2>& z) {
    const auto& [inertia, weight, friction, dt] = parameters;
    const auto& [angle, velocity] = state;
    const R change = z[0] - z[1] - velocity;
    const R f = inertia / dt * change - input[0] + weight * lcp::sin(angle);
    return {friction + f, friction - f};
  }

  template <class R>
  static std::array<R, 2> next(const std::array<R, 4>& parameters, const std::array<R, 2>& state,
                               const std::array<R, 1>&, const std::array<R, 2>& z, const std::array<R, 2>&) {
    const R velocity = z[0] - z[1];
    return {state[0] + parameters[3] * velocity, velocity};
  }
};

const bool registered = lcp::register_step<DryPendulum>("example::dry_pendulum");

int main() {
  const auto options = torch::dtype(torch::kDouble);
  const torch::Tensor parameters = torch::tensor({1.0, 10.0, 0.5, 0.01}, options).requires_grad_();
  const torch::Tensor start = torch::tensor({1.0, 0.0}, options), torque = torch::zeros({1000, 1}, options);
  const lcp::StepRollout swing = lcp::simulate_step("example::dry_pendulum", parameters, start, torque);
  const torch::Tensor angle = swing.x_next.select(-1, 0), velocity = swing.x_next.select(-1, 1);
  std::printf("solved: %ld of 1000 steps\n", (swing.status == 0).sum().item<long>());
  std::printf("at rest from step %ld on, at %.3f rad\n", velocity.nonzero()[-1].item<long>() + 1,
              angle[-1].item<double>());
  angle[200].backward();
  std::printf("d angle after 2 s / d friction: %.4f rad/(N m)\n", parameters.grad()[2].item<double>());
}
