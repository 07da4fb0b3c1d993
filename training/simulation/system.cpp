#include "simulation/system.h"

#include "run/columns.h"
#include "run/random.h"

namespace lcp::training {
namespace {

torch::Tensor noisy(const torch::Tensor& x, double deviation, std::int64_t seed, Stream stream) {
  if (deviation == 0) return x;
  return x + deviation * torch::randn(x.sizes(), generator(seed, stream), torch::kDouble).to(x.scalar_type());
}

}  // namespace

torch::Tensor Request::input(const std::string& name) const {
  if (!inputs->has(name)) return torch::zeros({count()}, dtype);
  return torch::tensor((*inputs)[name], torch::kDouble).to(dtype);
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

const std::vector<std::string>& system_names() {
  static const std::vector<std::string> names = {"sliding_block", "falling_block",      "planar_block",   "point_mass",
                                                 "tripod",        "compliant_particle", "compliant_block"};
  return names;
}

std::unique_ptr<System> make_system(const std::string& name) {
  if (name == "sliding_block") return make_sliding_block();
  if (name == "falling_block") return make_falling_block();
  if (name == "planar_block") return make_planar_block();
  if (name == "point_mass") return make_point_mass();
  if (name == "tripod") return make_tripod();
  if (name == "compliant_particle") return make_compliant_particle();
  if (name == "compliant_block") return make_compliant_block();
  return nullptr;
}

MotionTable::MotionTable(std::int64_t steps, std::int64_t count, std::int64_t first_step)
    : steps_(steps), count_(count) {
  add("trajectory", torch::arange(count, torch::kDouble));
  add("step", torch::arange(first_step, first_step + steps, torch::kDouble).unsqueeze(-1));
}

MotionTable& MotionTable::add(const char* name, const torch::Tensor& x) {
  add_trajectories(table_, name, x, steps_, count_);
  return *this;
}

torch::Tensor with_start(const torch::Tensor& first, const torch::Tensor& next) {
  return torch::cat({first.expand_as(next[0]).unsqueeze(0), next});
}

torch::Tensor largest_difference(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().amax(-1); }

}  // namespace lcp::training
