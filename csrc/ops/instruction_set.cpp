// The instruction set that the vector kernels of this process use, for reports.
#include "simd/instruction_set.h"

#include <string>

#include "ops/registration.h"

namespace lcp::ops {
namespace {

std::string instruction_set_in_use() { return simd::name(simd::instruction_set()); }

LCP_LIBRARY_FRAGMENT(library) {
  library.def("_instruction_set() -> str", TORCH_FN(instruction_set_in_use), {at::Tag::pt2_compliant_tag});
}

}  // namespace
}  // namespace lcp::ops
