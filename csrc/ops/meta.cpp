// Shapes without data: what torch.compile, torch.export and the meta device see.
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

void meta(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const Operator& op = find_operator(handle.operator_name().name);
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, handle.schema().arguments().size());
  with_boxed_call(op, arguments, [&](const Call& call) {
    for (const Result& result : op.results()) torch::jit::push(*stack, call.empty(result));
  });
}

LCP_LIBRARY_IMPL(Meta, library) {
  for (const Operator* op : operators()) {
    if (op->kind() == Operator::Kind::kComposite) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&meta>());
  }
}

}  // namespace
}  // namespace lcp::ops
