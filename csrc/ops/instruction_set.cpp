// The instruction set that the vector kernels of this process use, for reports.
#include "simd/instruction_set.h"

#include <torch/library.h>

#include <string>

namespace lcp::ops {
namespace {

std::string instruction_set_in_use() { return simd::name(simd::instruction_set()); }

TORCH_LIBRARY_FRAGMENT(lcp, library) {
  library.def("_instruction_set() -> str", TORCH_FN(instruction_set_in_use), {at::Tag::pt2_compliant_tag});
}

}  // namespace
}  // namespace lcp::ops
