#include "simd/instruction_set.h"
#include "solver/lemke_kernel.h"

namespace lcp::solver {

LCP_CHOOSE_TABLE(LemkeKernels, lemke_kernels)

}  // namespace lcp::solver
