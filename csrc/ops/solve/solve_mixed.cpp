// lcp::solve_mixed in terms of H = [A B; C M] and h = (p, q).
#include "lcp/solve_mixed.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/cat.h>

#include "ops/registration.h"
#include "ops/solve/operators.h"

namespace lcp::ops {
namespace {

// `x` with the batch dimensions `batch`.
Tensor expand(const Tensor& x, std::int64_t core_dims, const c10::SymDimVector& batch) {
  c10::SymDimVector shape = batch;
  for (const auto& size : x.sym_sizes().slice(x.dim() - core_dims, core_dims)) shape.push_back(size);
  return x.expand_symint(shape);
}

Tensors<4> solve_mixed_composite(const Tensor& A, const Tensor& B, const Tensor& C, const Tensor& M, const Tensor& p,
                                 const Tensor& q, const std::optional<Tensor>& guess, std::string_view method,
                                 std::string_view ties, double kappa, std::optional<double> tolerance,
                                 std::optional<std::int64_t> max_pivots) {
  const auto [k, n] = with_call(
      kSolveMixed, [](const Call& call) { return std::pair(call.size('k'), call.size('n')); }, A, B, C, M, p, q, guess,
      method, ties, kappa, tolerance, max_pivots);
  // The matrices keep the batch dimensions that they need, so that a matrix that all elements share is not copied.
  const auto batch_of_all = [](std::initializer_list<std::reference_wrapper<const Tensor>> tensors, int core_dims) {
    c10::SymDimVector batch;
    for (const Tensor& x : tensors) {
      batch = at::infer_size_symdimvector(batch, x.sym_sizes().slice(0, x.dim() - core_dims));
    }
    return batch;
  };
  const c10::SymDimVector matrix_batch = batch_of_all({A, B, C, M}, 2);
  const c10::SymDimVector vector_batch = batch_of_all({p, q}, 1);
  const auto row = [&](const Tensor& left, const Tensor& right) {
    return at::cat({expand(left, 2, matrix_batch), expand(right, 2, matrix_batch)}, -1);
  };
  const Tensor H = at::cat({row(A, B), row(C, M)}, -2);
  const Tensor h = at::cat({expand(p, 1, vector_batch), expand(q, 1, vector_batch)}, -1);
  const auto [v, y, status, basis] = solve_with_basis_op().call(
      H, h, k.guard_int(__FILE__, __LINE__), std::nullopt, guess, method, ties, kappa, tolerance, max_pivots, false);
  return {v.narrow_symint(-1, 0, k), v.narrow_symint(-1, k, n), y.narrow_symint(-1, k, n), status};
}

LCP_LIBRARY_IMPL(CompositeImplicitAutograd, library) { library.impl("solve_mixed", TORCH_FN(solve_mixed_composite)); }

// Without this decomposition, torch.vmap would run the operator element by element.
LCP_LIBRARY_IMPL(FuncTorchBatchedDecomposition, library) {
  library.impl("solve_mixed", TORCH_FN(solve_mixed_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {

MixedResult solve_mixed(const at::Tensor& A, const at::Tensor& B, const at::Tensor& C, const at::Tensor& M,
                        const at::Tensor& p, const at::Tensor& q, const SolveOptions& options) {
  TORCH_CHECK(!options.sizes, "sizes must be absent for solve_mixed");
  auto [x, z, w, status] = ops::solve_mixed_op().call(A, B, C, M, p, q, options.guess, options.method, options.ties,
                                                      options.kappa, options.tolerance, options.max_pivots);
  return {x, z, w, status};
}

}  // namespace lcp
