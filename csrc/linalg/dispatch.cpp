#include "linalg/kernels.h"
#include "simd/instruction_set.h"

namespace lcp::linalg {

LCP_CHOOSE_TABLE(Kernels, kernels)

}  // namespace lcp::linalg
