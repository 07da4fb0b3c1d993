#include "lcs/kernels.h"
#include "simd/instruction_set.h"

namespace lcp::lcs {

LCP_CHOOSE_TABLE(Kernels, kernels)

}  // namespace lcp::lcs
