#include "lcs/kernels.h"

#include "lcs/backward.h"
#include "lcs/forward.h"

namespace lcp::lcs::LCP_ISA {
namespace {

template <int N, class T>
constexpr WalkKernels<T> walks() {
  return {walk_forward<N, T>, walk_backward<N, T>};
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {{walks<1, double>(), walks<2, double>(), walks<3, double>(), walks<4, double>()},
                        {walks<1, float>(), walks<2, float>(), walks<3, float>(), walks<4, float>()}};

}  // namespace lcp::lcs::LCP_ISA
