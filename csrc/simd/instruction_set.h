// The instruction sets that vector kernels are compiled for, and which of them this process uses.
//
// A module that has vector kernels compiles one source file of them once for each instruction set (see
// lcp_add_kernels in csrc/CMakeLists.txt). Each compilation defines a table of functions, `kTable`, in a namespace
// named after its instruction set, LCP_ISA. LCP_CHOOSE_TABLE defines the function that returns the table in use.
#pragma once

namespace lcp::simd {

enum class InstructionSet { kPortable, kAvx2, kAvx512 };

/// The best instruction set that this processor has, or the one that the environment variable TORCHLCP_ISA names:
/// "portable", "avx2" or "avx512". Throws std::invalid_argument where it names another, or one that the processor or
/// this build lacks.
InstructionSet instruction_set();

/// "portable", "avx2" or "avx512".
const char* name(InstructionSet set);

}  // namespace lcp::simd

#if defined(LCP_X86_KERNELS)
#define LCP_CHOOSE_TABLE(Table, function)               \
  namespace portable {                                  \
  extern const Table kTable;                            \
  }                                                     \
  namespace avx2 {                                      \
  extern const Table kTable;                            \
  }                                                     \
  namespace avx512 {                                    \
  extern const Table kTable;                            \
  }                                                     \
  const Table& function() {                             \
    static const Table& chosen = []() -> const Table& { \
      switch (simd::instruction_set()) {                \
        case simd::InstructionSet::kAvx512:             \
          return avx512::kTable;                        \
        case simd::InstructionSet::kAvx2:               \
          return avx2::kTable;                          \
        default:                                        \
          return portable::kTable;                      \
      }                                                 \
    }();                                                \
    return chosen;                                      \
  }
#else
#define LCP_CHOOSE_TABLE(Table, function) \
  namespace portable {                    \
  extern const Table kTable;              \
  }                                       \
  const Table& function() {               \
    simd::instruction_set();              \
    return portable::kTable;              \
  }
#endif
