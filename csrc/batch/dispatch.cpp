#include "batch/kernels.h"
#include "batch/path_kernels.h"
#include "simd/instruction_set.h"

namespace lcp::batch {

LCP_CHOOSE_TABLE(Kernels, kernels)

namespace path {

LCP_CHOOSE_TABLE(Kernels, kernels)

}  // namespace path
}  // namespace lcp::batch
