#include "tosses/simulated.h"

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lcp/identification/motion_windows.h"
#include "lcp/physics/rotation.h"
#include "run/program.h"

namespace lcp::training {
using torch::Tensor;

std::vector<Toss> simulate_tosses(const Cube& cube, const CubeContact& contact, const SimulatedTosses& options,
                                  std::int64_t seed) {
  constexpr std::int64_t kSteps = 199, kFiner = 8;
  const c10::NoGradGuard no_grad;
  const std::int64_t n = options.count;
  const auto random = generator(seed, Stream::kTosses), noise = generator(seed, Stream::kTosses, 1);
  const auto normal = [n](const at::Generator& from, std::int64_t size) {
    return at::randn({n, 1, size}, from, at::kDouble);
  };
  const double side = 2 * cube.corners.abs().mean().item<double>();
  physics::RigidState start;
  start.position = normal(random, 3) * torch::tensor({0.2, 0.2, 0.015}, at::kDouble);
  start.position.select(-1, 2) += 1.35 * side;
  const Tensor q = normal(random, 4);
  start.orientation = q / q.norm(2, {-1}, true);
  start.velocity = normal(random, 3) * torch::tensor({0.85, 0.8, 0.15}, at::kDouble);
  start.angular_velocity = 2.4 * normal(random, 3);
  CubeContact fine = contact;
  fine.substeps *= kFiner;
  const physics::RigidSolution rolled = roll_out(cube, fine, 1 / options.rate, start, kSteps);
  if ((rolled.status != 0).any().item<bool>()) {
    throw UsageError("a simulated toss has a step that is not solved; other parameters of the cube may help");
  }
  const auto history = [](const Tensor& first, const Tensor& next) {
    return at::cat({first.unsqueeze(0), next}).squeeze(-2).transpose(0, 1).contiguous();
  };
  Tensor position = history(start.position, rolled.next.position);
  Tensor orientation = history(start.orientation, rolled.next.orientation);
  const Tensor speed = history(start.velocity, rolled.next.velocity).norm(2, {-1}) +
                       side * history(start.angular_velocity, rolled.next.angular_velocity).norm(2, {-1});
  position = position + options.position_noise * at::randn(position.sizes(), noise, at::kDouble);
  orientation =
      physics::turned(orientation, options.orientation_noise * at::randn(position.sizes(), noise, at::kDouble));
  std::vector<Toss> tosses;
  for (std::int64_t k = 0; k < n; ++k) {
    constexpr std::int64_t kAtRest = 5, kFewest = 82;
    const Tensor moving = (speed[k] > 0.01).nonzero();
    const std::int64_t last = moving.size(0) > 0 ? moving[-1].item<std::int64_t>() : 0;
    const std::int64_t length = std::clamp<std::int64_t>(last + kAtRest, kFewest, kSteps + 1);
    Toss toss{
        "simulated_" + std::to_string(k), position[k].slice(0, 0, length), orientation[k].slice(0, 0, length), {}, {}};
    const identification::Recording complete = identification::with_velocities(
        {toss.position.unsqueeze(1), toss.orientation.unsqueeze(1), {}, {}}, 1 / options.rate);
    toss.velocity = complete.velocity.squeeze(1);
    toss.angular_velocity = complete.angular_velocity.squeeze(1);
    tosses.push_back(std::move(toss));
  }
  return tosses;
}

}  // namespace lcp::training
