// Rollouts of the systems of csrc/systems on the CPU, threads over trajectories.
#include <ATen/Dispatch.h>

#include <algorithm>
#include <optional>

#include "lcs/blocks.h"
#include "ops/elements.h"
#include "ops/parallel.h"
#include "ops/registration.h"
#include "ops/systems/operators.h"
#include "ops/trajectories.h"
#include "systems/adjoint.h"
#include "systems/simulator.h"
#include "systems/tangents.h"

namespace lcp::ops {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kSystemStepsPerTask = 2000;

template <class T>
systems::Start<T> start_of(TrajectoryReader<T>& reader, const Tensor& parameters, const Tensor& D, const Tensor& x,
                           const Tensor& u) {
  return {reader.per_trajectory(parameters, 1), reader.per_trajectory(D, 2), reader.per_trajectory(x, 1),
          reader.per_step(u)};
}

Tensors<6> system_walk_cpu(const Tensor& parameters, const Tensor& D, const Tensor& x, const Tensor& u,
                           std::string_view name, std::optional<double> tolerance, bool with_basis) {
  auto results = new_results<6>(kSystemWalk, parameters, D, x, u, name, tolerance, with_basis);
  const auto& [x_next, z, w, residual, status, basis] = results;
  const at::IntArrayRef batch = batch_of(status);
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2);
  if (count * steps == 0) return as_tuple(std::move(results));
  const systems::System& system = *systems::find_system(name);
  const auto pairs = static_cast<int>(D.size(-1));
  AT_DISPATCH_FLOATING_TYPES(parameters.scalar_type(), "lcp::_system_walk", [&] {
    constexpr bool single = std::is_same_v<scalar_t, float>;
    const solver::Settings settings = {.method = Method::kAuto,
                                       .tolerance = tolerance.value_or(solver::default_tolerance(single)),
                                       .max_pivots = {},
                                       .single_precision = single};
    TrajectoryReader<scalar_t> reader(batch);
    const auto start = start_of(reader, parameters, D, x, u);
    const lcs::Path<scalar_t> path = {x_next.mutable_data_ptr<scalar_t>(),
                                      z.mutable_data_ptr<scalar_t>(),
                                      w.mutable_data_ptr<scalar_t>(),
                                      residual.mutable_data_ptr<scalar_t>(),
                                      status.mutable_data_ptr<std::int8_t>(),
                                      with_basis ? basis.mutable_data_ptr<std::int8_t>() : nullptr,
                                      count};
    const lcs::Size size = {system.states, system.inputs, pairs};
    parallel_for(0, count, trajectories_per_task(steps, kSystemStepsPerTask),
                 [&](std::int64_t begin, std::int64_t end) {
                   systems::Simulator<scalar_t> simulator(system, pairs, settings);
                   simulator.run(end - begin, steps, start.from(begin, system, pairs), lcs::from(path, begin, size));
                 });
  });
  return as_tuple(std::move(results));
}

Tensors<3> system_walk_adjoint_cpu(const Tensor& parameters, const Tensor& D, const Tensor& x, const Tensor& u,
                                   const Tensor& x_next, const Tensor& z, const Tensor& w, const Tensor& status,
                                   const Tensor& basis, const Tensor& g_x_next, const Tensor& g_z,
                                   std::string_view name, std::string_view ties, std::int64_t wanted) {
  auto results = new_results<3>(kSystemWalkAdjoint, parameters, D, x, u, x_next, z, w, status, basis, g_x_next, g_z,
                                name, ties, wanted);
  const at::IntArrayRef batch = batch_of(results.front());
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2);
  if (count == 0) return as_tuple(std::move(results));
  const systems::System& system = *systems::find_system(name);
  const auto pairs = static_cast<int>(D.size(-1));
  AT_DISPATCH_FLOATING_TYPES(parameters.scalar_type(), "lcp::_system_walk_adjoint", [&] {
    TrajectoryReader<scalar_t> reader(batch);
    const auto start = start_of(reader, parameters, D, x, u);
    const auto next = reader.per_step(x_next), impulses = reader.per_step(z), slacks = reader.per_step(w);
    const auto statuses = reader.template per_step<std::int8_t>(status.unsqueeze(-1));
    const auto states = reader.template per_step<std::int8_t>(basis, true);
    const auto of_next = reader.per_step(g_x_next), of_z = reader.per_step(g_z);
    const auto target = [&](int k, std::int64_t numbers) {
      return (wanted >> k & 1) != 0 ? results[k].mutable_data_ptr<scalar_t>() + numbers : nullptr;
    };
    parallel_for(0, count, trajectories_per_task(steps, kSystemStepsPerTask),
                 [&](std::int64_t begin, std::int64_t end) {
                   using lcs::from;
                   systems::Adjoint<scalar_t> adjoint(system, pairs, ties_named(ties));
                   adjoint.run(end - begin, steps, start.from(begin, system, pairs),
                               {from(next, begin, system.states), from(impulses, begin, pairs),
                                from(slacks, begin, pairs), from(statuses, begin, 1), from(states, begin, pairs),
                                from(of_next, begin, system.states), from(of_z, begin, pairs)},
                               {target(0, begin * system.parameters), target(1, begin * system.states),
                                target(2, begin * system.inputs), count});
                 });
  });
  return as_tuple(std::move(results));
}

Tensors<2> system_walk_tangent_cpu(const Tensor& parameters, const Tensor& D, const Tensor& x, const Tensor& u,
                                   const Tensor& x_next, const Tensor& z, const Tensor& w, const Tensor& status,
                                   const Tensor& basis, const Tensor& d_parameters, const Tensor& d_x,
                                   const Tensor& d_u, std::string_view name, std::string_view ties) {
  auto results = new_results<2>(kSystemWalkTangent, parameters, D, x, u, x_next, z, w, status, basis, d_parameters, d_x,
                                d_u, name, ties);
  const Tensor& d_x_next = results.front();
  const at::IntArrayRef batch = d_x_next.sizes().slice(0, d_x_next.dim() - 2);
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2);
  if (count * steps == 0) return as_tuple(std::move(results));
  const systems::System& system = *systems::find_system(name);
  const auto pairs = static_cast<int>(D.size(-1));
  AT_DISPATCH_FLOATING_TYPES(parameters.scalar_type(), "lcp::_system_walk_tangent", [&] {
    TrajectoryReader<scalar_t> reader(batch);
    const auto start = start_of(reader, parameters, D, x, u), change = start_of(reader, d_parameters, D, d_x, d_u);
    const auto next = reader.per_step(x_next), impulses = reader.per_step(z), slacks = reader.per_step(w);
    const auto statuses = reader.template per_step<std::int8_t>(status.unsqueeze(-1));
    const auto states = reader.template per_step<std::int8_t>(basis, true);
    auto* const to_x = results[0].mutable_data_ptr<scalar_t>();
    auto* const to_z = results[1].mutable_data_ptr<scalar_t>();
    parallel_for(
        0, count, trajectories_per_task(steps, kSystemStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
          using lcs::from;
          systems::Tangents<scalar_t> tangents(system, pairs, ties_named(ties));
          tangents.run(end - begin, steps, start.from(begin, system, pairs),
                       {from(next, begin, system.states), from(impulses, begin, pairs), from(slacks, begin, pairs),
                        from(statuses, begin, 1), from(states, begin, pairs)},
                       change.from(begin, system, pairs), {to_x + begin * system.states, to_z + begin * pairs, count});
        });
  });
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_system_walk", TORCH_FN(system_walk_cpu));
  library.impl("_system_walk_adjoint", TORCH_FN(system_walk_adjoint_cpu));
  library.impl("_system_walk_tangent", TORCH_FN(system_walk_tangent_cpu));
}

}  // namespace
}  // namespace lcp::ops
