// Compiled once for each instruction set, see simd/instruction_set.h.
#include "solver/lemke_kernel.h"

#include "solver/lemke_pivots.h"

namespace lcp::solver::LCP_ISA {

extern const LemkeKernels kTable;
const LemkeKernels kTable = {lemke};

}  // namespace lcp::solver::LCP_ISA
