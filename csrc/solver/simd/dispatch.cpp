#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "solver/simd/kernels.h"

namespace lcp::solver {

namespace portable {
extern const Kernels kKernels;
}
#ifdef LCP_HAS_X86
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

namespace {

const Kernels* find(std::string_view name) {
#ifdef LCP_HAS_X86
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  if (avx512 && (name.empty() || name == "avx512")) return &avx512::kKernels;
  if (avx2 && (name.empty() || name == "avx2")) return &avx2::kKernels;
#endif
  if (name.empty() || name == "portable") return &portable::kKernels;
  return nullptr;
}

const Kernels& choose() {
  const char* const wanted = std::getenv("TORCHLCP_ISA");
  const Kernels* const found = find(wanted == nullptr ? "" : wanted);
  if (found == nullptr) {
    throw std::invalid_argument(
        "the environment variable TORCHLCP_ISA must be \"portable\", \"avx2\" or \"avx512\", and one that this "
        "processor has; got \"" +
        std::string(wanted) + "\"");
  }
  return *found;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace lcp::solver
