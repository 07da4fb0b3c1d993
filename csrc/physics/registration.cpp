// Rigid bodies as operators and as a class, for TorchScript and Python.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "ops/composite.h"
#include "physics/named_option.h"

namespace lcp::physics {
namespace {

using at::Tensor;

using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using SevenTensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// What a RigidScene is made of; undefined tensors are absent.
struct SceneParts {
  at::TensorList mass, inertia, centers, radii, drag, normals, offsets;
  Tensor gravity, mu, restitution, stiffness, dissipation;
  double dt;
};

RigidScene scene_of(const SceneParts& parts) {
  const auto check_size = [](const char* name, const at::TensorList& list, const char* of, std::size_t size) {
    TORCH_CHECK(list.size() == size, name, " must have one tensor for each of ", of, ", ", size, "; got ", list.size());
  };
  check_size("inertia", parts.inertia, "mass", parts.mass.size());
  check_size("centers", parts.centers, "mass", parts.mass.size());
  check_size("radii", parts.radii, "mass", parts.mass.size());
  check_size("drag", parts.drag, "mass", parts.mass.size());
  check_size("offsets", parts.offsets, "normals", parts.normals.size());
  RigidScene scene;
  for (std::size_t k = 0; k < parts.mass.size(); ++k) {
    scene.bodies.push_back({parts.mass[k], parts.inertia[k], parts.centers[k], parts.radii[k], parts.drag[k]});
  }
  for (std::size_t k = 0; k < parts.normals.size(); ++k) scene.planes.push_back({parts.normals[k], parts.offsets[k]});
  scene.dt = parts.dt;
  scene.gravity = parts.gravity;
  scene.mu = parts.mu;
  scene.restitution = parts.restitution;
  scene.stiffness = parts.stiffness;
  scene.dissipation = parts.dissipation;
  return scene;
}

RigidFormulation rigid_formulation(const std::string& name) {
  constexpr std::array kNames = {"exact_cone", "polyhedral", "compliant"};
  return enumerator_named<RigidFormulation>("formulation", kNames, name);
}

SevenTensors tensors_of(const RigidSolution& found) {
  return {found.next.position, found.next.orientation, found.next.velocity, found.next.angular_velocity,
          found.gamma,         found.status,           found.iterations};
}

SevenTensors simulate_bodies(const Tensor& position, const Tensor& orientation, const Tensor& velocity,
                             const Tensor& angular_velocity, const Tensor& u, at::TensorList mass,
                             at::TensorList inertia, at::TensorList centers, at::TensorList radii, at::TensorList drag,
                             at::TensorList normals, at::TensorList offsets, const Tensor& gravity, const Tensor& mu,
                             const Tensor& restitution, const Tensor& stiffness, const Tensor& dissipation, double dt,
                             const std::string& formulation, std::int64_t substeps, std::int64_t directions,
                             double tolerance) {
  const RigidScene scene = scene_of(
      {mass, inertia, centers, radii, drag, normals, offsets, gravity, mu, restitution, stiffness, dissipation, dt});
  RigidOptions options;
  options.formulation = rigid_formulation(formulation);
  options.substeps = substeps;
  options.directions.count = directions;
  options.tolerance = tolerance;
  return tensors_of(simulate({position, orientation, velocity, angular_velocity}, u, scene, options));
}

// The results of simulate_bodies without their data. Which balls of two bodies can touch depends on their radii, which
// tracing does not have; with one body the pairs are its balls and the planes.
SevenTensors shapes_of_bodies(const Tensor& position, const Tensor& orientation, const Tensor& velocity,
                              const Tensor& angular_velocity, const Tensor& u, at::TensorList mass,
                              at::TensorList inertia, at::TensorList centers, at::TensorList radii, at::TensorList drag,
                              at::TensorList normals, at::TensorList offsets, const Tensor& gravity, const Tensor& mu,
                              const Tensor& restitution, const Tensor& stiffness, const Tensor& dissipation, double,
                              const std::string&, std::int64_t, std::int64_t, double) {
  TORCH_CHECK(mass.size() == 1, "lcp::_simulate_bodies can be traced with one body only; got ", mass.size());
  at::SymDimVector shape;
  const auto broadcast = [&](at::TensorList parts, std::int64_t core, std::int64_t first = 0) {
    for (const Tensor& x : parts) {
      shape = at::infer_size_symdimvector(shape, x.sym_sizes().slice(first, x.dim() - core - first));
    }
  };
  broadcast({position, orientation, velocity, angular_velocity}, 2);
  broadcast({u}, 2, 1);
  for (const at::TensorList parts : {mass, drag, offsets}) broadcast(parts, 0);
  for (const at::TensorList parts : {radii, normals}) broadcast(parts, 1);
  for (const at::TensorList parts : {inertia, centers}) broadcast(parts, 2);
  broadcast({gravity, mu, restitution, stiffness, dissipation}, 1);
  shape.insert(shape.begin(), u.sym_size(0));
  const auto empty = [&](std::initializer_list<c10::SymInt> core, at::ScalarType dtype) {
    at::SymDimVector sizes = shape;
    sizes.append(core.begin(), core.end());
    return at::empty_symint(sizes, position.options().dtype(dtype));
  };
  const auto number = [&](std::initializer_list<c10::SymInt> core) { return empty(core, position.scalar_type()); };
  const c10::SymInt impulses = radii[0].sym_size(-1) * (3 * static_cast<std::int64_t>(normals.size()));
  return {number({1, 3}),     number({1, 4}),       number({1, 3}),      number({1, 3}),
          number({impulses}), empty({}, at::kChar), empty({}, at::kLong)};
}

// A RigidScene as a class of TorchScript, with the functions of the scene as its methods. A state is the list of its
// four tensors.
struct SceneClass : torch::CustomClassHolder {
  using List = std::vector<Tensor>;

  SceneClass(const List& mass, const List& inertia, const List& centers, const List& radii, const List& drag,
             const List& normals, const List& offsets, const std::vector<std::int64_t>& plane_bodies,
             const std::vector<std::vector<std::int64_t>>& touches, double dt, const Tensor& gravity, const Tensor& mu,
             const Tensor& restitution, const std::optional<Tensor>& stiffness,
             const std::optional<Tensor>& dissipation)
      : scene(scene_of({mass, inertia, centers, radii, drag, normals, offsets, gravity, mu, restitution,
                        stiffness.value_or(Tensor()), dissipation.value_or(Tensor()), dt})) {
    for (std::size_t k = 0; k < scene.planes.size(); ++k) {
      scene.planes[k].body = plane_bodies.at(k);
      scene.planes[k].touches = touches.at(k);
    }
  }

  RigidScene scene;
};

RigidState rigid_state(const std::vector<Tensor>& x) {
  TORCH_CHECK(x.size() == 4, "a state must be 4 tensors; got ", x.size());
  return {x[0], x[1], x[2], x[3]};
}

// The options of a rollout as a class of TorchScript.
struct OptionsClass : torch::CustomClassHolder {
  OptionsClass(const std::string& formulation, std::int64_t substeps, std::optional<double> bounce_threshold,
               double stabilization, std::int64_t directions, double angle, double kappa, const std::string& ties,
               std::optional<double> tolerance, double sigma, double beta) {
    options.formulation = rigid_formulation(formulation);
    options.substeps = substeps;
    options.bounce_threshold = bounce_threshold;
    options.stabilization = stabilization;
    options.directions = {.count = directions, .angle = angle};
    options.kappa = kappa;
    options.ties = ties;
    options.tolerance = tolerance;
    options.regularization = {.sigma = sigma, .beta = beta};
  }

  RigidOptions options;
};

using Scene = c10::intrusive_ptr<SceneClass>;
using Options = c10::intrusive_ptr<OptionsClass>;

SevenTensors simulate_scene(const Scene& self, const std::vector<Tensor>& state, const Tensor& u,
                            const Options& options) {
  return tensors_of(simulate(rigid_state(state), u, self->scene, options->options));
}

FourTensors certify_scene(const Scene& self, const std::vector<Tensor>& state, const Tensor& u,
                          const std::vector<Tensor>& rollout, const Options& options, double tolerance) {
  TORCH_CHECK(rollout.size() == 7, "rollout must be 7 tensors; got ", rollout.size());
  const RigidCertificate found = certify_rollout(
      rigid_state(state), u, self->scene, options->options,
      {{rollout[0], rollout[1], rollout[2], rollout[3]}, rollout[4], rollout[5], rollout[6]}, tolerance);
  return {found.unsolved, found.kinked, found.residual, found.margin};
}

FourTensors contacts_of_scene(const Scene& self, const std::vector<Tensor>& state) {
  const RigidContacts found = contacts(rigid_state(state), self->scene);
  return {found.gap, found.J, found.normal, found.point};
}

// The numbers (body, ball, 1 for a plane or 0 for a ball, other_body, index) of each ContactPair.
std::vector<std::vector<std::int64_t>> pairs_of_scene(const Scene& self) {
  std::vector<std::vector<std::int64_t>> pairs;
  for (const ContactPair& pair : contact_pairs(self->scene)) {
    pairs.push_back({pair.body, pair.ball, pair.other == ContactPair::Other::kPlane, pair.other_body, pair.index});
  }
  return pairs;
}

Tensor energy_of_scene(const Scene& self, const std::vector<Tensor>& state) {
  return energy(rigid_state(state), self->scene);
}

Tensor mass_matrix_of_scene(const Scene& self) { return mass_matrix(self->scene); }

std::tuple<Tensor, Tensor, Tensor> ball(const Tensor& mass, const Tensor& radius) {
  const RigidBody body = RigidBody::ball(mass, radius);
  return {body.inertia, body.centers, body.radii};
}

std::tuple<Tensor, Tensor, Tensor> box(const Tensor& mass, const Tensor& size) {
  const RigidBody body = RigidBody::box(mass, size);
  return {body.inertia, body.centers, body.radii};
}

std::tuple<Tensor, Tensor> inclined_plane(const Tensor& slope, const Tensor& height) {
  const Plane plane = Plane::inclined(slope, height);
  return {plane.normal, plane.offset};
}

FourTensors bodies_at_rest(const Tensor& position) {
  const RigidState state = RigidState::at_rest(position);
  return {state.position, state.orientation, state.velocity, state.angular_velocity};
}

TORCH_LIBRARY_FRAGMENT(lcp, library) {
  const auto define = [&](const char* schema, auto function) { ops::define_composite(library, schema, function); };
  ops::define_traced_as_one(
      library,
      "_simulate_bodies(Tensor position, Tensor orientation, Tensor velocity, Tensor angular_velocity, Tensor u, "
      "Tensor[] mass, Tensor[] inertia, Tensor[] centers, Tensor[] radii, Tensor[] drag, Tensor[] normals, "
      "Tensor[] offsets, "
      "Tensor gravity, Tensor mu, Tensor restitution, Tensor stiffness, Tensor dissipation, float dt, *, "
      "str formulation, int substeps, int directions, float tolerance) -> (Tensor position, Tensor orientation, "
      "Tensor velocity, Tensor angular_velocity, Tensor gamma, Tensor status, Tensor iterations)",
      TORCH_FN(simulate_bodies), TORCH_FN(shapes_of_bodies));
  define("_ball(Tensor mass, Tensor radius) -> (Tensor inertia, Tensor centers, Tensor radii)", TORCH_FN(ball));
  define("_box(Tensor mass, Tensor size) -> (Tensor inertia, Tensor centers, Tensor radii)", TORCH_FN(box));
  define("_inclined_plane(Tensor slope, Tensor height) -> (Tensor normal, Tensor offset)", TORCH_FN(inclined_plane));
  define(
      "_bodies_at_rest(Tensor position) -> (Tensor position, Tensor orientation, Tensor velocity, "
      "Tensor angular_velocity)",
      TORCH_FN(bodies_at_rest));
  define("_rotation_matrix(Tensor quaternion) -> Tensor", TORCH_FN(rotation_matrix));
  define("_rotation_by(Tensor theta) -> Tensor", TORCH_FN(rotation_by));
  define("_turned(Tensor quaternion, Tensor theta) -> Tensor", TORCH_FN(turned));
  define("_rotation_between(Tensor a, Tensor b) -> Tensor", TORCH_FN(rotation_between));
  define("_angle_between(Tensor a, Tensor b) -> Tensor", TORCH_FN(angle_between));

  library.class_<OptionsClass>("RigidOptions")
      .def(torch::init<std::string, std::int64_t, std::optional<double>, double, std::int64_t, double, double,
                       std::string, std::optional<double>, double, double>());
  library.class_<SceneClass>("RigidScene")
      .def(torch::init<SceneClass::List, SceneClass::List, SceneClass::List, SceneClass::List, SceneClass::List,
                       SceneClass::List, SceneClass::List, std::vector<std::int64_t>,
                       std::vector<std::vector<std::int64_t>>, double, Tensor, Tensor, Tensor, std::optional<Tensor>,
                       std::optional<Tensor>>())
      .def("simulate", &simulate_scene)
      .def("certify", &certify_scene)
      .def("contacts", &contacts_of_scene)
      .def("contact_pairs", &pairs_of_scene)
      .def("energy", &energy_of_scene)
      .def("mass_matrix", &mass_matrix_of_scene);
}

}  // namespace
}  // namespace lcp::physics
