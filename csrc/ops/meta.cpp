// Shapes without data: what torch.compile, torch.export and the meta device see.
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "ops/library.h"

namespace lcp::ops {
namespace {

void meta(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const Operator& op = find_operator(handle.operator_name().name);
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, handle.schema().arguments().size());
  std::vector<std::vector<c10::SymInt>> shapes;  // what the values of type SymInt[] refer to
  std::vector<Value> values;
  for (const c10::IValue& argument : arguments) {
    if (argument.isNone()) {
      values.emplace_back();
    } else if (argument.isTensor()) {
      values.emplace_back(&argument.toTensor());
    } else if (argument.isBool()) {
      values.emplace_back(argument.toBool());
    } else if (argument.isInt()) {
      values.emplace_back(argument.toInt());
    } else if (argument.isDouble()) {
      values.emplace_back(argument.toDouble());
    } else if (argument.isString()) {
      values.emplace_back(argument.toStringView());
    } else {
      values.emplace_back(c10::SymIntArrayRef(shapes.emplace_back(argument.toSymIntVector())));
    }
  }
  const Call call(op, values);
  for (const Result& result : op.results()) {
    torch::jit::push(*stack, at::empty_symint(call.shape(result), call.options(result)));
  }
}

TORCH_LIBRARY_IMPL(lcp, Meta, library) {
  for (const Operator* op : operators()) {
    if (op->kind() == Operator::Kind::kComposite) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&meta>());
  }
}

}  // namespace
}  // namespace lcp::ops
