// Reverse and forward mode of a solve, as PyTorch's own derivatives are written: a Node, not an autograd::Function, so
// that forward mode, functorch and double differentiation compose.
#include <ATen/TensorOperators.h>

#include "ops/active_set/derivative.h"
#include "ops/active_set/operators.h"
#include "ops/derivative.h"
#include "ops/path/operators.h"
#include "ops/registration.h"
#include "ops/solve/operators.h"

namespace lcp::ops {
namespace {

// Gives the outputs of lcp::_solve_with_basis their derivative.
void differentiate(const char* name, const Tensor& M, const Tensor& q, std::int64_t num_equations,
                   const std::optional<Tensor>& sizes, std::string_view ties, double kappa, Tensor& z, Tensor& w,
                   const Tensor& basis) {
  if (kappa > 0) {
    const auto [z_kappa, w_kappa] = path_point_op().call(M, q, z, num_equations, kappa, sizes);
    carry(z, z_kappa);
    carry(w, w_kappa);
  } else if (ties == "midpoint") {
    const auto [z_inactive, w_inactive] = piece_op().call(M, q, z, w, basis, false, sizes);
    const auto [z_active, w_active] = piece_op().call(M, q, z, w, basis, true, sizes);
    const auto middle = [](const Tensor& a, const Tensor& b) { return a + 0.5 * (b - a); };  // a where a = b, exactly
    z = middle(z_inactive, z_active);
    w = middle(w_inactive, w_active);
  } else {
    set_derivative(name, M, q, z, w, basis, ties == "active", sizes);
  }
}

Tensors<3> solve_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q,
                          const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                          std::string_view method, std::string_view ties, double kappa, std::optional<double> tolerance,
                          std::optional<std::int64_t> max_pivots) {
  check_layout("M", M);
  check_layout("q", q);
  if (sizes) check_layout("sizes", *sizes);
  if (guess) check_layout("guess", *guess);
  if (!needs_derivative(M, q)) {
    return below_autograd(solve_op(), keys, M, q, sizes, guess, method, ties, kappa, tolerance, max_pivots);
  }
  auto [z, w, status, basis] = below_autograd(solve_with_basis_op(), keys, M, q, 0, sizes, guess, method, ties, kappa,
                                              tolerance, max_pivots, true);
  differentiate("LcpSolveBackward", M, q, 0, sizes, ties, kappa, z, w, basis);
  return {z, w, status};
}

Tensors<4> solve_with_basis_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q,
                                     std::int64_t num_equations, const std::optional<Tensor>& sizes,
                                     const std::optional<Tensor>& guess, std::string_view method, std::string_view ties,
                                     double kappa, std::optional<double> tolerance,
                                     std::optional<std::int64_t> max_pivots, bool needs_basis) {
  const bool differentiated = needs_derivative(M, q);
  auto [z, w, status, basis] = below_autograd(solve_with_basis_op(), keys, M, q, num_equations, sizes, guess, method,
                                              ties, kappa, tolerance, max_pivots, needs_basis || differentiated);
  if (differentiated) differentiate("LcpSolveMixedBackward", M, q, num_equations, sizes, ties, kappa, z, w, basis);
  return {z, w, status, basis};
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("solve", TORCH_FN(solve_autograd));
  library.impl("_solve_with_basis", TORCH_FN(solve_with_basis_autograd));
}

}  // namespace
}  // namespace lcp::ops
