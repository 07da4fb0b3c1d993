#include "simd/instruction_set.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lcp::simd {
namespace {

// Whether both this build and the processor support an instruction set.
bool has(InstructionSet set) {
  switch (set) {
#if defined(LCP_HAS_AVX512)
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
             __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0;
#endif
#if defined(LCP_HAS_AVX2)
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#endif
    default:
      return set == InstructionSet::kPortable;
  }
}

InstructionSet choose() {
  const char* const variable = std::getenv("TORCHLCP_ISA");
  const std::string_view wanted = variable == nullptr ? "" : variable;
  for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2, InstructionSet::kPortable}) {
    if (has(set) && (wanted.empty() || wanted == name(set))) return set;
  }
  throw std::invalid_argument(
      "the environment variable TORCHLCP_ISA must be \"portable\", \"avx2\" or \"avx512\", and one that this "
      "processor and this build have; got \"" +
      std::string(wanted) + "\"");
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

const char* name(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx2:
      return "avx2";
    default:
      return "portable";
  }
}

}  // namespace lcp::simd
