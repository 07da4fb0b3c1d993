// Compiled once for each instruction set, see simd/instruction_set.h.
#include "solver/kernels.h"

#include "solver/lemke_pivots.h"
#include "solver/row_errors.h"

namespace lcp::solver::LCP_ISA {

extern const Kernels kTable;
const Kernels kTable = {lemke, row_errors};

}  // namespace lcp::solver::LCP_ISA
