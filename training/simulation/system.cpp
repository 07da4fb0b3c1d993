#include "simulation/system.h"

#include "run/program.h"

namespace lcp::training {
namespace {

constexpr struct {
  const char* name;
  std::unique_ptr<System> (*make)();
} kSystems[] = {{"sliding_block", make_sliding_block},
                {"falling_block", make_falling_block},
                {"planar_block", make_planar_block},
                {"point_mass", make_point_mass},
                {"tripod", make_tripod},
                {"compliant_particle", make_compliant_particle},
                {"compliant_block", make_compliant_block},
                {"cube", make_cube},
                {"rolling", make_rolling},
                {"stack", make_stack},
                {"spheres", make_spheres},
                {"robot", make_robot}};

torch::Tensor noisy(const torch::Tensor& x, double deviation, std::int64_t seed, Stream stream) {
  if (deviation == 0) return x;
  return x + deviation * torch::randn(x.sizes(), generator(seed, stream), torch::kDouble).to(x.scalar_type());
}

}  // namespace

torch::Tensor Request::input(const std::string& name) const {
  return inputs->has(name) ? column_of(*inputs, name).to(dtype) : torch::zeros({count()}, dtype);
}

torch::Tensor Request::vector_input(const std::vector<std::string>& names) const {
  std::vector<torch::Tensor> columns;
  for (const std::string& name : names) columns.push_back(input(name));
  return torch::stack(columns, -1);
}

torch::Tensor Request::variation(std::int64_t k) const {
  torch::Tensor factors = torch::rand({trajectories}, generator(seed, Stream::kStarts, k), torch::kDouble) + 0.5;
  factors[0] = 1;
  return factors.to(dtype);
}

torch::Tensor Request::with_velocity_noise(const torch::Tensor& x) const {
  return noisy(x, velocity_noise, seed, Stream::kVelocityNoise);
}

torch::Tensor Request::with_position_noise(const torch::Tensor& x) const {
  return noisy(x, position_noise, seed, Stream::kPositionNoise);
}

std::vector<std::string> system_names() { return names_of(kSystems); }

std::unique_ptr<System> make_system(const std::string& name) {
  for (const auto& system : kSystems) {
    if (name == system.name) return system.make();
  }
  return nullptr;
}

TrajectoryTable motion_table(std::int64_t steps, std::int64_t trajectories, std::int64_t first) {
  return TrajectoryTable("trajectory", steps, trajectories).add_steps("step", first);
}

torch::Tensor with_start(const torch::Tensor& first, const torch::Tensor& next) {
  return torch::cat({first.expand_as(next[0]).unsqueeze(0), next});
}

torch::Tensor largest_difference(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().amax(-1); }

}  // namespace lcp::training
