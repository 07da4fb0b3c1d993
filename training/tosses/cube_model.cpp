#include "tosses/cube_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>

#include "run/error.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr const char* kAxes[] = {"x", "y", "z"};

// Finds the operators of `lcp`, too.
struct LcpResolver : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction& function,
                                                         const torch::jit::SourceRange& place) override {
    if (name == "lcp") return std::make_shared<torch::jit::BuiltinModule>("lcp");
    return NativeResolver::resolveValue(name, function, place);
  }
};

double number(const Tensor& x) { return x.item<double>(); }

double side_of(const Tensor& corners) { return 2 * number(corners.abs().mean()); }

}  // namespace

CubeModel::CubeModel(Cube start, CubeContact contact, double rate, const std::vector<std::string>& learned)
    : start_(std::move(start)), contact_(std::move(contact)), rate_(rate) {
  const auto has = [&](const char* name) { return std::find(learned.begin(), learned.end(), name) != learned.end(); };
  const auto refuse_both = [&](const char* one, const char* other) {
    if (has(one) && has(other)) throw UsageError(std::string("--learn: either ") + one + " or " + other + ", not both");
  };
  refuse_both("side", "corners");
  refuse_both("center", "corners");
  refuse_both("inertia", "inertia_axes");
  const bool compliant = contact_.name == "compliant";
  for (const char* name : {"stiffness", "dissipation"}) {
    if (has(name) && !compliant) throw UsageError(std::string("--learn: ") + name + " is of --contact compliant");
  }
  if (has("restitution") && compliant) throw UsageError("--learn: compliant contact has no restitution");

  if (has("mu")) add("mu", Kind::kPositive, number(start_.mu), 1);
  if (has("restitution")) add("restitution", Kind::kFraction, number(start_.restitution), 1);
  if (has("side")) add("side", Kind::kPositive, side_of(start_.corners), 0.1);
  for (std::int64_t k = 0; has("corners") && k < start_.corners.size(0); ++k) {
    for (int i = 0; i < 3; ++i) {
      add("corner_" + std::to_string(k) + "_" + kAxes[i], Kind::kAny, number(start_.corners[k][i]), 0.003);
    }
  }
  for (int i = 0; has("center") && i < 3; ++i) {
    add(std::string("center_") + kAxes[i], Kind::kAny, number(start_.center[i]), 0.01);
  }
  if (has("rounding")) add("rounding", Kind::kPositive, number(start_.rounding), 1);
  if (has("inertia")) add("inertia", Kind::kPositive, number(start_.inertia.mean()), 1);
  for (int i = 0; has("inertia_axes") && i < 3; ++i) {
    add(std::string("inertia_") + kAxes[i], Kind::kPositive, number(start_.inertia[i]), 1);
  }
  if (has("height")) add("height", Kind::kAny, number(start_.height), 0.01);
  for (int i = 0; has("tilt") && i < 2; ++i) {
    add(std::string("tilt_") + kAxes[i], Kind::kAny, number(start_.tilt[i]), 0.05);
  }
  if (has("stiffness")) add("stiffness", Kind::kPositive, number(start_.stiffness), 1);
  if (has("dissipation")) add("dissipation", Kind::kPositive, number(start_.dissipation), 1);
  raw = register_parameter("raw", torch::zeros({static_cast<std::int64_t>(names_.size())}, torch::kDouble));
}

void CubeModel::add(const std::string& name, Kind kind, double start, double scale) {
  if (kind == Kind::kFraction) start = std::clamp(start, 1e-3, 1 - 1e-3);
  if (kind == Kind::kPositive && start <= 0) throw UsageError("--learn: " + name + " must begin with a value > 0");
  names_.push_back(name);
  kinds_.push_back(kind);
  first_.push_back(start);
  scale_.push_back(scale);
}

Tensor CubeModel::values_at(const Tensor& numbers) const {
  std::vector<Tensor> values;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    const Tensor change = scale_[k] * numbers.select(-1, static_cast<std::int64_t>(k));
    switch (kinds_[k]) {
      case Kind::kPositive:
        values.push_back(first_[k] * change.exp());
        break;
      case Kind::kFraction:
        values.push_back((std::log(first_[k] / (1 - first_[k])) + change).sigmoid());
        break;
      case Kind::kAny:
        values.push_back(first_[k] + change);
        break;
    }
  }
  return values.empty() ? numbers : at::stack(values, -1);
}

Tensor CubeModel::numbers_of(const std::vector<double>& values) const {
  const auto logit = [](double x) { return std::log(x / (1 - x)); };
  std::vector<double> numbers;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    const double change = kinds_[k] == Kind::kPositive   ? std::log(values[k] / first_[k])
                          : kinds_[k] == Kind::kFraction ? logit(values[k]) - logit(first_[k])
                                                         : values[k] - first_[k];
    numbers.push_back(change / scale_[k]);
  }
  return torch::tensor(numbers, torch::kDouble);
}

Cube CubeModel::cube() const { return cube_at(raw); }

Cube CubeModel::cube_of(const Tensor& values) const {
  Cube cube = start_;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    const std::string& name = names_[k];
    const auto i = static_cast<std::int64_t>(k);
    const Tensor value = values.select(-1, i);
    if (name == "mu") cube.mu = value;
    if (name == "restitution") cube.restitution = value;
    if (name == "side") cube.corners = start_.corners * (value / side_of(start_.corners)).unsqueeze(-1).unsqueeze(-1);
    if (name == "corner_0_x") cube.corners = values.narrow(-1, i, 24).unflatten(-1, {8, 3});
    if (name == "center_x") cube.center = values.narrow(-1, i, 3);
    if (name == "rounding") cube.rounding = value;
    if (name == "inertia") cube.inertia = value.unsqueeze(-1).repeat_interleave(3, -1);
    if (name == "inertia_x") cube.inertia = values.narrow(-1, i, 3);
    if (name == "height") cube.height = value;
    if (name == "tilt_x") cube.tilt = values.narrow(-1, i, 2);
    if (name == "stiffness") cube.stiffness = value;
    if (name == "dissipation") cube.dissipation = value;
  }
  return cube;
}

physics::RigidSolution CubeModel::roll_out(const physics::RigidState& start, std::int64_t steps) const {
  return training::roll_out(cube(), contact_, 1 / rate_, start, steps);
}

std::string CubeModel::torchscript_bytes() const {
  const torch::NoGradGuard no_grad;
  const physics::RigidScene scene = scene_of(cube(), contact_, 1 / rate_);
  const physics::RigidBody& body = scene.bodies.front();
  torch::jit::Module script("Cube");
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
  attribute("contact", c10::StringType::get(), contact_.name);
  attribute("directions", c10::IntType::get(), contact_.directions);
  attribute("format_version", c10::IntType::get(), kFormatVersion);
  attribute("substep", c10::FloatType::get(), scene.dt);
  attribute("rate", c10::FloatType::get(), rate_);
  attribute("gravity", c10::FloatType::get(), number(start_.gravity));
  attribute("substeps", c10::IntType::get(), contact_.substeps);
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
