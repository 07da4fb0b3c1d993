// Rollouts of rigid bodies on the CPU, threads over trajectories.
#include <c10/core/SymIntArrayRef.h>

#include <array>
#include <optional>

#include "ops/elements.h"
#include "ops/friction/operators.h"
#include "ops/parallel.h"
#include "ops/registration.h"
#include "ops/rigid/operators.h"
#include "ops/trajectories.h"
#include "rigid/adjoint.h"
#include "rigid/simulator.h"

namespace lcp::ops {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kRigidStepsPerTask = 20;

// What a trajectory depends on, in the order of the operators' arguments.
struct RigidInputs {
  const Tensor &mass, &inertia, &centers, &radii, &normals, &offsets, &gravity, &mu, &restitution;
  const Tensor &position, &orientation, &velocity, &angular_velocity, &drag, &stiffness, &dissipation;
};

rigid::Scene scene_of(const RigidInputs& in, c10::SymIntArrayRef symbolic, const rigid::Law& law, double dt,
                      std::optional<double> bounce_threshold, double stabilization) {
  const auto pairs = c10::asIntArrayRefSlow(symbolic, __FILE__, __LINE__);
  const auto count = [](const Tensor& x) { return static_cast<int>(x.size(-1)); };
  rigid::Scene scene = {count(in.mass),   count(in.radii), count(in.offsets), {}, law, dt,
                        bounce_threshold, stabilization};
  for (std::size_t k = 0; k < pairs.size(); k += 4) {
    const auto number = [&](std::size_t i) { return static_cast<int>(pairs[k + i]); };
    const bool is_plane = number(3) < scene.planes;
    scene.pairs.push_back(
        {number(0), number(1), number(2), is_plane ? number(3) : -1, is_plane ? -1 : number(3) - scene.planes});
  }
  return scene;
}

// The same in memory, for each trajectory.
struct RigidViews {
  std::array<batch::BatchView<double>, 16> input;
  std::array<std::int64_t, 16> size = {};

  RigidViews(TrajectoryReader<double>& reader, const RigidInputs& in) {
    const std::array<const Tensor*, 16> tensors = {
        &in.mass,      &in.inertia,     &in.centers,  &in.radii,       &in.normals,  &in.offsets,          &in.gravity,
        &in.mu,        &in.restitution, &in.position, &in.orientation, &in.velocity, &in.angular_velocity, &in.drag,
        &in.stiffness, &in.dissipation};
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      input[k] = reader.per_trajectory(*tensors[k], 1);
      size[k] = tensors[k]->size(-1);
    }
  }

  const double* at(std::size_t k, std::int64_t b) const { return batch::from(input[k], b, size[k]).data; }
  rigid::Parameters<const double> parameters(std::int64_t b) const {
    return {at(0, b), at(1, b), at(2, b), at(3, b),  at(4, b),  at(5, b),
            at(6, b), at(7, b), at(8, b), at(13, b), at(14, b), at(15, b)};
  }
  rigid::State<const double> first(std::int64_t b) const { return {at(9, b), at(10, b), at(11, b), at(12, b)}; }
};

Tensors<10> rigid_walk_cpu(const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii,
                           const Tensor& normals, const Tensor& offsets, const Tensor& gravity, const Tensor& mu,
                           const Tensor& restitution, const Tensor& position, const Tensor& orientation,
                           const Tensor& velocity, const Tensor& angular_velocity, const Tensor& u, const Tensor& drag,
                           const Tensor& stiffness, const Tensor& dissipation, c10::SymIntArrayRef pairs, double dt,
                           std::optional<double> bounce_threshold, double stabilization, std::string_view formulation,
                           std::int64_t directions, double angle, double sigma, double beta, std::int64_t num_unknowns,
                           double tolerance) {
  auto results = new_results<10>(kRigidWalk, mass, inertia, centers, radii, normals, offsets, gravity, mu, restitution,
                                 position, orientation, velocity, angular_velocity, u, drag, stiffness, dissipation,
                                 pairs, dt, bounce_threshold, stabilization, formulation, directions, angle, sigma,
                                 beta, num_unknowns, tolerance);
  const auto& [next_position, next_orientation, next_velocity, next_angular_velocity, gamma, unknowns, states, chosen,
               status, iterations] = results;
  const at::IntArrayRef batch = batch_of(status);
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2);
  if (count * steps == 0) return as_tuple(std::move(results));
  const RigidInputs in = {mass,      inertia,     centers,  radii,       normals,  offsets,          gravity,
                          mu,        restitution, position, orientation, velocity, angular_velocity, drag,
                          stiffness, dissipation};
  const rigid::Law law = {formulation_named(formulation), static_cast<int>(directions), angle, sigma, beta};
  const rigid::Scene scene = scene_of(in, pairs, law, dt, bounce_threshold, stabilization);
  const std::int64_t bodies = scene.bodies, contacts = scene.contacts();
  TrajectoryReader<double> reader(batch);
  const RigidViews views(reader, in);
  const auto forces = reader.per_step(u);
  parallel_for(0, count, trajectories_per_task(steps, kRigidStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
    rigid::Simulator simulator(scene, tolerance);
    for (std::int64_t b = begin; b < end; ++b) {
      simulator.run(
          steps, views.parameters(b), views.first(b), series_of(forces, b, 6 * bodies),
          {series_of<double>(next_position, count, b, 3 * bodies),
           series_of<double>(next_orientation, count, b, 4 * bodies),
           series_of<double>(next_velocity, count, b, 3 * bodies),
           series_of<double>(next_angular_velocity, count, b, 3 * bodies),
           series_of<double>(gamma, count, b, 3 * contacts)},
          {series_of<double>(unknowns, count, b, num_unknowns), series_of<std::int8_t>(states, count, b, num_unknowns),
           series_of<std::int8_t>(chosen, count, b, contacts), series_of<std::int8_t>(status, count, b, 1),
           series_of<std::int64_t>(iterations, count, b, 1)});
    }
  });
  return as_tuple(std::move(results));
}

Tensors<17> rigid_walk_adjoint_cpu(
    const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii, const Tensor& normals,
    const Tensor& offsets, const Tensor& gravity, const Tensor& mu, const Tensor& restitution, const Tensor& position,
    const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity, const Tensor& u,
    const Tensor& drag, const Tensor& stiffness, const Tensor& dissipation, const Tensor& next_position,
    const Tensor& next_orientation, const Tensor& next_velocity, const Tensor& next_angular_velocity,
    const Tensor& gamma, const Tensor& unknowns, const Tensor& states, const Tensor& chosen, const Tensor& status,
    const Tensor& g_position, const Tensor& g_orientation, const Tensor& g_velocity, const Tensor& g_angular_velocity,
    const Tensor& g_gamma, c10::SymIntArrayRef pairs, double dt, std::optional<double> bounce_threshold,
    double stabilization, std::string_view formulation, std::int64_t directions, double angle, double sigma,
    double beta, double tolerance, std::string_view ties, std::int64_t wanted) {
  auto results =
      new_results<17>(kRigidWalkAdjoint, mass, inertia, centers, radii, normals, offsets, gravity, mu, restitution,
                      position, orientation, velocity, angular_velocity, u, drag, stiffness, dissipation, next_position,
                      next_orientation, next_velocity, next_angular_velocity, gamma, unknowns, states, chosen, status,
                      g_position, g_orientation, g_velocity, g_angular_velocity, g_gamma, pairs, dt, bounce_threshold,
                      stabilization, formulation, directions, angle, sigma, beta, tolerance, ties, wanted);
  const at::IntArrayRef batch = batch_of(results.front());
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2);
  if (count == 0) return as_tuple(std::move(results));
  const RigidInputs in = {mass,      inertia,     centers,  radii,       normals,  offsets,          gravity,
                          mu,        restitution, position, orientation, velocity, angular_velocity, drag,
                          stiffness, dissipation};
  const rigid::Law law = {formulation_named(formulation), static_cast<int>(directions), angle, sigma, beta};
  const rigid::Scene scene = scene_of(in, pairs, law, dt, bounce_threshold, stabilization);
  const std::int64_t bodies = scene.bodies, contacts = scene.contacts();
  TrajectoryReader<double> reader(batch);
  const RigidViews views(reader, in);
  const auto forces = reader.per_step(u);
  struct PathViews {
    lcs::StepsView<double> position, orientation, velocity, angular_velocity, gamma;
  };
  const PathViews path = {reader.per_step(next_position), reader.per_step(next_orientation),
                          reader.per_step(next_velocity), reader.per_step(next_angular_velocity),
                          reader.per_step(gamma)};
  const PathViews gradient = {reader.per_step(g_position), reader.per_step(g_orientation), reader.per_step(g_velocity),
                              reader.per_step(g_angular_velocity), reader.per_step(g_gamma)};
  const std::int64_t num_unknowns = unknowns.size(-1);
  const auto kept = reader.per_step(unknowns);
  const auto of_pairs = reader.per_step<std::int8_t>(states);
  const auto choices = reader.per_step<std::int8_t>(chosen);
  const auto statuses = reader.per_step<std::int8_t>(status.unsqueeze(-1));
  const auto path_of = [&](const PathViews& of, std::int64_t b) -> rigid::Path<const double> {
    return {series_of(of.position, b, 3 * bodies), series_of(of.orientation, b, 4 * bodies),
            series_of(of.velocity, b, 3 * bodies), series_of(of.angular_velocity, b, 3 * bodies),
            series_of(of.gamma, b, 3 * contacts)};
  };
  const auto target = [&](std::size_t k, std::int64_t b) {
    return (wanted >> k & 1) != 0 ? results[k].mutable_data_ptr<double>() + b * results[k].size(-1) : nullptr;
  };
  parallel_for(0, count, trajectories_per_task(steps, kRigidStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
    rigid::Adjoint adjoint(scene, tolerance, rank_tolerance(mass), ties_named(ties));
    for (std::int64_t b = begin; b < end; ++b) {
      adjoint.run(steps, views.parameters(b),
                  {views.first(b), series_of(forces, b, 6 * bodies), path_of(path, b), series_of(kept, b, num_unknowns),
                   series_of(of_pairs, b, num_unknowns), series_of(choices, b, contacts), series_of(statuses, b, 1),
                   path_of(gradient, b)},
                  {{target(0, b), target(1, b), target(2, b), target(3, b), target(4, b), target(5, b), target(6, b),
                    target(7, b), target(8, b), target(14, b), target(15, b), target(16, b)},
                   {target(9, b), target(10, b), target(11, b), target(12, b)},
                   {target(13, b), count * 6 * bodies}});
    }
  });
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_rigid_walk", TORCH_FN(rigid_walk_cpu));
  library.impl("_rigid_walk_adjoint", TORCH_FN(rigid_walk_adjoint_cpu));
}

}  // namespace
}  // namespace lcp::ops
