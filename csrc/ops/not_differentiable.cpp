// The results of operators that have no derivative are constants to autograd.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>

#include <string>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

void call_below_autograd(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& arguments = handle.schema().arguments();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const c10::IValue& argument = torch::jit::peek(*stack, k, arguments.size());
    if (argument.isTensor()) check_layout(arguments[k].name(), argument.toTensor());
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

LCP_LIBRARY_IMPL(Autograd, library) {
  for (const Operator* op : operators()) {
    if (op->kind() != Operator::Kind::kNotDifferentiable) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&call_below_autograd>());
  }
}

}  // namespace
}  // namespace lcp::ops
