// torch.autocast: the solver's precision is float32, whatever a matrix product before it was computed in.
#include <ATen/autocast_mode.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

namespace lcp::ops {
namespace {

void autocast(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset);
  const auto count = op.schema().arguments().size();
  for (std::size_t k = 0; k < count; ++k) {
    c10::IValue& argument = torch::jit::peek(*stack, k, count);
    if (argument.isTensor()) {
      const at::Tensor x = argument.toTensor();
      argument = at::autocast::cached_cast(at::kFloat, x, x.device().type());
    }
  }
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(lcp, AutocastCPU, library) {
  for (const char* name :
       {"solve", "solve_mixed", "certify", "directional_derivative", "gradient_radius", "solve_contact",
        "certify_contact", "add_equality", "delassus_diagonal", "contact_parameters"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&autocast>());
  }
}

}  // namespace
}  // namespace lcp::ops
