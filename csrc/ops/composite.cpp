#include "ops/composite.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <string>
#include <vector>

#include "ops/torch_versions.h"

namespace lcp::ops {
namespace {

std::vector<at::Tensor> tensors_among(at::ArrayRef<c10::IValue> values) {
  std::vector<at::Tensor> found;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined()) found.push_back(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& x : value.toTensorVector()) found.push_back(x);
    }
  }
  return found;
}

}  // namespace

at::Tensor without_wrappers(at::Tensor x) {
  while (const auto* const wrapper = at::functorch::maybeGetTensorWrapper(x)) x = wrapper->value();
  return x;
}

void refuse_derivative(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const std::vector<at::Tensor> inputs = tensors_among(torch::jit::last(*stack, handle.schema().arguments().size()));
  const std::string message = "the derivative of " + handle.operator_name().name +
                              " cannot be traced: call it outside of torch.compile and torch.vmap";
  bool needs_gradient = false;
  for (const at::Tensor& x : inputs) {
    TORCH_CHECK(!torch::autograd::isFwGradDefined(x), message);
    needs_gradient |= torch::autograd::compute_requires_grad(x);
  }
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  }
  if (!needs_gradient) return;
  auto node = new_node<torch::autograd::Error>(message);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (const at::Tensor& output : tensors_among(torch::jit::last(*stack, handle.schema().returns().size()))) {
    if (output.is_floating_point()) torch::autograd::set_history(output, node);
  }
}

void differentiate_parts(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  for (const at::Tensor& x : tensors_among(torch::jit::last(*stack, handle.schema().arguments().size()))) {
    const at::Tensor inner = without_wrappers(x);
    const bool can_read =
        !inner.is_meta() && !inner.key_set().has(c10::DispatchKey::Python) && !at::functorch::isBatchedTensor(inner);
    if (!can_read) return refuse_derivative(handle, keys, stack);
  }
  // The kernel of every backend is the same function; without a guard, what it calls records its derivatives.
  handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

}  // namespace lcp::ops
