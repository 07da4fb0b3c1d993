// The shapes of results without data, for torch.compile, torch.export and the meta device.
#include <ATen/core/stack.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

void meta(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const Operator& op = find_operator(handle.operator_name().name);
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, handle.schema().arguments().size());
  with_boxed_call(op, arguments, [&](const Call& call) {
    std::vector<Tensor> results;
    for (const Result& result : call.results()) results.push_back(call.empty(result));
    if (op.returns_list()) return torch::jit::push(*stack, std::move(results));
    for (Tensor& result : results) torch::jit::push(*stack, std::move(result));
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
