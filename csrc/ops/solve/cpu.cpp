// lcp::solve on the CPU: small problems by the batch kernels, all others by the ladder, threads over the batch.
#include <ATen/Dispatch.h>

#include <array>
#include <type_traits>

#include "batch/batch_solver.h"
#include "ops/elements.h"
#include "ops/registration.h"
#include "ops/solve/operators.h"
#include "solver/mixed.h"
#include "solver/pair_states.h"

namespace lcp::ops {
namespace {

template <class T>
solver::Settings settings_of(const SolveFlags& flags) {
  return {.method = method_named(flags.method).value(),
          .tolerance = flags.tolerance.value_or(solver::default_tolerance(std::is_same_v<T, float>)),
          .max_pivots = flags.max_pivots,
          .single_precision = std::is_same_v<T, float>};
}

// Here and below, basis is nullptr where it is not asked for.
void solve_lcp(const Tensor& M, const Tensor& q, const SolveFlags& flags, const Tensor& z, const Tensor& w,
               const Tensor& status, const Tensor* basis) {
  const auto n = M.size(-1);
  const std::optional<Tensor>& guess = flags.guess;
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::solve", [&] {
    const auto settings = settings_of<scalar_t>(flags);
    const batch::Solutions<scalar_t> all = {z.mutable_data_ptr<scalar_t>(), w.mutable_data_ptr<scalar_t>(),
                                            status.mutable_data_ptr<std::int8_t>(),
                                            basis != nullptr ? basis->mutable_data_ptr<std::int8_t>() : nullptr};
    const bool has_kernel = batch::BatchSolver<scalar_t>::has_kernel(static_cast<int>(n), settings, guess.has_value());
    for_each_run<scalar_t>(status.sizes(), {{M, 2}, {q, 1, true}, {guess ? *guess : q, 1}}, nullptr, n,
                           has_kernel ? kernel_grain(n) : grain(n), [&] {
                             return [&, solver = batch::BatchSolver<scalar_t>(static_cast<int>(n), settings)](
                                        const auto& views, std::int64_t b, std::int64_t count) mutable {
                               const auto proposal = guess ? views[2] : batch::BatchView<scalar_t>{nullptr, true};
                               solver.solve(count, views[0], views[1], proposal,
                                            {all.z + b * n, all.w + b * n, all.status + b,
                                             all.states == nullptr ? nullptr : all.states + b * n});
                             };
                           });
  });
}

// Solves problems whose first num_equations rows are equations.
void solve_mixed_lcp(const Tensor& M, const Tensor& q, std::int64_t num_equations, const SolveFlags& flags,
                     const Tensor& z, const Tensor& w, const Tensor& status, const Tensor* basis) {
  const auto n = M.size(-1);
  const std::optional<Tensor>& guess = flags.guess;
  auto* const to_status = status.mutable_data_ptr<std::int8_t>();
  auto* const to_basis = basis != nullptr ? basis->mutable_data_ptr<std::int8_t>() : nullptr;
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_solve_with_basis", [&] {
    const auto settings = settings_of<scalar_t>(flags);
    for_each_element<scalar_t>(status.sizes(), {{M, 2}, {q, 1}, {guess ? *guess : q, 1}}, n, [&] {
      const auto equations = static_cast<int>(num_equations);
      return [&, solver = solver::Mixed(equations, static_cast<int>(n) - equations, settings),
              pair_states = solver::PairStates(static_cast<int>(n), equations, settings.single_precision),
              to_z = Writer<scalar_t>(z), to_w = Writer<scalar_t>(w)](const double* const* x, std::int64_t b) mutable {
        to_status[b] =
            static_cast<std::int8_t>(solver.solve(x[0], x[1], guess ? x[2] : nullptr, to_z.data(), to_w.data()));
        if (to_basis != nullptr) pair_states.find(x[0], x[1], to_z.data(), to_w.data(), to_basis + b * n);
        to_z.store(b);
        to_w.store(b);
      };
    });
  });
}

Tensors<3> solve_cpu(const Tensor& M, const Tensor& q, const std::optional<Tensor>& sizes,
                     const std::optional<Tensor>& guess, std::string_view method, std::string_view ties, double kappa,
                     std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  if (sizes) {
    return for_each_size(kSolve, "n", solve_cpu, M, q, sizes, guess, method, ties, kappa, tolerance, max_pivots);
  }
  auto results = new_results<3>(kSolve, M, q, sizes, guess, method, ties, kappa, tolerance, max_pivots);
  const auto& [z, w, status] = results;
  solve_lcp(M, q, {guess, method, ties, kappa, tolerance, max_pivots}, z, w, status, nullptr);
  return as_tuple(std::move(results));
}

Tensors<4> solve_with_basis_cpu(const Tensor& M, const Tensor& q, std::int64_t num_equations,
                                const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                                std::string_view method, std::string_view ties, double kappa,
                                std::optional<double> tolerance, std::optional<std::int64_t> max_pivots,
                                bool needs_basis) {
  if (sizes) {
    return for_each_size(kSolveWithBasis, "np", solve_with_basis_cpu, M, q, num_equations, sizes, guess, method, ties,
                         kappa, tolerance, max_pivots, needs_basis);
  }
  auto results = new_results<4>(kSolveWithBasis, M, q, num_equations, sizes, guess, method, ties, kappa, tolerance,
                                max_pivots, needs_basis);
  const SolveFlags flags = {guess, method, ties, kappa, tolerance, max_pivots};
  const auto& [z, w, status, basis] = results;
  if (!needs_basis) basis.fill_(solver::kUnsolved);
  const Tensor* const to_basis = needs_basis ? &basis : nullptr;
  if (num_equations == 0) {
    solve_lcp(M, q, flags, z, w, status, to_basis);
  } else {
    solve_mixed_lcp(M, q, num_equations, flags, z, w, status, to_basis);
  }
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("solve", TORCH_FN(solve_cpu));
  library.impl("_solve_with_basis", TORCH_FN(solve_with_basis_cpu));
}

}  // namespace
}  // namespace lcp::ops
