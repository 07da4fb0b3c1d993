#include "lcp/simulate_lcs.h"

#include <vector>

#include "ops/lcs/operators.h"

namespace lcp {

LcsRollout simulate_lcs(const LinearComplementaritySystem& system, const at::Tensor& x, const at::Tensor& u,
                        const SimulateLcsOptions& options) {
  const auto& [A, B, D, G, d, E, H, M, q, contacts] = system;
  const std::vector<c10::SymInt> cone(contacts.begin(), contacts.end());
  auto [x_next, z, w, status, residual] = ops::simulate_lcs_op().call(
      A, B, D, G, d, E, H, M, q, x, u, c10::SymIntArrayRef(cone), options.ties, options.tolerance);
  return {x_next, z, w, status, residual};
}

}  // namespace lcp
