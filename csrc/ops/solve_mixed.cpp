// lcp::solve_mixed in terms of H = [A B; C M] and h = (p, q).
#include "lcp/solve_mixed.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/narrow.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "ops/schema.h"

namespace lcp::ops {
namespace {

struct Block {
  const char* name;
  const Tensor& tensor;
  const char* shape;
};

void check_block(const Block& block, const Tensor& A, c10::SymIntArrayRef core) {
  const Tensor& x = block.tensor;
  check_layout(block.name, x);
  const auto dims = static_cast<std::int64_t>(core.size());
  TORCH_CHECK(x.dim() >= dims && x.sym_sizes().slice(x.dim() - dims, dims) == core, block.name, " must be ",
              block.shape, " = [..., ", core, "] with A's k and M's n; got ", x.sym_sizes());
  TORCH_CHECK(x.scalar_type() == A.scalar_type(), block.name, " must have A's dtype, ", A.scalar_type(), "; got ",
              x.scalar_type());
  TORCH_CHECK(x.device() == A.device(), block.name, " must be on A's device, ", A.device(), "; got ", x.device());
}

// `x` with the batch dimensions `batch`.
Tensor expand(const Tensor& x, std::int64_t core_dims, const c10::SymDimVector& batch) {
  c10::SymDimVector shape = batch;
  for (const auto& size : x.sym_sizes().slice(x.dim() - core_dims, core_dims)) shape.push_back(size);
  return x.expand_symint(shape);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> solve_mixed_composite(const Tensor& A, const Tensor& B, const Tensor& C,
                                                                 const Tensor& M, const Tensor& p, const Tensor& q,
                                                                 const std::optional<Tensor>& guess,
                                                                 std::string_view method, std::string_view ties,
                                                                 double kappa, std::optional<double> tolerance,
                                                                 std::optional<std::int64_t> max_pivots) {
  TORCH_CHECK(A.dim() >= 2 && A.sym_size(-1) == A.sym_size(-2), "A must be [..., k, k]; got ", A.sym_sizes());
  TORCH_CHECK(M.dim() >= 2 && M.sym_size(-1) == M.sym_size(-2), "M must be [..., n, n]; got ", M.sym_sizes());
  TORCH_CHECK(A.scalar_type() == at::kDouble || A.scalar_type() == at::kFloat, "A must be float32 or float64; got ",
              A.scalar_type());
  check_layout("A", A);
  const c10::SymInt k = A.sym_size(-1);
  const c10::SymInt n = M.sym_size(-1);
  check_block({"B", B, "[..., k, n]"}, A, {k, n});
  check_block({"C", C, "[..., n, k]"}, A, {n, k});
  check_block({"M", M, "[..., n, n]"}, A, {n, n});
  check_block({"p", p, "[..., k]"}, A, {k});
  check_block({"q", q, "[..., n]"}, A, {n});
  if (guess) check_block({"guess", *guess, "[..., n]"}, A, {n});

  c10::SymDimVector matrix_batch, vector_batch;
  for (const Named& x : {Named{"A", A}, {"B", B}, {"C", C}, {"M", M}}) {
    matrix_batch = broadcast(matrix_batch, {"A", A}, x, 2);
  }
  c10::SymDimVector batch = matrix_batch;
  for (const Named& x : {Named{"p", p}, {"q", q}}) {
    vector_batch = broadcast(vector_batch, {"p", p}, x, 1);
    batch = broadcast(batch, {"A", A}, x, 1);
  }
  if (guess) broadcast(batch, {"A", A}, {"guess", *guess}, 1);
  const auto row = [&](const Tensor& left, const Tensor& right) {
    return at::cat({expand(left, 2, matrix_batch), expand(right, 2, matrix_batch)}, -1);
  };
  const Tensor H = at::cat({row(A, B), row(C, M)}, -2);
  const Tensor h = at::cat({expand(p, 1, vector_batch), expand(q, 1, vector_batch)}, -1);
  const std::int64_t num_equations = k.guard_int(__FILE__, __LINE__);
  const auto [v, y, status, basis] =
      solve_blocks_op().call(H, h, num_equations, guess, method, ties, kappa, tolerance, max_pivots);
  return {v.narrow_symint(-1, 0, k), v.narrow_symint(-1, k, n), y.narrow_symint(-1, k, n), status};
}

TORCH_LIBRARY_IMPL(lcp, CompositeImplicitAutograd, library) {
  library.impl("solve_mixed", TORCH_FN(solve_mixed_composite));
}

// torch.vmap would else run it element by element.
TORCH_LIBRARY_IMPL(lcp, FuncTorchBatchedDecomposition, library) {
  library.impl("solve_mixed", TORCH_FN(solve_mixed_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {

MixedResult solve_mixed(const at::Tensor& A, const at::Tensor& B, const at::Tensor& C, const at::Tensor& M,
                        const at::Tensor& p, const at::Tensor& q, const SolveOptions& options) {
  auto [x, z, w, status] = ops::solve_mixed_op().call(A, B, C, M, p, q, options.guess, options.method, options.ties,
                                                      options.kappa, options.tolerance, options.max_pivots);
  return {x, z, w, status};
}

}  // namespace lcp
