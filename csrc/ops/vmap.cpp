// torch.vmap: the mapped dimension is put before the batch dimensions, over which every operator broadcasts.
#include <ATen/TensorOperators.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ops/schema.h"

namespace lcp::ops {
namespace {

void vmap(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(layer, op.operator_name(), " got a tensor that has left its torch.vmap");
  const auto level = layer->layerId();
  const auto& schema = op.schema();
  const auto count = schema.arguments().size();
  const auto argument = [&](std::size_t k) -> c10::IValue& { return torch::jit::peek(*stack, k, count); };
  const auto batch_dims = [&](std::size_t k) {
    const std::string& name = schema.arguments()[k].name();
    const bool matrix = name == "M" || name == "H" || name == "dM" || name == "A" || name == "J" || name == "K";
    return argument(k).toTensor().dim() - (matrix ? 2 : 1);
  };

  std::int64_t dims = 0;  // batch dimensions of the result, but for the mapped one
  for (std::size_t k = 0; k < count; ++k) {
    if (argument(k).isTensor()) dims = std::max(dims, batch_dims(k));
  }
  std::optional<c10::SymInt> mapped;
  for (std::size_t k = 0; k < count; ++k) {
    if (!argument(k).isTensor()) continue;
    auto missing = dims - batch_dims(k);
    auto [x, dim] = at::functorch::unwrapTensorAtLevel(argument(k).toTensor(), level);
    if (!dim) continue;
    mapped = x.sym_size(*dim);
    x = x.movedim(*dim, 0);
    for (; missing > 0; --missing) x = x.unsqueeze(1);
    argument(k) = std::move(x);
  }
  std::int64_t extra = 0;  // dimensions of size 1 after the mapped one
  for (std::size_t k = 0; mapped && k < count; ++k) {
    if (!argument(k).isIntList() && !argument(k).isSymIntList()) continue;
    auto size = argument(k).toSymIntVector();
    extra = std::max<std::int64_t>(0, dims - (static_cast<std::int64_t>(size.size()) - 2));
    size.insert(size.begin(), extra, 1);
    size.insert(size.begin(), *mapped);
    argument(k) = std::move(size);
  }
  op.callBoxed(stack);
  if (!mapped) return;
  for (std::size_t k = 0; k < schema.returns().size(); ++k) {
    c10::IValue& result = torch::jit::peek(*stack, k, schema.returns().size());
    result = at::functorch::makeBatched(result.toTensor().flatten(0, extra), 0, level);
  }
}

TORCH_LIBRARY_IMPL(lcp, FuncTorchBatched, library) {
  for (const char* name : {"solve", "_solve_blocks", "certify", "directional_derivative", "gradient_radius", "_piece",
                           "_tangent", "_adjoint", "_path_point", "_path_tangent", "_path_adjoint", "_sum_outer",
                           "certify_contact", "_contact_point", "_contact_adjoint", "_contact_inverse"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&vmap>());
  }
}

}  // namespace
}  // namespace lcp::ops
