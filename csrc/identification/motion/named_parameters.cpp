#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include "lcp/identification/motion_model.h"

namespace lcp::identification {
namespace {

using at::Tensor;

constexpr const char* kNames =
    "mu, restitution, stiffness, dissipation, gravity, length, bodies[k].mass, .inertia, .moments, .drag, .centers, "
    ".radii, .radius, .size or .point, or planes[k].height or .tilt";

// The place of the values of a parameter among all.
struct Place {
  std::int64_t first, size;
  std::vector<std::int64_t> shape;
};

// Parameters by the names within the scene, a body or a plane.
using Places = std::map<std::string, Place, std::less<>>;

class NamedModel {
 public:
  NamedModel(physics::RigidScene scene, const std::vector<std::string>& names)
      : scene_(std::move(scene)), of_bodies_(scene_.bodies.size()), of_planes_(scene_.planes.size()) {
    for (const physics::RigidBody& body : scene_.bodies) size_ += size_of(body);
    if (!scene_.bodies.empty()) size_ /= static_cast<double>(scene_.bodies.size());
    if (size_ == 0) size_ = 1;
    for (const std::string& name : names) {
      TORCH_CHECK(std::count(names.begin(), names.end(), name) == 1, "parameters must name each parameter once; got ",
                  name, " twice");
      add(name);
    }
    for (std::size_t k = 0; k < of_bodies_.size(); ++k) {
      refuse_both(of_bodies_[k], k, "inertia", "moments");
      refuse_both(of_bodies_[k], k, "radii", "radius");
    }
  }

  const std::vector<MotionParameter>& parameters() const { return parameters_; }

  MotionScene operator()(const Tensor& values) const {
    const auto value = [&](const Place& place) {
      return values.narrow(-1, place.first, place.size).unflatten(-1, place.shape);
    };
    const auto set = [&](const Places& places, const char* name, Tensor& to) {
      if (const auto found = places.find(name); found != places.end()) to = value(found->second);
    };
    const auto number = [&](const Places& places, const char* name) -> std::optional<Tensor> {
      const auto found = places.find(name);
      if (found == places.end()) return std::nullopt;
      return value(found->second).squeeze(-1);
    };
    MotionScene at{scene_};
    set(of_scene_, "mu", at.scene.mu);
    set(of_scene_, "restitution", at.scene.restitution);
    set(of_scene_, "stiffness", at.scene.stiffness);
    set(of_scene_, "dissipation", at.scene.dissipation);
    if (const auto size = number(of_scene_, "gravity")) {
      at.scene.gravity = size->unsqueeze(-1) * (scene_.gravity / scene_.gravity.norm());
    }
    if (const auto length = number(of_scene_, "length")) at.length = *length;
    std::vector<Tensor> points;
    bool has_points = false;
    for (std::size_t k = 0; k < of_bodies_.size(); ++k) {
      const Places& places = of_bodies_[k];
      physics::RigidBody& body = at.scene.bodies[k];
      if (const auto mass = number(places, "mass")) body.mass = *mass;
      if (const auto drag = number(places, "drag")) body.drag = *drag;
      set(places, "inertia", body.inertia);
      if (const auto found = places.find("moments"); found != places.end()) {
        const Tensor& V = axes_.at(k);
        body.inertia = at::matmul(V * value(found->second).unsqueeze(-2), V.t());
      }
      set(places, "centers", body.centers);
      set(places, "radii", body.radii);
      if (const auto radius = number(places, "radius")) {
        body.radii = radius->unsqueeze(-1) * at::ones_like(scene_.bodies[k].radii);
      }
      if (const auto size = number(places, "size")) {
        body.centers = size->unsqueeze(-1).unsqueeze(-1) * body.centers;
        if (!places.contains("radii") && !places.contains("radius")) body.radii = size->unsqueeze(-1) * body.radii;
      }
      points.push_back(at::zeros({3}, at::kDouble));
      if (const auto found = places.find("point"); found != places.end()) {
        has_points = true;
        points.back() = value(found->second);
        body.centers = points.back().unsqueeze(-2) + body.centers;
      }
    }
    if (has_points) at.points = at::stack(at::broadcast_tensors(points), -2);
    for (std::size_t k = 0; k < of_planes_.size(); ++k) {
      physics::Plane& plane = at.scene.planes[k];
      if (const auto height = number(of_planes_[k], "height")) plane.offset = plane.offset + *height;
      if (const auto found = of_planes_[k].find("tilt"); found != of_planes_[k].end()) {
        const Tensor slope = plane.normal - at::matmul(value(found->second), tangents_.at(k));
        const Tensor length = slope.norm(2, {-1});
        plane.normal = slope / length.unsqueeze(-1);
        plane.offset = plane.offset / length;
      }
    }
    return at;
  }

 private:
  static void refuse_both(const Places& places, std::size_t k, const char* one, const char* other) {
    TORCH_CHECK(!places.contains(one) || !places.contains(other), "parameters must name bodies[", k, "].", one, " or .",
                other, ", not both");
  }

  void add(const std::string& name) {
    constexpr std::string_view kBodies = "bodies[", kPlanes = "planes[";
    if (name.starts_with(kBodies)) {
      const auto [k, part] = parts_of(name, kBodies, scene_.bodies.size());
      add_of_body(name, k, part);
    } else if (name.starts_with(kPlanes)) {
      const auto [k, part] = parts_of(name, kPlanes, scene_.planes.size());
      add_of_plane(name, k, part);
    } else {
      add_of_scene(name);
    }
  }

  // The index and the name behind it of "bodies[index].name".
  static std::pair<std::size_t, std::string> parts_of(const std::string& name, std::string_view begin,
                                                      std::size_t count) {
    std::size_t k = 0;
    const char* const first = name.data() + begin.size();
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), k);
    const std::string rest(end, name.data() + name.size());
    TORCH_CHECK(error == std::errc() && rest.starts_with("]."), "parameters must name ", kNames, "; got ", name);
    TORCH_CHECK(k < count, "parameters must name one of the ", count, " ", begin.substr(0, begin.size() - 1),
                " of the scene; got ", name);
    return {k, rest.substr(2)};
  }

  void add_of_scene(const std::string& name) {
    constexpr double kSmall = 0.1;  // of lengths and of gravity, which are known well
    const auto of_contacts = [&](const Tensor& start, MotionRange range) {
      TORCH_CHECK(start.defined() && start.dim() == 1, name, " must be [c] or [1] in the scene; got ",
                  start.defined() ? c10::str(start.sizes()) : "none");
      place(of_scene_, name, name, start, range);
    };
    if (name == "mu") {
      of_contacts(scene_.mu, MotionRange::kPositive);
    } else if (name == "restitution") {
      of_contacts(scene_.restitution, MotionRange::kShare);
    } else if (name == "stiffness") {
      of_contacts(scene_.stiffness, MotionRange::kPositive);
    } else if (name == "dissipation") {
      of_contacts(scene_.dissipation, MotionRange::kPositive);
    } else if (name == "gravity") {
      TORCH_CHECK(scene_.gravity.dim() == 1, "gravity must be [3] in the scene; got ", scene_.gravity.sizes());
      place(of_scene_, name, name, scene_.gravity.norm(), MotionRange::kPositive, kSmall);
    } else if (name == "length") {
      place(of_scene_, name, name, at::ones({}, at::kDouble), MotionRange::kPositive, kSmall);
    } else {
      TORCH_CHECK(false, "parameters must name ", kNames, "; got ", name);
    }
  }

  void add_of_body(const std::string& name, std::size_t k, const std::string& part) {
    const physics::RigidBody& body = scene_.bodies[k];
    Places& places = of_bodies_[k];
    const double own_size = size_of(body) > 0 ? size_of(body) : size_;
    const auto check = [&](const Tensor& start, std::int64_t dims) {
      TORCH_CHECK(start.defined() && start.dim() == dims, name, " must have ", dims, " dimensions in the scene; got ",
                  start.defined() ? c10::str(start.sizes()) : "none");
    };
    if (part == "mass" || part == "drag") {
      const Tensor& start = part == "mass" ? body.mass : body.drag;
      check(start, 0);
      place(places, part, name, start, MotionRange::kPositive);
    } else if (part == "inertia") {
      check(body.inertia, 2);
      place(places, part, name, body.inertia, MotionRange::kPositiveDefinite);
    } else if (part == "moments") {
      check(body.inertia, 2);
      const Tensor diagonal = body.inertia.diagonal();
      if (body.inertia.equal(at::diag(diagonal))) {
        axes_[k] = at::eye(3, at::kDouble);
        place(places, part, name, diagonal, MotionRange::kPositive);
      } else {
        const auto [values, V] = at::linalg_eigh(body.inertia.to(at::kDouble));
        axes_[k] = V;
        place(places, part, name, values, MotionRange::kPositive);
      }
    } else if (part == "centers") {
      check(body.centers, 2);
      place(places, part, name, body.centers, MotionRange::kAny, 0.03 * own_size);
    } else if (part == "radii") {
      check(body.radii, 1);
      place(places, part, name, body.radii, MotionRange::kPositive);
    } else if (part == "radius") {
      check(body.radii, 1);
      TORCH_CHECK(body.radii.numel() > 0, name, " must be of a body with balls");
      place(places, part, name, body.radii.mean(), MotionRange::kPositive);
    } else if (part == "size") {
      place(places, part, name, at::ones({}, at::kDouble), MotionRange::kPositive, 0.1);
    } else if (part == "point") {
      place(places, part, name, at::zeros({3}, at::kDouble), MotionRange::kAny, 0.1 * own_size);
    } else {
      TORCH_CHECK(false, "parameters must name ", kNames, "; got ", name);
    }
  }

  void add_of_plane(const std::string& name, std::size_t k, const std::string& part) {
    if (part == "height") {
      place(of_planes_[k], part, name, at::zeros({}, at::kDouble), MotionRange::kAny, 0.1 * size_);
    } else if (part == "tilt") {
      const Tensor normal = scene_.planes[k].normal.to(at::kDouble);
      TORCH_CHECK(normal.dim() == 1, "the normal of a plane must be [3] in the scene; got ", normal.sizes());
      // The x axis, or for a plane that is nearly normal to it the y axis, without its part along the normal.
      const Tensor axis = at::zeros({3}, at::kDouble);
      axis[std::abs(normal[0].item<double>()) < 0.9 ? 0 : 1] = 1;
      const Tensor along = axis - (axis * normal).sum() * normal, first = along / along.norm();
      tangents_[k] = at::stack({first, at::linalg_cross(normal, first)});
      place(of_planes_[k], part, name, at::zeros({2}, at::kDouble), MotionRange::kAny, 0.05);
    } else {
      TORCH_CHECK(false, "parameters must name ", kNames, "; got ", name);
    }
  }

  void place(Places& places, const std::string& part, const std::string& name, const Tensor& start, MotionRange range,
             double scale = 1) {
    const std::int64_t size = start.numel();
    places[part] = {next_, size, start.dim() == 0 ? std::vector<std::int64_t>{1} : start.sizes().vec()};
    next_ += size;
    parameters_.push_back({name, start, range, scale});
  }

  physics::RigidScene scene_;
  double size_ = 0;  // m, the mean of the bodies
  std::int64_t next_ = 0;
  std::vector<MotionParameter> parameters_;
  Places of_scene_;
  std::vector<Places> of_bodies_, of_planes_;
  std::map<std::size_t, Tensor> axes_, tangents_;  // of bodies, [3, 3], and of planes, [2, 3]
};

// The scene in float64 on the CPU, without gradient.
physics::RigidScene prepared(physics::RigidScene scene) {
  const auto prepare = [](Tensor& x) {
    if (x.defined()) x = x.detach().to(at::kCPU, at::kDouble);
  };
  for (physics::RigidBody& body : scene.bodies) {
    for (Tensor* x : {&body.mass, &body.inertia, &body.centers, &body.radii, &body.drag}) prepare(*x);
  }
  for (physics::Plane& plane : scene.planes) {
    for (Tensor* x : {&plane.normal, &plane.offset}) prepare(*x);
  }
  for (Tensor* x : {&scene.gravity, &scene.mu, &scene.restitution, &scene.stiffness, &scene.dissipation}) prepare(*x);
  return scene;
}

}  // namespace

double size_of(const physics::RigidBody& body) {
  const c10::NoGradGuard no_grad;
  if (body.radii.size(-1) == 0) return 0;
  return 2 / std::numbers::sqrt3 * (body.centers.norm(2, {-1}) + body.radii).mean().item<double>();
}

MotionModel motion_model(const physics::RigidScene& scene, const std::vector<std::string>& names,
                         const physics::RigidOptions& options) {
  const c10::NoGradGuard no_grad;
  const auto named = std::make_shared<NamedModel>(prepared(scene), names);
  return {named->parameters(), [named](const Tensor& values) { return (*named)(values); }, options};
}

}  // namespace lcp::identification
