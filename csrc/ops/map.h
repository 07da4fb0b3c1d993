// The rule of all operators for vmap: the mapped dimension is put before the batch dimensions, over which operators
// broadcast.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops {

/// Calls an operator whose tensors are mapped. unwrap(x) returns the tensor within x and the place of its mapped
/// dimension, or x and none where x is not mapped; wrap(x) makes the first dimension of x the mapped one.
template <class Unwrap, class Wrap>
void map(const c10::OperatorHandle& handle, torch::jit::Stack* stack, const Unwrap& unwrap, const Wrap& wrap) {
  const Operator& op = find_operator(handle.operator_name().name);
  const std::size_t count = handle.schema().arguments().size();
  // Here the tensors have the shapes that the mapped function sees; only a given shape of the result lacks the mapped
  // dimension as well.
  with_boxed_call(op, torch::jit::last(*stack, count), [](const Call&) {});
  const std::string_view first = torch::jit::peek(*stack, 0, count).isString()
                                     ? torch::jit::peek(*stack, 0, count).toStringView()
                                     : std::string_view();
  // Replaces each tensor x by use(kind, x), where `kind` describes the tensor.
  const auto for_each_tensor = [&](const auto& use) {
    for (std::size_t k = 0; k < count; ++k) {
      const Argument& argument = op.arguments()[k];
      c10::IValue& value = torch::jit::peek(*stack, k, count);
      if (argument.kind == Argument::Kind::kTensor && !value.isNone()) value = use(argument, value.toTensor());
      if (argument.kind != Argument::Kind::kTensors) continue;
      const c10::ArrayRef<Argument> parts = argument.parts(first);
      std::vector<Tensor> list = value.toTensorVector();
      for (std::size_t i = 0; i < list.size(); ++i) list[i] = use(parts[i], list[i]);
      value = std::move(list);
    }
  };

  std::int64_t batch_dims = 0;  // batch dimensions of the results, without the mapped one
  for_each_tensor([&](const Argument& argument, const Tensor& x) {
    batch_dims = std::max(batch_dims, x.dim() - argument.sizes.count);
    return x;
  });
  std::optional<c10::SymInt> mapped;
  for_each_tensor([&](const Argument& argument, const Tensor& wrapped) {
    const auto missing = batch_dims - (wrapped.dim() - argument.sizes.count);
    auto [x, dim] = unwrap(wrapped);
    if (!dim) return wrapped;
    mapped = x.sym_size(*dim);
    x = x.movedim(*dim, 0);
    for (std::int64_t k = 0; k < missing; ++k) x = x.unsqueeze(1);
    return x;
  });
  if (!mapped) {
    handle.callBoxed(stack);
    return;
  }
  std::int64_t extra = 0;  // dimensions of size 1 behind the mapped one
  if (op.shape_of_result()) {
    c10::IValue& value = torch::jit::peek(*stack, *op.shape_of_result(), count);
    auto shape = value.toSymIntVector();
    extra =
        std::max<std::int64_t>(0, batch_dims - (static_cast<std::int64_t>(shape.size()) - op.results()[0].sizes.count));
    shape.insert(shape.begin(), extra, 1);
    shape.insert(shape.begin(), *mapped);
    value = std::move(shape);
  }
  handle.callBoxed(stack);
  if (op.returns_list()) {
    std::vector<Tensor> results = torch::jit::pop(*stack).toTensorVector();
    for (Tensor& result : results) {
      TORCH_INTERNAL_ASSERT(result.dim() > 0 && result.sym_size(0) == *mapped, op.name(), " lost a mapped dimension");
      result = wrap(result);
    }
    return torch::jit::push(*stack, std::move(results));
  }
  for (std::size_t k = 0; k < op.results().size(); ++k) {
    c10::IValue& result = torch::jit::peek(*stack, k, op.results().size());
    result = wrap(result.toTensor().flatten(0, extra));
  }
}

/// Registers a kernel for all operators that are not made of others.
template <c10::BoxedKernel::BoxedKernelFunction* kernel>
void add_to_all(torch::Library& library) {
  for (const Operator* op : operators()) {
    if (op->kind() == Operator::Kind::kComposite) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<kernel>());
  }
}

}  // namespace lcp::ops
