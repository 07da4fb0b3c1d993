#include "tosses/body_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

namespace lcp::training {
namespace {

using torch::Tensor;

// Finds the operators of `lcp`, too.
struct LcpResolver : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction& function,
                                                         const torch::jit::SourceRange& place) override {
    if (name == "lcp") return std::make_shared<torch::jit::BuiltinModule>("lcp");
    return NativeResolver::resolveValue(name, function, place);
  }
};

// The names of values without those of the body and the plane, of which there is one each.
std::vector<std::string> short_names(const identification::MotionModel& motion) {
  std::vector<std::string> names = motion.value_names();
  for (std::string& name : names) {
    for (const std::string_view part : {"bodies[0].", "planes[0]."}) {
      if (name.starts_with(part)) name.erase(0, part.size());
    }
  }
  return names;
}

}  // namespace

BodyModel::BodyModel(identification::MotionModel motion, std::string contact, double rate)
    : motion_(std::move(motion)), contact_(std::move(contact)), rate_(rate), names_(short_names(motion_)) {
  raw = register_parameter("raw", torch::zeros({motion_.numbers()}, torch::kDouble));
}

Tensor BodyModel::center() const {
  const identification::MotionScene at = motion_.scene_of(values().detach());
  return at.points.defined() ? at.points.squeeze(-2) : torch::zeros({3}, torch::kDouble);
}

physics::RigidSolution BodyModel::roll_out(const physics::RigidState& start, std::int64_t steps) const {
  return motion_.roll_out(values(), start, steps);
}

std::string BodyModel::torchscript_bytes() const {
  const torch::NoGradGuard no_grad;
  const physics::RigidScene scene = motion_.scene_of(values()).scene;
  const physics::RigidOptions& options = motion_.options();
  const physics::RigidBody& body = scene.bodies.front();
  torch::jit::Module script("TossedBody");
  const auto attribute = [&](const char* name, const c10::TypePtr& type, const c10::IValue& value) {
    script.register_attribute(name, type, value);
  };
  const auto parameter = [&](const char* name, const Tensor& value) {
    script.register_parameter(name, value.detach().clone().requires_grad_(), /*is_buffer=*/false);
  };
  parameter("mass", body.mass);
  parameter("inertia", body.inertia);
  parameter("centers", body.centers);
  parameter("radii", body.radii);
  parameter("drag", body.drag);
  parameter("normal", scene.planes.front().normal);
  parameter("offset", scene.planes.front().offset);
  parameter("acceleration", scene.gravity);
  parameter("center", center());
  parameter("mu", scene.mu);
  parameter("restitution", scene.restitution);
  parameter("stiffness", scene.stiffness);
  parameter("dissipation", scene.dissipation);
  attribute("contact", c10::StringType::get(), contact_);
  attribute("directions", c10::IntType::get(), options.directions.count);
  attribute("format_version", c10::IntType::get(), kFormatVersion);
  attribute("substep", c10::FloatType::get(), scene.dt);
  attribute("rate", c10::FloatType::get(), rate_);
  attribute("gravity", c10::FloatType::get(), scene.gravity.norm().item<double>());
  attribute("substeps", c10::IntType::get(), options.substeps);
  attribute("tolerance", c10::FloatType::get(), physics::RigidOptions::kTolerance);
  nn::register_input_sizes(script, toss_inputs());
  script.define(R"(
def turned(self, q: Tensor, x: Tensor):
    w, r = q[..., :1], q[..., 1:]
    t = 2 * torch.linalg_cross(r, x.expand_as(r))
    return x + w * t + torch.linalg_cross(r, t)

def moved(self, p: Tensor, q: Tensor, v: Tensor, omega: Tensor, offset: Tensor):
    return (p + self.turned(q, offset),
            v + self.turned(q, torch.linalg_cross(omega, offset.expand_as(omega))))

def forward(self, position: Tensor, orientation: Tensor, velocity: Tensor, angular_velocity: Tensor, steps: int):
    q, omega = orientation.double(), angular_velocity.double()
    p, v = self.moved(position.double(), q, velocity.double(), omega, -self.center)
    u = p.new_zeros([steps, 1, 6])
    p, q, v, omega, gamma, status, iterations = lcp._simulate_bodies(
        p.unsqueeze(-2), q.unsqueeze(-2), v.unsqueeze(-2), omega.unsqueeze(-2), u, [self.mass], [self.inertia],
        [self.centers], [self.radii], [self.drag], [self.normal], [self.offset], self.acceleration, self.mu, self.restitution,
        self.stiffness, self.dissipation, self.substep, formulation=self.contact, substeps=self.substeps,
        directions=self.directions, tolerance=self.tolerance)
    q, omega = q.squeeze(-2), omega.squeeze(-2)
    p, v = self.moved(p.squeeze(-2), q, v.squeeze(-2), omega, self.center)
    return p, q, v, omega, status

def step(self, position: Tensor, orientation: Tensor, velocity: Tensor, angular_velocity: Tensor):
    p, q, v, omega, status = self.forward(position, orientation, velocity, angular_velocity, 1)
    return p[0], q[0], v[0], omega[0], status[0]
)",
                std::make_shared<LcpResolver>());
  std::ostringstream stream;
  script.save(stream);
  return stream.str();
}

}  // namespace lcp::training
