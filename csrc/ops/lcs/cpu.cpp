// Rollouts of linear complementarity systems on the CPU, threads over trajectories.
#include <ATen/Dispatch.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lcs/adjoint.h"
#include "lcs/blocks.h"
#include "lcs/simulator.h"
#include "ops/lcs/operators.h"
#include "ops/parallel.h"
#include "ops/registration.h"
#include "ops/trajectories.h"

namespace lcp::ops {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 2000;

// The system of the tensors A, B, D, G, E, H, M; d and q are absent in a walk backward.
template <class T>
lcs::System<T> system_of(TrajectoryReader<T>& arguments, const Tensor& A, const Tensor& B, const Tensor& D,
                         const Tensor& G, const Tensor* d, const Tensor& E, const Tensor& H, const Tensor& M,
                         const Tensor* q) {
  const auto vector = [&](const Tensor* x) {
    return x == nullptr ? batch::BatchView<T>{nullptr, true} : arguments.per_trajectory(*x, 1);
  };
  return {arguments.per_trajectory(A, 2),
          arguments.per_trajectory(B, 2),
          arguments.per_trajectory(D, 2),
          arguments.per_trajectory(G, 2),
          vector(d),
          arguments.per_trajectory(E, 2),
          arguments.per_trajectory(H, 2),
          arguments.per_trajectory(M, 2),
          vector(q)};
}

lcs::Size size_of(const Tensor& B, const Tensor& D) {
  return {static_cast<int>(B.size(-2)), static_cast<int>(B.size(-1)), static_cast<int>(D.size(-1))};
}

lcs::Cone cone_of(c10::SymIntArrayRef symbolic) {
  const auto cone = c10::asIntArrayRefSlow(symbolic, __FILE__, __LINE__);
  return lcs::Cone(cone.begin(), cone.end());
}

// basis is nullptr where it is not wanted. Here and below all results are [..., T, ...], the steps first in memory.
void simulate(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d, const Tensor& E,
              const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x, const Tensor& u,
              c10::SymIntArrayRef cone, std::optional<double> tolerance, const Tensor& x_next, const Tensor& z,
              const Tensor& w, const Tensor& status, const Tensor& residual, const Tensor* basis) {
  const at::IntArrayRef batch = status.sizes().slice(0, status.dim() - 1);
  const std::int64_t count = c10::multiply_integers(batch);
  const std::int64_t steps = u.size(-2);
  if (count * steps == 0) return;
  const lcs::Size size = size_of(B, D);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::simulate_lcs", [&] {
    constexpr bool single = std::is_same_v<scalar_t, float>;
    const solver::Settings settings = {.method = Method::kAuto,
                                       .tolerance = tolerance.value_or(solver::default_tolerance(single)),
                                       .max_pivots = {},
                                       .single_precision = single};
    TrajectoryReader<scalar_t> arguments(batch);
    const auto system = system_of(arguments, A, B, D, G, &d, E, H, M, &q);
    const auto first = arguments.per_trajectory(x, 1);
    const auto inputs = arguments.per_step(u);
    const lcs::Path<scalar_t> path = {x_next.mutable_data_ptr<scalar_t>(),
                                      z.mutable_data_ptr<scalar_t>(),
                                      w.mutable_data_ptr<scalar_t>(),
                                      residual.mutable_data_ptr<scalar_t>(),
                                      status.mutable_data_ptr<std::int8_t>(),
                                      basis == nullptr ? nullptr : basis->mutable_data_ptr<std::int8_t>(),
                                      count};
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      lcs::Simulator<scalar_t> simulator(size, cone_of(cone), settings);
      simulator.run(end - begin, steps, lcs::from(system, begin, size), batch::from(first, begin, size.k),
                    lcs::from(inputs, begin, size.m), lcs::from(path, begin, size));
    });
  });
}

Tensors<5> simulate_lcs_cpu(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                            const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                            const Tensor& u, OptionalCone cone, std::string_view ties,
                            std::optional<double> tolerance) {
  auto results = new_results<5>(kSimulateLcs, A, B, D, G, d, E, H, M, q, x, u, cone, ties, tolerance);
  const auto& [x_next, z, w, status, residual] = results;
  simulate(A, B, D, G, d, E, H, M, q, x, u, pairs_of(cone), tolerance, x_next, z, w, status, residual, nullptr);
  return as_tuple(std::move(results));
}

Tensors<6> simulate_lcs_with_basis_cpu(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G,
                                       const Tensor& d, const Tensor& E, const Tensor& H, const Tensor& M,
                                       const Tensor& q, const Tensor& x, const Tensor& u, OptionalCone cone,
                                       std::string_view ties, std::optional<double> tolerance) {
  auto results = new_results<6>(kSimulateLcsWithBasis, A, B, D, G, d, E, H, M, q, x, u, cone, ties, tolerance);
  const auto& [x_next, z, w, status, residual, basis] = results;
  simulate(A, B, D, G, d, E, H, M, q, x, u, pairs_of(cone), tolerance, x_next, z, w, status, residual, &basis);
  return as_tuple(std::move(results));
}

Tensors<11> simulate_lcs_adjoint_cpu(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G,
                                     const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& x,
                                     const Tensor& u, const Tensor& x_next, const Tensor& z, const Tensor& w,
                                     const Tensor& basis, const Tensor& g_x_next, const Tensor& g_z, const Tensor& g_w,
                                     c10::SymIntArrayRef cone, std::string_view ties, std::int64_t wanted) {
  auto results = new_results<11>(kSimulateLcsAdjoint, A, B, D, G, E, H, M, x, u, x_next, z, w, basis, g_x_next, g_z,
                                 g_w, cone, ties, wanted);
  const Tensor& g_x = results[9];
  const at::IntArrayRef batch = g_x.sizes().slice(0, g_x.dim() - 1);
  const std::int64_t count = c10::multiply_integers(batch);
  const std::int64_t steps = u.size(-2);
  if (count == 0) return as_tuple(std::move(results));
  const lcs::Size size = size_of(B, D);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_simulate_lcs_adjoint", [&] {
    const auto target = [&](int k) {
      return (wanted >> k & 1) != 0 ? results[k].mutable_data_ptr<scalar_t>() : nullptr;
    };
    const lcs::Gradients<scalar_t> gradients = {target(0), target(1), target(2), target(3), target(4),  target(5),
                                                target(6), target(7), target(8), target(9), target(10), count};
    TrajectoryReader<scalar_t> arguments(batch);
    const auto system = system_of(arguments, A, B, D, G, nullptr, E, H, M, nullptr);
    const lcs::WalkedPath<scalar_t> path = {
        arguments.per_trajectory(x, 1), arguments.per_step(u),   arguments.per_step(x_next),
        arguments.per_step(z),          arguments.per_step(w),   arguments.template per_step<std::int8_t>(basis, true),
        arguments.per_step(g_x_next),   arguments.per_step(g_z), arguments.per_step(g_w)};
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      lcs::Adjoint<scalar_t> adjoint(size, cone_of(cone), ties_named(ties));
      adjoint.run(end - begin, steps, lcs::from(system, begin, size), lcs::from(path, begin, size),
                  lcs::from(gradients, begin, size));
    });
  });
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("simulate_lcs", TORCH_FN(simulate_lcs_cpu));
  library.impl("_simulate_lcs_with_basis", TORCH_FN(simulate_lcs_with_basis_cpu));
  library.impl("_simulate_lcs_adjoint", TORCH_FN(simulate_lcs_adjoint_cpu));
}

}  // namespace
}  // namespace lcp::ops
