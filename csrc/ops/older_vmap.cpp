// The older vmap of PyTorch, which is_grads_batched and torch.autograd.functional still call. Its header cannot be
// included beside the header of torch.vmap.
#include <ATen/LegacyBatchedTensorImpl.h>

#include <numeric>

#include "ops/map.h"

namespace lcp::ops {
namespace {

// Moves the first dimension of x before all others in memory and keeps the order of the others. Forward mode restores
// the strides of a tensor, which this vmap refuses for other orders.
Tensor first_in_memory(const Tensor& x) {
  std::vector<std::int64_t> order(x.dim()), back(x.dim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(), [&](auto a, auto b) { return x.stride(a) > x.stride(b); });
  for (std::size_t k = 0; k < order.size(); ++k) back[order[k]] = static_cast<std::int64_t>(k);
  return x.permute(order).contiguous().permute(back);
}

// A tensor lists its mapped dimensions by level. Each call unwraps the dimension of the highest level.
void older_vmap(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  std::int64_t level = -1;
  const auto look = [&level](const Tensor& x) {
    if (const auto* const mapped = at::maybeGetBatchedImpl(x)) level = std::max(level, mapped->bdims().back().level());
  };
  for (const c10::IValue& value : torch::jit::last(*stack, handle.schema().arguments().size())) {
    if (value.isTensor()) look(value.toTensor());
    if (value.isTensorList()) {
      for (const Tensor& x : value.toTensorVector()) look(x);
    }
  }
  const auto unwrap = [level](const Tensor& x) -> std::pair<Tensor, std::optional<std::int64_t>> {
    const auto* const mapped = at::maybeGetBatchedImpl(x);
    if (mapped == nullptr || mapped->bdims().back().level() != level) return {x, std::nullopt};
    at::BatchDims others(mapped->bdims().begin(), mapped->bdims().end() - 1);
    const std::int64_t dim = mapped->bdims().back().dim();
    const auto before =
        std::count_if(others.begin(), others.end(), [dim](const auto& each) { return each.dim() < dim; });
    return {others.empty() ? mapped->value() : at::makeBatched(mapped->value(), others), dim - before};
  };
  map(handle, stack, unwrap, [level](const Tensor& x) { return at::addBatchDim(first_in_memory(x), level, 0); });
}

LCP_LIBRARY_IMPL(Batched, library) { add_to_all<&older_vmap>(library); }

}  // namespace
}  // namespace lcp::ops
