// Rollouts of rigid bodies as an operator, for TorchScript and Python.
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>

#include "lcp/physics/rigid_scene.h"

namespace lcp::physics {
namespace {

using at::Tensor;

RigidFormulation formulation_named(const std::string& name) {
  constexpr std::array kNames = {"exact_cone", "polyhedral", "compliant"};  // in the order of the enum
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    if (name == kNames[k]) return static_cast<RigidFormulation>(k);
  }
  TORCH_CHECK(false, "formulation must be exact_cone, polyhedral or compliant; got ", name);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> simulate_bodies(
    const Tensor& position, const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity,
    const Tensor& u, at::TensorList mass, at::TensorList inertia, at::TensorList centers, at::TensorList radii,
    at::TensorList drag, at::TensorList normals, at::TensorList offsets, const Tensor& gravity, const Tensor& mu,
    const Tensor& restitution, const Tensor& stiffness, const Tensor& dissipation, double dt,
    const std::string& formulation, std::int64_t substeps, std::int64_t directions, double tolerance) {
  const auto check_size = [](const char* name, const at::TensorList& list, const char* of, std::size_t size) {
    TORCH_CHECK(list.size() == size, name, " must have one tensor for each of ", of, ", ", size, "; got ", list.size());
  };
  check_size("inertia", inertia, "mass", mass.size());
  check_size("centers", centers, "mass", mass.size());
  check_size("radii", radii, "mass", mass.size());
  check_size("drag", drag, "mass", mass.size());
  check_size("offsets", offsets, "normals", normals.size());
  RigidScene scene;
  for (std::size_t k = 0; k < mass.size(); ++k) {
    scene.bodies.push_back({mass[k], inertia[k], centers[k], radii[k], drag[k]});
  }
  for (std::size_t k = 0; k < normals.size(); ++k) scene.planes.push_back({normals[k], offsets[k]});
  scene.dt = dt;
  scene.gravity = gravity;
  scene.mu = mu;
  scene.restitution = restitution;
  scene.stiffness = stiffness;
  scene.dissipation = dissipation;
  RigidOptions options;
  options.formulation = formulation_named(formulation);
  options.substeps = substeps;
  options.directions.count = directions;
  options.tolerance = tolerance;
  RigidSolution found = simulate({position, orientation, velocity, angular_velocity}, u, scene, options);
  return {found.next.position, found.next.orientation, found.next.velocity, found.next.angular_velocity,
          found.gamma,         found.status,           found.iterations};
}

TORCH_LIBRARY_FRAGMENT(lcp, library) {
  library.def(
      "_simulate_bodies(Tensor position, Tensor orientation, Tensor velocity, Tensor angular_velocity, Tensor u, "
      "Tensor[] mass, Tensor[] inertia, Tensor[] centers, Tensor[] radii, Tensor[] drag, Tensor[] normals, "
      "Tensor[] offsets, "
      "Tensor gravity, Tensor mu, Tensor restitution, Tensor stiffness, Tensor dissipation, float dt, *, "
      "str formulation, int substeps, int directions, float tolerance) -> (Tensor position, Tensor orientation, "
      "Tensor velocity, Tensor angular_velocity, Tensor gamma, Tensor status, Tensor iterations)",
      TORCH_FN(simulate_bodies), {at::Tag::pt2_compliant_tag});
}

}  // namespace
}  // namespace lcp::physics
