// Compiled once for each instruction set, see simd/instruction_set.h.
#include "batch/path_kernels.h"

#include "batch/path.h"

namespace lcp::batch::path::LCP_ISA {

extern const Kernels kTable;
const Kernels kTable = {{find<double>, adjoint<double>, tangent<double>},
                        {find<float>, adjoint<float>, tangent<float>}};

}  // namespace lcp::batch::path::LCP_ISA
