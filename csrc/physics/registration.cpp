// Rigid bodies as operators and as a class, for TorchScript and Python.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/FuncTorchTLS.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
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
#include "physics/walk_function.h"

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

// A rollout as an operator that transforms do not look into, of a scene that is one list of tensors: the state, u, for
// each body its mass, inertia, centers, radii and drag, for each plane its normal and offset, gravity, mu, restitution
// and, where there are five behind the planes, stiffness and dissipation. Plane k is fixed to plane_bodies[k] and can
// touch the next touch_counts[k] of the bodies that `touches` lists.
struct SceneRollout {
  SceneRollout(at::TensorList x, std::int64_t bodies, at::IntArrayRef plane_bodies, at::IntArrayRef touches,
               at::IntArrayRef touch_counts, double dt) {
    state = {x[kPosition], x[kOrientation], x[kVelocity], x[kAngularVelocity]};
    u = x[kForces];
    std::size_t next = kBodies;
    for (std::int64_t k = 0; k < bodies; ++k, next += 5) {
      scene.bodies.push_back({x[next], x[next + 1], x[next + 2], x[next + 3], x[next + 4]});
    }
    for (std::size_t k = 0; k < plane_bodies.size(); ++k, next += 2) {
      scene.planes.push_back({x[next], x[next + 1], plane_bodies[k], touches.slice(0, touch_counts[k]).vec()});
      touches = touches.slice(touch_counts[k]);
    }
    scene.dt = dt;
    scene.gravity = x[next];
    scene.mu = x[next + 1];
    scene.restitution = x[next + 2];
    if (next + 3 == x.size()) return;
    TORCH_CHECK(next + 5 == x.size(), "stiffness and dissipation must both be given, or neither");
    scene.stiffness = x[next + 3];
    scene.dissipation = x[next + 4];
  }

  RigidScene scene;
  RigidState state;
  Tensor u;
};

SevenTensors roll_out_scene(at::TensorList x, std::int64_t bodies, at::IntArrayRef plane_bodies,
                            at::IntArrayRef touches, at::IntArrayRef touch_counts, std::int64_t /*pairs*/, double dt,
                            const std::string& formulation, std::int64_t substeps,
                            std::optional<double> bounce_threshold, double stabilization, std::int64_t directions,
                            double angle, double kappa, const std::string& ties, std::optional<double> tolerance,
                            double sigma, double beta) {
  const SceneRollout given(x, bodies, plane_bodies, touches, touch_counts, dt);
  const RigidSolution found = simulate(given.state, given.u, given.scene,
                                       rigid_options(formulation, substeps, bounce_threshold, stabilization, directions,
                                                     angle, kappa, ties, tolerance, sigma, beta));
  // In the order in memory that a compiler expects of an operator that it does not look into.
  return std::apply([](const auto&... result) { return SevenTensors{result.contiguous()...}; }, tensors_of(found));
}

// The shapes of its results, without data.
SevenTensors shapes_of_rollout(at::TensorList x, std::int64_t bodies, at::IntArrayRef plane_bodies, at::IntArrayRef,
                               at::IntArrayRef, std::int64_t pairs, double, const std::string&, std::int64_t,
                               std::optional<double>, double, std::int64_t, double, double, const std::string&,
                               std::optional<double>, double, double) {
  std::vector<std::int64_t> core_dims = {2, 2, 2, 2, 2};  // the dimensions behind those of the batch
  for (std::int64_t k = 0; k < bodies; ++k) core_dims.insert(core_dims.end(), {0, 2, 2, 1, 0});
  for (std::size_t k = 0; k < plane_bodies.size(); ++k) core_dims.insert(core_dims.end(), {1, 0});
  core_dims.resize(x.size(), 1);
  at::SymDimVector shape;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::int64_t rows = k == kForces ? 1 : 0;
    TORCH_CHECK(x[k].dim() >= core_dims[k] + rows, "tensor ", k, " of a rollout must have at least ",
                core_dims[k] + rows, " dimensions; got ", x[k].sym_sizes());
    shape = at::infer_size_symdimvector(shape, x[k].sym_sizes().slice(rows, x[k].dim() - core_dims[k] - rows));
  }
  shape.insert(shape.begin(), x[kForces].sym_size(0));
  const auto empty = [&](std::initializer_list<c10::SymInt> core, at::ScalarType dtype) {
    at::SymDimVector sizes = shape;
    sizes.append(core.begin(), core.end());
    return at::empty_symint(sizes, x[kForces].options().dtype(dtype));
  };
  const auto number = [&](std::initializer_list<c10::SymInt> core) { return empty(core, x[kVelocity].scalar_type()); };
  return {number({bodies, 3}), number({bodies, 4}),  number({bodies, 3}), number({bodies, 3}),
          number({3 * pairs}), empty({}, at::kChar), empty({}, at::kLong)};
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
  std::vector<Tensor> x = {position, orientation, velocity, angular_velocity, u};
  for (const RigidBody& body : scene.bodies) {
    x.insert(x.end(), {body.mass, body.inertia, body.centers, body.radii, body.drag});
  }
  for (const Plane& plane : scene.planes) x.insert(x.end(), {plane.normal, plane.offset});
  x.insert(x.end(), {gravity, mu, restitution, stiffness, dissipation});
  const auto bodies = static_cast<std::int64_t>(mass.size());
  const std::vector<std::int64_t> fixed(scene.planes.size(), -1), counts(scene.planes.size(), bodies);
  std::vector<std::int64_t> touches;  // all of them by their numbers, since AOTInductor cannot pass an empty list
  for (std::size_t k = 0; k < scene.planes.size(); ++k) {
    for (std::int64_t body = 0; body < bodies; ++body) touches.push_back(body);
  }
  static const auto roll_out = operator_named<decltype(roll_out_scene)>("lcp::_roll_out_scene");
  const RigidOptions defaults;
  return roll_out.call(x, bodies, fixed, touches, counts, static_cast<std::int64_t>(contact_pairs(scene).size()), dt,
                       formulation, substeps, defaults.bounce_threshold, defaults.stabilization, directions,
                       defaults.directions.angle, defaults.kappa, defaults.ties, tolerance,
                       defaults.regularization.sigma, defaults.regularization.beta);
}

// Within this no transform of torch.func is active, as for a kernel of plain tensors that differentiates by itself, and
// autograd is, whose keys are excluded where such a kernel is called.
class OwnAutograd {
 public:
  OwnAutograd() { at::functorch::functorchTLSAccessor().swap(transforms_); }
  ~OwnAutograd() { at::functorch::functorchTLSAccessor().swap(transforms_); }
  OwnAutograd(const OwnAutograd&) = delete;
  OwnAutograd& operator=(const OwnAutograd&) = delete;

 private:
  static c10::DispatchKeySet excluded() {
    const c10::DispatchKeySet transforms(
        {c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode});
    return (c10::impl::tls_local_dispatch_key_set().excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView) |
           transforms;
  }

  std::unique_ptr<at::functorch::FuncTorchTLSBase> transforms_;
  c10::impl::ForceDispatchKeyGuard keys_{c10::impl::tls_local_dispatch_key_set().included_, excluded()};
  c10::AutoGradMode grad_{true};
};

// The arguments of a rollout that are no tensors, in the order of the operators.
using RolloutOptions = std::tuple<std::int64_t, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t, double,
                                  const std::string&, std::int64_t, std::optional<double>, double, std::int64_t, double,
                                  double, const std::string&, std::optional<double>, double, double>;

// A rollout that is done once more, for its derivatives.
struct Again {
  std::vector<Tensor> x, results;  // the results that have gradients

  Again(at::TensorList given, const RolloutOptions& options) {
    for (const Tensor& each : given) x.push_back(each.detach().requires_grad_());
    const auto all = std::apply([&](const auto&... option) { return roll_out_scene(x, option...); }, options);
    results = {std::get<0>(all), std::get<1>(all), std::get<2>(all), std::get<3>(all), std::get<4>(all)};
  }
};

// The gradients in `in` of the results `of`, whose own gradients are `given`: 0 where a result does not depend on an
// input.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& of, const std::vector<Tensor>& in,
                                 const std::vector<Tensor>& given, bool again) {
  std::vector<Tensor> found = torch::autograd::grad(of, in, given, /*retain_graph=*/again, /*create_graph=*/again,
                                                    /*allow_unused=*/true);
  for (std::size_t k = 0; k < found.size(); ++k) {
    found[k] = found[k].defined() ? found[k].contiguous() : at::zeros_like(in[k]).detach();
  }
  return found;
}

// The gradients in `in` of the sum of the products of x and y.
std::vector<Tensor> gradients_of_product(const std::vector<Tensor>& x, at::TensorList y,
                                         const std::vector<Tensor>& in) {
  Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t k = 0; k < x.size(); ++k) sum = sum + (x[k] * y[k].detach()).sum();
  if (sum.requires_grad()) return gradients_of({sum}, in, {}, false);
  std::vector<Tensor> none;
  none.reserve(in.size());
  for (const Tensor& each : in) none.push_back(at::zeros_like(each).detach());
  return none;
}

// J' g, for the Jacobian J of the results in x.
std::vector<Tensor> adjoint_of_rollout(at::TensorList g, at::TensorList x, const RolloutOptions& options) {
  const OwnAutograd own;
  const Again again(x, options);
  return gradients_of(again.results, again.x, g.vec(), false);
}

// J dx, as the gradient of dx' J' g in g.
std::vector<Tensor> tangent_of_rollout(at::TensorList dx, at::TensorList x, const RolloutOptions& options) {
  const OwnAutograd own;
  const Again again(x, options);
  std::vector<Tensor> g;
  g.reserve(again.results.size());
  for (const Tensor& result : again.results) g.push_back(at::zeros_like(result).detach().requires_grad_());
  return gradients_of_product(gradients_of(again.results, again.x, g, true), dx, g);
}

// The change of J' g with g and x, by dg and dx: J' dg and the gradient of dx' J' g in x.
std::vector<Tensor> tangent_of_adjoint(at::TensorList dg, at::TensorList dx, at::TensorList g, at::TensorList x,
                                       const RolloutOptions& options) {
  const OwnAutograd own;
  const Again again(x, options);
  std::vector<Tensor> given;
  for (const Tensor& each : g) given.push_back(each.detach());
  std::vector<Tensor> change = gradients_of_product(gradients_of(again.results, again.x, given, true), dx, again.x);
  const std::vector<Tensor> by_g = adjoint_of_rollout(dg, x, options);
  for (std::size_t k = 0; k < change.size(); ++k) change[k] = change[k] + by_g[k];
  return change;
}

// A function of lists of tensors and RolloutOptions as an operator, whose arguments are not in a tuple.
template <auto function, class Options>
struct OfRollout;
template <auto function, class... Option>
struct OfRollout<function, std::tuple<Option...>> {
  static std::vector<Tensor> two(at::TensorList a, at::TensorList x, Option... option) {
    return function(a, x, RolloutOptions(option...));
  }
  static std::vector<Tensor> four(at::TensorList a, at::TensorList b, at::TensorList c, at::TensorList x,
                                  Option... option) {
    return function(a, b, c, x, RolloutOptions(option...));
  }
};

// Whether one of the tensors is mapped by torch.vmap, or is differentiated by torch.func while it is.
bool is_mapped(at::TensorList tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& x) { return at::functorch::isBatchedTensor(ops::without_wrappers(x)); });
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

  const std::string scene =
      "Tensor[] x, int bodies, int[] plane_bodies, int[] touches, int[] touch_counts, int pairs, float dt, "
      "str formulation, int substeps, float? bounce_threshold, float stabilization, int directions, float angle, "
      "float kappa, str ties, float? tolerance, float sigma, float beta)";
  ops::define_traced_as_one(
      library,
      "_roll_out_scene(" + scene +
          " -> (Tensor position, Tensor orientation, Tensor velocity, Tensor angular_velocity, Tensor gamma, "
          "Tensor status, Tensor iterations)",
      TORCH_FN(roll_out_scene), TORCH_FN(shapes_of_rollout));
  // Derivatives of a rollout as operators that have no derivative themselves.
  const auto define_derivative = [&](const std::string& name, const std::string& lists, auto function) {
    library.def((name + "(" + lists + scene + " -> Tensor[]").c_str(), {at::Tag::pt2_compliant_tag});
    library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
    library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd,
                                               torch::CppFunction::makeFromBoxedFunction<&ops::refuse_derivative>()));
  };
  define_derivative("_roll_out_scene_adjoint", "Tensor[] gradients, ",
                    TORCH_FN((OfRollout<adjoint_of_rollout, RolloutOptions>::two)));
  define_derivative("_roll_out_scene_tangent", "Tensor[] tangents, ",
                    TORCH_FN((OfRollout<tangent_of_rollout, RolloutOptions>::two)));
  define_derivative("_roll_out_scene_adjoint_tangent", "Tensor[] of_gradients, Tensor[] tangents, Tensor[] gradients, ",
                    TORCH_FN((OfRollout<tangent_of_adjoint, RolloutOptions>::four)));
  define("_is_mapped(Tensor[] tensors) -> bool", TORCH_FN(is_mapped));

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
