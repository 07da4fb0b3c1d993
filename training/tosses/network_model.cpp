#include "tosses/network_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <cmath>
#include <sstream>

#include "lcp/physics/rotation.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// [..., 16], of tensors [..., 3], [..., 4], [..., 3] and [..., 3].
Tensor inputs_of(const Tensor& position, const Tensor& orientation, const Tensor& velocity,
                 const Tensor& angular_velocity) {
  return at::cat({position.slice(-1, 2), physics::rotation_matrix(orientation).flatten(-2), velocity, angular_velocity},
                 -1);
}

}  // namespace

NetworkModel::NetworkModel(const std::vector<Toss>& tosses, const NetworkSize& size, double rate, double gravity,
                           std::int64_t seed)
    : rate_(rate), gravity_(gravity) {
  std::vector<Tensor> inputs, changes;
  for (const Toss& toss : tosses) {
    inputs.push_back(inputs_of(toss.position, toss.orientation, toss.velocity, toss.angular_velocity));
    changes.push_back(at::cat({toss.velocity, toss.angular_velocity}, 1).diff(1, 0));
  }
  const Tensor all = at::cat(inputs);
  mean_ = register_buffer("mean", all.mean(0));
  deviation_ = register_buffer("deviation", all.std(0).clamp_min(1e-6));
  unit_ = register_buffer("unit", at::cat(changes).std(0).clamp_min(1e-6));
  const auto random = generator(seed, Stream::kParameters);
  std::int64_t width = all.size(1);
  for (std::int64_t layer = 0; layer <= size.hidden_layers; ++layer) {
    const bool is_last = layer == size.hidden_layers;
    const std::int64_t next = is_last ? unit_.size(0) : size.hidden_units;
    const Tensor weight =
        is_last ? torch::zeros({width, next}, torch::kDouble)
                : torch::randn({width, next}, random, torch::kDouble) / std::sqrt(static_cast<double>(width));
    weights_.push_back(register_parameter("weight_" + std::to_string(layer), weight));
    biases_.push_back(register_parameter("bias_" + std::to_string(layer), torch::zeros({next}, torch::kDouble)));
    width = next;
  }
}

physics::RigidSolution NetworkModel::roll_out(const physics::RigidState& start, std::int64_t steps) const {
  const OneThread one_thread;  // products of matrices depend on the number of threads
  physics::RigidState now = start;
  std::vector<Tensor> all[4];
  for (std::int64_t step = 0; step < steps; ++step) {
    Tensor y = (inputs_of(now.position, now.orientation, now.velocity, now.angular_velocity) - mean_) / deviation_;
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      if (layer > 0) y = y.tanh();
      y = at::matmul(y, weights_[layer]) + biases_[layer];
    }
    const Tensor change = unit_ * y;
    now.velocity = now.velocity + change.slice(-1, 0, 3);
    now.angular_velocity = now.angular_velocity + change.slice(-1, 3);
    now.position = now.position + now.velocity / rate_;
    now.orientation = physics::turned(now.orientation, now.angular_velocity / rate_);
    all[0].push_back(now.position);
    all[1].push_back(now.orientation);
    all[2].push_back(now.velocity);
    all[3].push_back(now.angular_velocity);
  }
  physics::RigidSolution found;
  found.next = {at::stack(all[0]), at::stack(all[1]), at::stack(all[2]), at::stack(all[3])};
  found.status = at::zeros(found.next.position.sizes().slice(0, found.next.position.dim() - 2),
                           found.next.position.options().dtype(at::kChar));
  return found;
}

std::string NetworkModel::torchscript_bytes() const {
  torch::jit::Module script("TossNetwork");
  for (const auto& item : named_parameters()) script.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
  for (const auto& item : named_buffers()) {
    if (item.key() != "unsolved_windows") script.register_buffer(item.key(), item.value());
  }
  script.register_attribute("format_version", c10::IntType::get(), kFormatVersion);
  script.register_attribute("rate", c10::FloatType::get(), rate_);
  script.register_attribute("gravity", c10::FloatType::get(), gravity_);
  script.register_buffer("center", center());
  nn::register_input_sizes(script, toss_inputs());
  std::string layers;
  for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
    const std::string k = std::to_string(layer);
    layers += std::string("    y = ") + (layer > 0 ? "y.tanh()" : "y") + ".matmul(self.weight_" + k + ") + self.bias_" +
              k + "\n";
  }
  script.define(R"(
def inputs(self, p: Tensor, q: Tensor, v: Tensor, omega: Tensor):
    w, x, y, z = (q / q.square().sum(-1, keepdim=True).sqrt()).unbind(-1)
    R = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
         2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
         2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return (torch.cat([p[..., 2:], torch.stack(R, -1), v, omega], -1) - self.mean) / self.deviation

def turned(self, q: Tensor, theta: Tensor):
    half = theta / 2
    angle = half.square().sum(-1, keepdim=True).sqrt()
    a, b = q[..., :1], q[..., 1:]
    c, d = angle.cos(), torch.sinc(angle / 3.141592653589793) * half
    scalar = a * c - (b * d).sum(-1, keepdim=True)
    both = torch.cat([scalar, a * d + c * b + torch.linalg_cross(b, d)], -1)
    return both / both.square().sum(-1, keepdim=True).sqrt()

def step(self, position: Tensor, orientation: Tensor, velocity: Tensor, angular_velocity: Tensor):
    p, q, v, omega = position.double(), orientation.double(), velocity.double(), angular_velocity.double()
    y = self.inputs(p, q, v, omega)
)" + layers + R"(    change = self.unit * y
    v = v + change[..., :3]
    omega = omega + change[..., 3:]
    p = p + v / self.rate
    return p, self.turned(q, omega / self.rate), v, omega, torch.zeros_like(p[..., 0]).char()

def forward(self, position: Tensor, orientation: Tensor, velocity: Tensor, angular_velocity: Tensor, steps: int):
    p, q, v, omega = position, orientation, velocity, angular_velocity
    all_p: List[Tensor] = []
    all_q: List[Tensor] = []
    all_v: List[Tensor] = []
    all_omega: List[Tensor] = []
    all_status: List[Tensor] = []
    for k in range(steps):
        p, q, v, omega, status = self.step(p, q, v, omega)
        all_p.append(p)
        all_q.append(q)
        all_v.append(v)
        all_omega.append(omega)
        all_status.append(status)
    return torch.stack(all_p), torch.stack(all_q), torch.stack(all_v), torch.stack(all_omega), torch.stack(all_status)
)");
  std::ostringstream stream;
  script.save(stream);
  return stream.str();
}

}  // namespace lcp::training
