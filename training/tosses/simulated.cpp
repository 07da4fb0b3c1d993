#include "tosses/simulated.h"

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lcp/physics/rotation.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// The median of each five neighbours, [T, 3]; the ends are repeated.
Tensor filtered(const Tensor& x) {
  const Tensor ends = at::cat({x.slice(0, 0, 1).expand({2, -1}), x, x.slice(0, -1).expand({2, -1})});
  return std::get<0>(ends.unfold(0, 5, 1).median(-1));
}

// The velocity of samples that are dt apart: the difference from the sample before, and at the first to the second.
Tensor rates(const Tensor& change, double dt) { return filtered(at::cat({change.slice(0, 0, 1), change}) / dt); }

// The rotation vectors, in the axes of the body, from each orientation to the next, [T - 1, 3].
Tensor turns(const Tensor& q) {
  const Tensor between = physics::rotation_between(q.slice(0, 0, -1), q.slice(0, 1));
  const Tensor turn = between * at::where(between.slice(1, 0, 1) < 0, -1.0, 1.0), vector = turn.slice(1, 1);
  const Tensor sine = vector.norm(2, {1}, true);
  const Tensor angle = 2 * at::atan2(sine, turn.slice(1, 0, 1));
  return vector * at::where(sine > 1e-12, angle / sine, 2.0);
}

}  // namespace

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
    toss.velocity = rates(toss.position.diff(1, 0), 1 / options.rate);
    toss.angular_velocity = rates(turns(toss.orientation), 1 / options.rate);
    tosses.push_back(std::move(toss));
  }
  return tosses;
}

}  // namespace lcp::training
