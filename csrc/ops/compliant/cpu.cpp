// Rollouts of bodies on compliant ground on the CPU, threads over trajectories.

#include <optional>

#include "compliant/adjoint.h"
#include "compliant/simulator.h"
#include "ops/compliant/operators.h"
#include "ops/contact/operators.h"
#include "ops/elements.h"
#include "ops/parallel.h"
#include "ops/registration.h"
#include "ops/trajectories.h"

namespace lcp::ops {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kCompliantStepsPerTask = 50;

// What the trajectories are computed from, in memory.
struct CompliantViews {
  batch::BatchView<double> parameters, first;
  lcs::StepsView<double> u;

  CompliantViews(TrajectoryReader<double>& reader, const Tensor& all_parameters, const Tensor& x, const Tensor& forces)
      : parameters(reader.per_trajectory(all_parameters, 1)),
        first(reader.per_trajectory(x, 1)),
        u(reader.per_step(forces)) {}

  compliant::Inputs at(std::int64_t b, const compliant::Body& body) const {
    return {batch::from(parameters, b, compliant::parameters_of(body.form)).data, batch::from(first, b, 6).data,
            series_of(u, b, 3)};
  }
};

Tensors<5> compliant_walk_cpu(const Tensor& parameters, const Tensor& x, const Tensor& u, std::string_view name,
                              std::int64_t contacts, double dt, double sigma, double beta,
                              std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  auto results =
      new_results<5>(kCompliantWalk, parameters, x, u, name, contacts, dt, sigma, beta, tolerance, max_iterations);
  const auto& [x_next, gamma, y, status, iterations] = results;
  const at::IntArrayRef batch = batch_of(status);
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2), rows = 3 * contacts;
  if (count * steps == 0) return as_tuple(std::move(results));
  const compliant::Body body = {form_named(name), dt, sigma, beta};
  const contact::Limits limits = {tolerance.value_or(kContactTolerance),
                                  max_iterations.value_or(contact::kDefaultMaxIterations)};
  TrajectoryReader<double> reader(batch);
  const CompliantViews views(reader, parameters, x, u);
  parallel_for(0, count, trajectories_per_task(steps, kCompliantStepsPerTask),
               [&](std::int64_t begin, std::int64_t end) {
                 compliant::Simulator simulator(body, limits);
                 for (std::int64_t b = begin; b < end; ++b) {
                   simulator.run(steps, views.at(b, body),
                                 {series_of<double>(x_next, count, b, 6), series_of<double>(gamma, count, b, rows),
                                  series_of<double>(y, count, b, rows), series_of<std::int8_t>(status, count, b, 1),
                                  series_of<std::int64_t>(iterations, count, b, 1)});
                 }
               });
  return as_tuple(std::move(results));
}

Tensors<3> compliant_walk_adjoint_cpu(const Tensor& parameters, const Tensor& x, const Tensor& u, const Tensor& x_next,
                                      const Tensor& gamma, const Tensor& y, const Tensor& status,
                                      const Tensor& g_x_next, const Tensor& g_gamma, std::string_view name, double dt,
                                      double sigma, double beta, std::int64_t wanted) {
  auto results = new_results<3>(kCompliantWalkAdjoint, parameters, x, u, x_next, gamma, y, status, g_x_next, g_gamma,
                                name, dt, sigma, beta, wanted);
  const at::IntArrayRef batch = batch_of(results.front());
  const std::int64_t count = c10::multiply_integers(batch), steps = u.size(-2), rows = y.size(-1);
  if (count == 0) return as_tuple(std::move(results));
  const compliant::Body body = {form_named(name), dt, sigma, beta};
  TrajectoryReader<double> reader(batch);
  const CompliantViews views(reader, parameters, x, u);
  const auto next = reader.per_step(x_next), impulses = reader.per_step(gamma), pulls = reader.per_step(y),
             of_next = reader.per_step(g_x_next), of_gamma = reader.per_step(g_gamma);
  const auto statuses = reader.per_step<std::int8_t>(status.unsqueeze(-1));
  const auto target = [&](std::size_t k, std::int64_t b) {
    return (wanted >> k & 1) != 0 ? results[k].mutable_data_ptr<double>() + b * results[k].size(-1) : nullptr;
  };
  parallel_for(0, count, trajectories_per_task(steps, kCompliantStepsPerTask),
               [&](std::int64_t begin, std::int64_t end) {
                 compliant::Adjoint adjoint(body);
                 for (std::int64_t b = begin; b < end; ++b) {
                   adjoint.run(steps, views.at(b, body),
                               {series_of(next, b, 6), series_of(impulses, b, rows), series_of(pulls, b, rows),
                                series_of(statuses, b, 1), series_of(of_next, b, 6), series_of(of_gamma, b, rows)},
                               {target(0, b), target(1, b), {target(2, b), count * 3}});
                 }
               });
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_compliant_walk", TORCH_FN(compliant_walk_cpu));
  library.impl("_compliant_walk_adjoint", TORCH_FN(compliant_walk_adjoint_cpu));
}

}  // namespace
}  // namespace lcp::ops
