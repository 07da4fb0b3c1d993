// Compiled once for each instruction set, see simd/instruction_set.h.
#include "linalg/kernels.h"

#include "linalg/cholesky_kernels.h"
#include "linalg/row_kernels.h"

namespace lcp::linalg::LCP_ISA {

extern const Kernels kTable;
const Kernels kTable = {{largest, scan, has_small_row, scale, is_symmetric, sums, listed_sums},
                        {kWidth, factor, solve}};

}  // namespace lcp::linalg::LCP_ISA
