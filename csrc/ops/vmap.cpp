// torch.vmap.
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>

#include "ops/map.h"

namespace lcp::ops {
namespace {

void vmap(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(layer, handle.operator_name(), " got a tensor that has left its torch.vmap");
  const auto level = layer->layerId();
  map(
      handle, stack, [level](const Tensor& x) { return at::functorch::unwrapTensorAtLevel(x, level); },
      [level](const Tensor& x) { return at::functorch::makeBatched(x, 0, level); });
}

LCP_LIBRARY_IMPL(FuncTorchBatched, library) { add_to_all<&vmap>(library); }

}  // namespace
}  // namespace lcp::ops
