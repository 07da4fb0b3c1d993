#include "tosses/body.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "lcp/identification/motion_model.h"
#include "lcp/physics/rotation.h"
#include "run/error.h"
#include "run/files.h"
#include "tosses/cube.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::array kEntries = {"box", "balls", "inertia", "mu", "restitution", "stiffness", "dissipation"};

class BodyFile {
 public:
  explicit BodyFile(const std::filesystem::path& path) : path_(path.string()), json_(read_json(path)) {
    for (const auto& [name, value] : json_.items()) {
      if (std::find(kEntries.begin(), kEntries.end(), name) == kEntries.end()) {
        fail("has the entry " + name + "; the entries are " + listed());
      }
    }
    if (json_.contains("box") == json_.contains("balls")) fail("must have either box or balls");
  }

  bool has(const char* name) const { return json_.contains(name); }

  // A list of numbers, or of lists of numbers, as a tensor.
  Tensor tensor(const char* name) const {
    const nlohmann::json& value = json_[name];
    if (!value.is_array() || value.empty()) fail(std::string(name) + " must be a list of numbers");
    std::vector<Tensor> rows;
    for (const nlohmann::json& entry : value) {
      if (entry.is_array() && !entry.empty()) {
        std::vector<double> row;
        for (const nlohmann::json& x : entry) row.push_back(number_of(name, x));
        rows.push_back(torch::tensor(row, torch::kDouble));
      } else {
        rows.push_back(torch::tensor(number_of(name, entry), torch::kDouble));
      }
      if (rows.back().sizes() != rows.front().sizes()) fail(std::string(name) + " must have rows of the same length");
    }
    return at::stack(rows);
  }

  Tensor number(const char* name, double otherwise, double least, double largest) const {
    const double x = has(name) ? number_of(name, json_[name]) : otherwise;
    if (!(x >= least && x <= largest)) fail(std::string(name) + " is out of its range; got " + json_[name].dump());
    return torch::tensor({x}, torch::kDouble);
  }

  [[noreturn]] void fail(const std::string& what) const { throw UsageError(path_ + ": " + what); }

 private:
  static std::string listed() {
    std::string all;
    for (const char* name : kEntries) all += (all.empty() ? "" : ", ") + std::string(name);
    return all;
  }

  double number_of(const char* name, const nlohmann::json& x) const {
    if (!x.is_number() || !std::isfinite(x.get<double>())) {
      fail(std::string(name) + " must be of finite numbers; got " + x.dump());
    }
    return x.get<double>();
  }

  std::string path_;
  nlohmann::json json_;
};

}  // namespace

BodyForm::BodyForm(double side) : size(side), reach(std::numbers::sqrt3 * side / 2) {}

BodyForm::BodyForm(Tensor centers, Tensor radii)
    : size(identification::size_of({{}, {}, centers, radii})),
      reach((centers.norm(2, {-1}) + radii).max().item<double>()),
      centers_(std::move(centers)),
      radii_(std::move(radii)) {}

Tensor BodyForm::lowest_point(const Tensor& position, const Tensor& orientation) const {
  const Tensor upward = physics::rotation_matrix(orientation).select(-2, 2), height = position.select(-1, 2);
  if (!centers_.defined()) return height - size / 2 * upward.abs().sum(-1);
  const Tensor below = radii_ - (upward.unsqueeze(-2) * centers_).sum(-1);
  return height - below.amax(-1);
}

TossedBody read_body(const std::filesystem::path& path) {
  const BodyFile file(path);
  physics::RigidBody body;
  body.mass = torch::ones({}, torch::kDouble);
  if (file.has("box")) {
    const Tensor edges = file.tensor("box");
    if (edges.sizes() != at::IntArrayRef({3}) || !(edges > 0).all().item<bool>()) {
      file.fail("box must be three edges > 0, m");
    }
    body = physics::RigidBody::box(body.mass, edges);
  } else {
    const Tensor balls = file.tensor("balls");
    if (balls.dim() != 2 || balls.size(1) != 4 || !(balls.select(1, 3) >= 0).all().item<bool>()) {
      file.fail("balls must be a list of [x, y, z, radius], m, with radii >= 0");
    }
    body.centers = balls.slice(1, 0, 3).contiguous();
    body.radii = balls.select(1, 3).contiguous();
    if (!file.has("inertia")) file.fail("inertia is missing: three moments over mass, m^2, or a matrix");
  }
  if (file.has("inertia")) {
    const Tensor given = file.tensor("inertia"), matrix = given.dim() == 1 ? at::diag(given) : given;
    const bool fits = matrix.sizes() == at::IntArrayRef({3, 3}) && at::allclose(matrix, matrix.t());
    if (!fits || std::get<1>(at::linalg_cholesky_ex(matrix)).item<int>() != 0) {
      file.fail("inertia must be three moments > 0, m^2, or a symmetric positive definite matrix");
    }
    body.inertia = matrix;
  }
  constexpr double kAny = std::numeric_limits<double>::max();
  const CubeFlags otherwise;
  physics::RigidScene scene{{body},
                            {physics::Plane::inclined()},
                            1,
                            torch::tensor({0., 0., -9.81}, torch::kDouble),
                            file.number("mu", otherwise.mu, 0, kAny),
                            file.number("restitution", otherwise.restitution, 0, 1),
                            file.number("stiffness", otherwise.stiffness, 0, kAny),
                            file.number("dissipation", otherwise.dissipation, 0, kAny)};
  return {scene, BodyForm(body.centers, body.radii)};
}

std::vector<std::string> scene_names(const std::vector<std::string>& learned) {
  constexpr std::array kOfScene = {"mu", "restitution", "stiffness", "dissipation"};
  constexpr std::array kOfPlane = {"height", "tilt"};
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> names;
  for (const std::string& name : learned) {
    names.push_back((has(kOfScene, name) ? "" : has(kOfPlane, name) ? "planes[0]." : "bodies[0].") + name);
  }
  return names;
}

}  // namespace lcp::training
