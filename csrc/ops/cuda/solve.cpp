// lcp::solve on a GPU: n <= 32 by the batch kernels. Larger problems, elements that the kernels leave, and every other
// method run on the CPU.
#include <ATen/Dispatch.h>
#include <ATen/ops/nonzero.h>

#include <limits>

#include "batch/cuda/kernels.h"
#include "lcp/status.h"
#include "ops/cuda/elements.h"
#include "ops/registration.h"
#include "ops/solve/operators.h"
#include "solver/pair_states.h"
#include "solver/settings.h"

namespace lcp::ops::cuda {
namespace {

// Whether a kernel solves this call's problems.
bool has_kernel(const Tensor& M, std::int64_t num_equations, const std::optional<Tensor>& sizes,
                const SolveFlags& flags, double tolerance, double min_tolerance) {
  const std::int64_t n = M.size(-1);
  return num_equations == 0 && !sizes && n >= 1 && n <= (flags.guess ? batch::kEnumerated : batch::cuda::kLargest) &&
         method_named(flags.method) == Method::kAuto && !flags.max_pivots && tolerance >= min_tolerance;
}

// Solves on the CPU the elements that the kernels left.
void solve_left(const Elements& M, const Elements& q, const std::optional<Elements>& guess, const SolveFlags& flags,
                const Tensors<4>& results) {
  const auto& [z, w, status, basis] = results;
  const Tensor left = at::nonzero(status.reshape({-1}) == batch::kLeftOver).reshape({-1});
  const auto [z_left, w_left, status_left, basis_left] = solve_with_basis_op().call(
      M.on_cpu(left), q.on_cpu(left), 0, std::nullopt, guess ? std::optional(guess->on_cpu(left)) : std::nullopt,
      flags.method, flags.ties, flags.kappa, flags.tolerance, flags.max_pivots, basis.defined());
  const auto count = left.numel();
  put_back(z_left.expand({count, -1}), left, 1, z);
  put_back(w_left.expand({count, -1}), left, 1, w);
  put_back(status_left.expand({count}), left, 0, status);
  if (basis.defined()) put_back(basis_left.expand({count, -1}), left, 1, basis);
}

// Marks the elements that the kernels left as not found, since nothing may wait for the GPU in a graph.
void mark_left(const Tensors<4>& results) {
  const auto& [z, w, status, basis] = results;
  const Tensor left = status == batch::kLeftOver;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  z.masked_fill_(left.unsqueeze(-1), nan);
  w.masked_fill_(left.unsqueeze(-1), nan);
  status.masked_fill_(left, static_cast<int>(Status::kNotFound));
  if (basis.defined()) basis.masked_fill_(left.unsqueeze(-1), solver::kUnsolved);
}

// The results are contiguous; the basis is not defined where it is not asked for.
template <class T>
void solve_by_kernel(const Tensor& M, const Tensor& q, const SolveFlags& flags, double tolerance,
                     const Tensors<4>& results) {
  const auto& [z, w, status, basis] = results;
  const Elements all_M(M, status.sizes(), 2), all_q(q, status.sizes(), 1);
  std::optional<Elements> guess;
  if (flags.guess) guess.emplace(*flags.guess, status.sizes(), 1);
  const LeftCount left(status);
  batch::cuda::solve<T>(static_cast<int>(M.size(-1)), status.numel(), all_M.view<T>(), all_q.view<T>(),
                        guess ? guess->view<T>() : batch::BatchView<T>{nullptr, true}, tolerance,
                        {z.mutable_data_ptr<T>(), w.mutable_data_ptr<T>(), status.mutable_data_ptr<std::int8_t>(),
                         basis.defined() ? basis.mutable_data_ptr<std::int8_t>() : nullptr},
                        is_captured() ? nullptr : left.data(), c10::cuda::getCurrentCUDAStream());
  if (is_captured()) {
    mark_left(results);
  } else if (left.any()) {
    solve_left(all_M, all_q, guess, flags, results);
  }
}

Tensors<4> solve(const Tensor& M, const Tensor& q, std::int64_t num_equations, const std::optional<Tensor>& sizes,
                 const SolveFlags& flags, bool needs_basis, Tensors<4> results) {
  const c10::cuda::CUDAGuard guard(M.device());
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::solve", [&] {
    const double tolerance = flags.tolerance.value_or(solver::default_tolerance(std::is_same_v<scalar_t, float>));
    if (has_kernel(M, num_equations, sizes, flags, tolerance, batch::cuda::min_tolerance<scalar_t>())) {
      if (std::get<2>(results).numel() > 0) solve_by_kernel<scalar_t>(M, q, flags, tolerance, results);
      return;
    }
    const auto [z, w, status, basis] =
        solve_with_basis_op().call(M.cpu(), q.cpu(), num_equations, on_cpu(sizes), on_cpu(flags.guess), flags.method,
                                   flags.ties, flags.kappa, flags.tolerance, flags.max_pivots, needs_basis);
    std::get<0>(results).copy_(z);
    std::get<1>(results).copy_(w);
    std::get<2>(results).copy_(status);
    if (needs_basis) std::get<3>(results).copy_(basis);
  });
  return results;
}

Tensors<3> solve_cuda(const Tensor& M, const Tensor& q, const std::optional<Tensor>& sizes,
                      const std::optional<Tensor>& guess, std::string_view method, std::string_view ties, double kappa,
                      std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  auto [z, w, status] =
      as_tuple(new_results<3>(kSolve, M, q, sizes, guess, method, ties, kappa, tolerance, max_pivots));
  solve(M, q, 0, sizes, {guess, method, ties, kappa, tolerance, max_pivots}, false, {z, w, status, Tensor()});
  return {z, w, status};
}

Tensors<4> solve_with_basis_cuda(const Tensor& M, const Tensor& q, std::int64_t num_equations,
                                 const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                                 std::string_view method, std::string_view ties, double kappa,
                                 std::optional<double> tolerance, std::optional<std::int64_t> max_pivots,
                                 bool needs_basis) {
  const auto [z, w, status, basis] = as_tuple(new_results<4>(kSolveWithBasis, M, q, num_equations, sizes, guess, method,
                                                             ties, kappa, tolerance, max_pivots, needs_basis));
  if (!needs_basis) basis.fill_(solver::kUnsolved);
  solve(M, q, num_equations, sizes, {guess, method, ties, kappa, tolerance, max_pivots}, needs_basis,
        {z, w, status, needs_basis ? basis : Tensor()});
  return {z, w, status, basis};
}

LCP_LIBRARY_IMPL(CUDA, library) {
  library.impl("solve", TORCH_FN(solve_cuda));
  library.impl("_solve_with_basis", TORCH_FN(solve_with_basis_cuda));
}

}  // namespace
}  // namespace lcp::ops::cuda
