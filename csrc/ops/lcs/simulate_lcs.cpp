// lcp::simulate_lcs in terms of lcp::_rollout.
#include "lcp/simulate_lcs.h"

#include "ops/lcs/operators.h"
#include "ops/registration.h"
#include "ops/rollout/rollout.h"

namespace lcp::ops {
namespace {

Tensors<5> simulate_lcs_composite(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                                  const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                                  const Tensor& u, OptionalCone cone, std::string_view ties,
                                  std::optional<double> tolerance, const std::optional<Tensor>& K,
                                  const std::optional<Tensor>& reference) {
  StepWriter step("lcs");
  step.add("ties", ties).add("tolerance", tolerance);
  if (cone && !cone->empty()) step.add("cone", *cone);
  TORCH_CHECK(K.has_value() == reference.has_value(), "K and reference must both be given, or neither");
  std::optional<Feedback<Tensor>> feedback;
  if (K) feedback = {*K, *reference};
  const std::vector<Tensor> all = roll_out(step.text(), {A, B, D, G, d, E, H, M, q, x, u}, feedback_of(feedback, x, u));
  return {all[0], all[1], all[2], all[4], all[3]};
}

LCP_LIBRARY_IMPL(CompositeImplicitAutograd, library) { library.impl("simulate_lcs", TORCH_FN(simulate_lcs_composite)); }

// Without this decomposition, torch.vmap would run the operator element by element.
LCP_LIBRARY_IMPL(FuncTorchBatchedDecomposition, library) {
  library.impl("simulate_lcs", TORCH_FN(simulate_lcs_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {

LcsRollout simulate_lcs(const LinearComplementaritySystem& system, const at::Tensor& x, const at::Tensor& u,
                        const SimulateLcsOptions& options, const std::optional<Feedback<at::Tensor>>& feedback) {
  const auto& [A, B, D, G, d, E, H, M, q, cone] = system;
  std::optional<at::Tensor> K, reference;
  if (feedback) K = feedback->K, reference = feedback->reference;
  auto [x_next, z, w, status, residual] = ops::simulate_lcs_op().call(
      A, B, D, G, d, E, H, M, q, x, u, at::IntArrayRef(cone), options.ties, options.tolerance, K, reference);
  return {x_next, z, w, status, residual};
}

}  // namespace lcp
