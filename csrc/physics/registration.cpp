// Rigid bodies as operators and as a class, for TorchScript and Python.
#include <ATen/ATen.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "lcp/physics/sample_velocities.h"
#include "ops/composite.h"
#include "physics/rigid_rollout.h"
#include "physics/scene_list.h"
#include "physics/stepping.h"

namespace lcp::physics {

LCP_MEMBERS(RigidSolution, next, gamma, status, iterations)
LCP_MEMBERS(RigidCertificate, unsolved, kinked, residual, margin)
LCP_MEMBERS(RigidContacts, gap, J, normal, point)
LCP_MEMBERS_BY(RigidBody, "inertia, centers, radii", [](auto& x) { return std::tie(x.inertia, x.centers, x.radii); })
LCP_MEMBERS_BY(Plane, "normal, offset", [](auto& x) { return std::tie(x.normal, x.offset); })

namespace {

using at::Tensor;
using ops::define;
using TensorVector = std::vector<Tensor>;
using Numbers = std::vector<std::int64_t>;

// A RigidScene with options as a class of TorchScript, with the functions of the scene as its methods. A state is the
// list of its four tensors.
struct SceneClass : torch::CustomClassHolder {
  SceneClass(const TensorVector& x, std::int64_t bodies, const Numbers& plane_bodies, const Numbers& touches,
             const Numbers& touch_counts, double dt, const std::string& formulation, std::int64_t substeps,
             std::optional<double> bounce_threshold, double stabilization, std::int64_t directions, double angle,
             double kappa, const std::string& ties, std::optional<double> tolerance, double sigma, double beta)
      : scene(scene_of_list(x, 0, bodies, plane_bodies, touches, touch_counts, dt)) {
    ops::kInSchema<RigidOptions>.access(options) =
        std::tuple(ops::enumerator_named<RigidFormulation>("formulation", formulation), substeps, bounce_threshold,
                   stabilization, directions, angle, kappa, ties, tolerance, sigma, beta);
  }

  std::shared_ptr<const PreparedScene> prepared() {
    const std::lock_guard lock(mutex);
    if (!last || !last->is_current()) {
      last = std::make_shared<const PreparedScene>(scene, options, std::nullopt, /*keeps=*/true);
    }
    return last;
  }

  RigidScene scene;
  RigidOptions options;

 private:
  std::mutex mutex;
  std::shared_ptr<const PreparedScene> last;
};

using Scene = c10::intrusive_ptr<SceneClass>;

RigidState state_of(const TensorVector& state) { return ops::from_list<RigidState>("state", state); }

TensorVector list_of(const RigidSolution& x) {
  const RigidState& next = x.next;
  return {next.position, next.orientation, next.velocity, next.angular_velocity, x.gamma, x.status, x.iterations};
}

// feedback: K and the tensors of the reference, or nothing.
TensorVector simulate_scene(const Scene& self, const TensorVector& state, const Tensor& u,
                            const TensorVector& feedback) {
  std::optional<Feedback<RigidState>> closed;
  if (!feedback.empty()) closed = ops::from_list<Feedback<RigidState>>("feedback", feedback);
  return list_of(simulate(state_of(state), u, *self->prepared(), closed));
}

TensorVector step_scene(const Scene& self, const TensorVector& state, const Tensor& u) {
  return list_of(simulate(state_of(state), u.unsqueeze(0), *self->prepared(), std::nullopt, /*is_step=*/true));
}

auto certify_scene(const Scene& self, const TensorVector& state, const Tensor& u, const TensorVector& rollout,
                   double tolerance) {
  return ops::values_of(certify_rollout(state_of(state), u, self->scene, self->options,
                                        ops::from_list<RigidSolution>("rollout", rollout), tolerance));
}

auto contacts_of_scene(const Scene& self, const TensorVector& state) {
  return ops::values_of(contacts(state_of(state), self->scene));
}

template <auto convert>
auto with_velocities(const Scene& self, const TensorVector& state, const Tensor& u) {
  return ops::values_of(convert(state_of(state), u, self->scene, self->options));
}

// x: the four tensors of the state, u, and those of the scene.
// pairs: five numbers for each ContactPair, as pairs_of_scene has them, or -1 alone where there is none, since
// AOTInductor cannot pass an empty list; absent where they are to be found.
RigidSolution roll_out_scene(const TensorVector& x, std::int64_t bodies, const Numbers& plane_bodies,
                             const Numbers& touches, const Numbers& touch_counts, const std::optional<Numbers>& pairs,
                             double dt, const RigidOptions& options,
                             const std::optional<Feedback<RigidState>>& feedback) {
  const RigidScene scene = scene_of_list(x, 5, bodies, plane_bodies, touches, touch_counts, dt);
  std::optional<std::vector<ContactPair>> known;
  if (pairs) {
    known.emplace();
    const Numbers numbers = *pairs == Numbers{-1} ? Numbers() : *pairs;
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
  return simulate({x[0], x[1], x[2], x[3]}, x[4], PreparedScene(scene, options, known), feedback);
}

// The same of lists of the parts of bodies and of fixed planes that touch all of them, as files of models call it.
RigidSolution simulate_bodies(const RigidState& state, const Tensor& u, const TensorVector& mass,
                              const TensorVector& inertia, const TensorVector& centers, const TensorVector& radii,
                              const TensorVector& drag, const TensorVector& normals, const TensorVector& offsets,
                              const Tensor& gravity, const Tensor& mu, const Tensor& restitution,
                              const Tensor& stiffness, const Tensor& dissipation, double dt,
                              RigidFormulation formulation, std::int64_t substeps, std::int64_t directions,
                              double tolerance) {
  const auto check_size = [](const char* name, const TensorVector& list, const char* of, std::size_t size) {
    TORCH_CHECK(list.size() == size, name, " must have one tensor for each of ", of, ", ", size, "; got ", list.size());
  };
  check_size("inertia", inertia, "mass", mass.size());
  check_size("centers", centers, "mass", mass.size());
  check_size("radii", radii, "mass", mass.size());
  check_size("drag", drag, "mass", mass.size());
  check_size("offsets", offsets, "normals", normals.size());
  RigidScene scene{{}, {}, dt, gravity, mu, restitution, stiffness, dissipation};
  for (std::size_t k = 0; k < mass.size(); ++k) {
    scene.bodies.push_back({mass[k], inertia[k], centers[k], radii[k], drag[k]});
  }
  for (std::size_t k = 0; k < normals.size(); ++k) scene.planes.push_back({normals[k], offsets[k]});
  // Which balls of two bodies can touch depends on their radii.
  TORCH_CHECK(mass.size() == 1 || std::all_of(radii.begin(), radii.end(), can_read),
              "lcp::_simulate_bodies can be traced with one body only; got ", mass.size());
  RigidOptions options;
  options.formulation = formulation;
  options.substeps = substeps;
  options.directions.count = directions;
  options.tolerance = tolerance;
  return simulate(state, u, scene, options);
}

// The numbers (body, ball, 1 for a plane or 0 for a ball, other_body, index) of each ContactPair.
std::vector<std::vector<std::int64_t>> pairs_of_scene(const Scene& self) {
  std::vector<std::vector<std::int64_t>> pairs;
  for (const ContactPair& pair : contact_pairs(self->scene)) {
    pairs.push_back({pair.body, pair.ball, pair.other == ContactPair::Other::kPlane, pair.other_body, pair.index});
  }
  return pairs;
}

Tensor energy_of_scene(const Scene& self, const TensorVector& state) { return energy(state_of(state), self->scene); }

Tensor mass_matrix_of_scene(const Scene& self) { return mass_matrix(self->scene); }

LCP_LIBRARY_FRAGMENT(library) {
  define<simulate_bodies>(
      library,
      "_simulate_bodies(state, u, mass, inertia, centers, radii, drag, normals, offsets, gravity, mu, restitution, "
      "stiffness, dissipation, dt, *, formulation, substeps, directions, tolerance)");
  define<Tensor, Tensor>(library, "_ball(mass, radius)", LCP_CALL(RigidBody::ball));
  define<Tensor, Tensor>(library, "_box(mass, size)", LCP_CALL(RigidBody::box));
  define<Tensor, Tensor>(library, "_inclined_plane(slope, height)", LCP_CALL(Plane::inclined));
  define<RigidState::at_rest>(library, "_bodies_at_rest(position)");
  define<rotation_matrix>(library, "_rotation_matrix(quaternion)");
  define<rotation_by>(library, "_rotation_by(theta)");
  define<turned>(library, "_turned(quaternion, theta)");
  define<rotation_between>(library, "_rotation_between(a, b)");
  define<angle_between>(library, "_angle_between(a, b)");
  define<gyroscopic>(library, "_gyroscopic(omega, inertia, dt)");
  define<roll_out_scene>(library,
                         "_roll_out_scene(x, bodies, plane_bodies, touches, touch_counts, pairs, dt, options, "
                         "feedback)");

  library.class_<SceneClass>("RigidScene")
      .def(torch::init<TensorVector, std::int64_t, Numbers, Numbers, Numbers, double, std::string, std::int64_t,
                       std::optional<double>, double, std::int64_t, double, double, std::string, std::optional<double>,
                       double, double>())
      .def("simulate", &simulate_scene)
      .def("step", &step_scene)
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
