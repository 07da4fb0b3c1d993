#include "lcp/solve.h"

#include "ops/solve/operators.h"

namespace lcp {

SolveResult solve(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options) {
  auto [z, w, status] = ops::solve_op().call(M, q, options.sizes, options.guess, options.method, options.ties,
                                             options.kappa, options.tolerance, options.max_pivots);
  return {z, w, status};
}

}  // namespace lcp
