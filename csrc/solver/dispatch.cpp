#include "simd/instruction_set.h"
#include "solver/kernels.h"

namespace lcp::solver {

LCP_CHOOSE_TABLE(Kernels, kernels)

}  // namespace lcp::solver
