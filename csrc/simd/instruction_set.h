// The instruction sets that vector kernels are compiled for, and which of them this process uses.
//
// A module that has vector kernels compiles one source file of them once for each instruction set (see
// lcp_add_kernels in csrc/CMakeLists.txt). Each compilation defines a table of functions, `kTable`, in a namespace
// named after its instruction set, LCP_ISA. LCP_CHOOSE_TABLE defines the function that returns the table in use.
#pragma once

namespace lcp::simd {

enum class InstructionSet { kPortable, kAvx2, kAvx512 };

/// The best instruction set that this processor and this build have, or the one that the environment variable
/// TORCHLCP_ISA names: "portable", "avx2" or "avx512". Throws std::invalid_argument where it names another, or one that
/// the processor or this build lacks.
InstructionSet instruction_set();

/// "portable", "avx2" or "avx512".
const char* name(InstructionSet set);

}  // namespace lcp::simd

// The declaration of the table of an instruction set and its place in a switch; nothing where the build lacks it.
#define LCP_DECLARE_TABLE(isa, Table) \
  namespace isa {                     \
  extern const Table kTable;          \
  }
#if defined(LCP_HAS_AVX2)
#define LCP_DECLARE_AVX2(Table) LCP_DECLARE_TABLE(avx2, Table)
#define LCP_CASE_AVX2               \
  case simd::InstructionSet::kAvx2: \
    return avx2::kTable;
#else
#define LCP_DECLARE_AVX2(Table)
#define LCP_CASE_AVX2
#endif
#if defined(LCP_HAS_AVX512)
#define LCP_DECLARE_AVX512(Table) LCP_DECLARE_TABLE(avx512, Table)
#define LCP_CASE_AVX512               \
  case simd::InstructionSet::kAvx512: \
    return avx512::kTable;
#else
#define LCP_DECLARE_AVX512(Table)
#define LCP_CASE_AVX512
#endif

#define LCP_CHOOSE_TABLE(Table, function)               \
  LCP_DECLARE_TABLE(portable, Table)                    \
  LCP_DECLARE_AVX2(Table)                               \
  LCP_DECLARE_AVX512(Table)                             \
  const Table& function() {                             \
    static const Table& chosen = []() -> const Table& { \
      switch (simd::instruction_set()) {                \
        LCP_CASE_AVX2                                   \
        LCP_CASE_AVX512                                 \
        default:                                        \
          return portable::kTable;                      \
      }                                                 \
    }();                                                \
    return chosen;                                      \
  }
