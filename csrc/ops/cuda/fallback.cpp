// Operators that have no kernel for GPUs run on the CPU and copy their results back.
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "ops/library.h"
#include "ops/registration.h"

namespace lcp::ops::cuda {
namespace {

constexpr std::array<std::string_view, 10> kWithKernels = {
    "solve",      "_solve_with_basis", "_piece",           "_tangent",        "_adjoint",
    "_sum_outer", "_contact_point",    "_contact_adjoint", "_friction_point", "_friction_adjoint"};

void fall_back(const c10::OperatorHandle& handle, torch::jit::Stack* stack) { at::native::cpu_fallback(handle, stack); }

LCP_LIBRARY_IMPL(CUDA, library) {
  for (const Operator* op : operators()) {
    const bool has_kernel = std::find(kWithKernels.begin(), kWithKernels.end(), op->name()) != kWithKernels.end();
    if (op->kind() == Operator::Kind::kComposite || has_kernel) continue;
    library.impl(std::string(op->name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  }
}

}  // namespace
}  // namespace lcp::ops::cuda
