#include "batch/kernels.h"
#include "simd/instruction_set.h"

namespace lcp::batch {

LCP_CHOOSE_TABLE(Kernels, kernels)

}  // namespace lcp::batch
