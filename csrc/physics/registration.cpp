// Rigid bodies as operators and as a class, for TorchScript and Python.
#include <ATen/ATen.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "lcp/physics/sample_velocities.h"
#include "ops/composite.h"
#include "physics/named_option.h"
#include "physics/rigid_rollout.h"
#include "physics/stepping.h"

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

RigidOptions rigid_options(const std::string& formulation, std::int64_t substeps,
                           std::optional<double> bounce_threshold, double stabilization, std::int64_t directions,
                           double angle, double kappa, const std::string& ties, std::optional<double> tolerance,
                           double sigma, double beta) {
  RigidOptions options;
  options.formulation = rigid_formulation(formulation);
  options.substeps = substeps;
  options.bounce_threshold = bounce_threshold;
  options.stabilization = stabilization;
  options.directions = {.count = directions, .angle = angle};
  options.kappa = kappa;
  options.ties = ties;
  options.tolerance = tolerance;
  options.regularization = {.sigma = sigma, .beta = beta};
  return options;
}

// The options of a rollout as a class of TorchScript.
struct OptionsClass : torch::CustomClassHolder {
  OptionsClass(const std::string& formulation, std::int64_t substeps, std::optional<double> bounce_threshold,
               double stabilization, std::int64_t directions, double angle, double kappa, const std::string& ties,
               std::optional<double> tolerance, double sigma, double beta) {
    options = rigid_options(formulation, substeps, bounce_threshold, stabilization, directions, angle, kappa, ties,
                            tolerance, sigma, beta);
  }

  RigidOptions options;
};

using Scene = c10::intrusive_ptr<SceneClass>;
using Options = c10::intrusive_ptr<OptionsClass>;

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

template <auto convert>
FourTensors with_velocities(const Scene& self, const std::vector<Tensor>& state, const Tensor& u,
                            const Options& options) {
  const RigidState found = convert(rigid_state(state), u, self->scene, options->options);
  return {found.position, found.orientation, found.velocity, found.angular_velocity};
}

// The places of the first tensors of a rollout; from kBodies on are those of the scene.
enum Place : std::size_t { kPosition, kOrientation, kVelocity, kAngularVelocity, kForces, kBodies };

// A rollout of a scene that is one list of tensors: the state, u, for
// each body its mass, inertia, centers, radii and drag, for each plane its normal and offset, gravity, mu, restitution
// and, where there are five behind the planes, stiffness and dissipation. Plane k is fixed to plane_bodies[k] and can
// touch the next touch_counts[k] of the bodies that `touches` lists.
struct SceneRollout {
  SceneRollout(at::TensorList x, std::int64_t bodies, at::IntArrayRef plane_bodies, at::IntArrayRef touches,
               at::IntArrayRef touch_counts, double dt) {
    const auto planes = static_cast<std::int64_t>(plane_bodies.size()), count = static_cast<std::int64_t>(x.size());
    TORCH_CHECK(bodies >= 1 && bodies <= count, "bodies must be from 1 to the number of tensors; got ", bodies);
    const std::int64_t least = static_cast<std::int64_t>(kBodies) + 5 * bodies + 2 * planes + 3;
    TORCH_CHECK(count != least + 1, "stiffness and dissipation must both be given, or neither");
    TORCH_CHECK(count == least || count == least + 2, "x must be ", least, " tensors, or ", least + 2,
                " with stiffness and dissipation; got ", count);
    TORCH_CHECK(touch_counts.size() == plane_bodies.size(), "touch_counts must be ", planes, " numbers; got ",
                touch_counts.size());
    state = {x[kPosition], x[kOrientation], x[kVelocity], x[kAngularVelocity]};
    u = x[kForces];
    std::size_t next = kBodies;
    for (std::int64_t k = 0; k < bodies; ++k, next += 5) {
      scene.bodies.push_back({x[next], x[next + 1], x[next + 2], x[next + 3], x[next + 4]});
    }
    for (std::size_t k = 0; k < plane_bodies.size(); ++k, next += 2) {
      TORCH_CHECK(touch_counts[k] >= 0 && touch_counts[k] <= static_cast<std::int64_t>(touches.size()),
                  "touch_counts must have the sum of the number of touches; got ", touch_counts);
      scene.planes.push_back({x[next], x[next + 1], plane_bodies[k], touches.slice(0, touch_counts[k]).vec()});
      touches = touches.slice(touch_counts[k]);
    }
    scene.dt = dt;
    scene.gravity = x[next];
    scene.mu = x[next + 1];
    scene.restitution = x[next + 2];
    if (next + 3 == x.size()) return;
    scene.stiffness = x[next + 3];
    scene.dissipation = x[next + 4];
  }

  RigidScene scene;
  RigidState state;
  Tensor u;
};

// pairs: five numbers for each ContactPair, as pairs_of_scene has them, or -1 alone where there is none, since
// AOTInductor cannot pass an empty list; absent where they are to be found.
SevenTensors roll_out_scene(at::TensorList x, std::int64_t bodies, at::IntArrayRef plane_bodies,
                            at::IntArrayRef touches, at::IntArrayRef touch_counts, at::OptionalIntArrayRef pairs,
                            double dt, const std::string& formulation, std::int64_t substeps,
                            std::optional<double> bounce_threshold, double stabilization, std::int64_t directions,
                            double angle, double kappa, const std::string& ties, std::optional<double> tolerance,
                            double sigma, double beta) {
  const SceneRollout given(x, bodies, plane_bodies, touches, touch_counts, dt);
  const RigidOptions options = rigid_options(formulation, substeps, bounce_threshold, stabilization, directions, angle,
                                             kappa, ties, tolerance, sigma, beta);
  std::optional<std::vector<ContactPair>> known;
  if (pairs) {
    known.emplace();
    const at::IntArrayRef numbers = *pairs == at::IntArrayRef({-1}) ? at::IntArrayRef() : *pairs;
    TORCH_CHECK(numbers.size() % 5 == 0, "pairs must have five numbers each; got ", numbers.size());
    for (std::size_t k = 0; k < numbers.size(); k += 5) {
      const auto number = [&](std::size_t i) { return numbers[k + i]; };
      using Other = ContactPair::Other;
      TORCH_CHECK(number(0) >= 0 && number(0) < bodies && number(3) >= -1 && number(3) < bodies,
                  "pairs must name bodies from 0 to ", bodies - 1, "; got ", number(0), " and ", number(3));
      TORCH_CHECK(number(2) != 0 || number(3) >= 0, "a pair of balls must name another body; got ", number(3));
      known->push_back({number(0), number(1), number(2) != 0 ? Other::kPlane : Other::kBall, number(3), number(4)});
    }
  }
  return tensors_of(
      simulate(given.state, given.u, given.scene, step_text(given.scene, options, known), options.substeps));
}

// The same of lists of the parts of bodies and of fixed planes that touch all of them, as files of models call it.
SevenTensors simulate_bodies(const Tensor& position, const Tensor& orientation, const Tensor& velocity,
                             const Tensor& angular_velocity, const Tensor& u, at::TensorList mass,
                             at::TensorList inertia, at::TensorList centers, at::TensorList radii, at::TensorList drag,
                             at::TensorList normals, at::TensorList offsets, const Tensor& gravity, const Tensor& mu,
                             const Tensor& restitution, const Tensor& stiffness, const Tensor& dissipation, double dt,
                             const std::string& formulation, std::int64_t substeps, std::int64_t directions,
                             double tolerance) {
  const RigidScene scene = scene_of(
      {mass, inertia, centers, radii, drag, normals, offsets, gravity, mu, restitution, stiffness, dissipation, dt});
  // Which balls of two bodies can touch depends on their radii.
  TORCH_CHECK(mass.size() == 1 || std::all_of(radii.begin(), radii.end(), can_read),
              "lcp::_simulate_bodies can be traced with one body only; got ", mass.size());
  RigidOptions options;
  options.formulation = rigid_formulation(formulation);
  options.substeps = substeps;
  options.directions.count = directions;
  options.tolerance = tolerance;
  return tensors_of(simulate({position, orientation, velocity, angular_velocity}, u, scene, options));
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

LCP_LIBRARY_FRAGMENT(library) {
  const auto define = [&](const char* schema, auto function) { ops::define_composite(library, schema, function); };
  define(
      "_simulate_bodies(Tensor position, Tensor orientation, Tensor velocity, Tensor angular_velocity, Tensor u, "
      "Tensor[] mass, Tensor[] inertia, Tensor[] centers, Tensor[] radii, Tensor[] drag, Tensor[] normals, "
      "Tensor[] offsets, "
      "Tensor gravity, Tensor mu, Tensor restitution, Tensor stiffness, Tensor dissipation, float dt, *, "
      "str formulation, int substeps, int directions, float tolerance) -> (Tensor position, Tensor orientation, "
      "Tensor velocity, Tensor angular_velocity, Tensor gamma, Tensor status, Tensor iterations)",
      TORCH_FN(simulate_bodies));
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
  define("_gyroscopic(Tensor omega, Tensor inertia, float dt) -> Tensor", TORCH_FN(gyroscopic));

  define(
      "_roll_out_scene(Tensor[] x, int bodies, int[] plane_bodies, int[] touches, int[] touch_counts, int[]? pairs, "
      "float dt, str formulation, int substeps, float? bounce_threshold, float stabilization, int directions, "
      "float angle, float kappa, str ties, float? tolerance, float sigma, float beta) -> (Tensor position, "
      "Tensor orientation, Tensor velocity, Tensor angular_velocity, Tensor gamma, Tensor status, Tensor iterations)",
      TORCH_FN(roll_out_scene));

  library.class_<OptionsClass>("RigidOptions")
      .def(torch::init<std::string, std::int64_t, std::optional<double>, double, std::int64_t, double, double,
                       std::string, std::optional<double>, double, double>());
  library.class_<SceneClass>("RigidScene")
      .def(torch::init<SceneClass::List, SceneClass::List, SceneClass::List, SceneClass::List, SceneClass::List,
                       SceneClass::List, SceneClass::List, std::vector<std::int64_t>,
                       std::vector<std::vector<std::int64_t>>, double, Tensor, Tensor, Tensor, std::optional<Tensor>,
                       std::optional<Tensor>>())
      .def("at_mid_steps", &with_velocities<&at_mid_steps>)
      .def("at_samples", &with_velocities<&at_samples>)
      .def("certify", &certify_scene)
      .def("contacts", &contacts_of_scene)
      .def("contact_pairs", &pairs_of_scene)
      .def("energy", &energy_of_scene)
      .def("mass_matrix", &mass_matrix_of_scene);
}

}  // namespace
}  // namespace lcp::physics
