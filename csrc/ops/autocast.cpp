// torch.autocast: the solvers compute in float32, also after matrix products of lower precision.
#include <ATen/autocast_mode.h>
#include <ATen/core/stack.h>

#include <string>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

void autocast(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset);
  const std::size_t count = handle.schema().arguments().size();
  for (std::size_t k = 0; k < count; ++k) {
    c10::IValue& argument = torch::jit::peek(*stack, k, count);
    if (!argument.isTensor()) continue;
    const Tensor x = argument.toTensor();
    argument = at::autocast::cached_cast(at::kFloat, x, x.device().type());
  }
  handle.callBoxed(stack);
}

void register_autocast(torch::Library& library) {
  for (const Operator* op : operators()) {
    if (!op->is_public()) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&autocast>());
  }
}

LCP_LIBRARY_IMPL(AutocastCPU, library) { register_autocast(library); }
LCP_LIBRARY_IMPL(AutocastCUDA, library) { register_autocast(library); }

}  // namespace
}  // namespace lcp::ops
