#include "lcs/kernels.h"

#include "lcs/backward.h"
#include "lcs/changes.h"
#include "lcs/forward.h"

namespace lcp::lcs::LCP_ISA {
namespace {

template <int N, class T>
constexpr WalkKernels<T> walks() {
  return {walk_forward<N, T>, walk_backward<N, T>, walk_changes<N, T>};
}
template <class T>
constexpr WalkKernels<T> walks_of_any() {
  return {nullptr, nullptr, walk_changes<-1, T>};
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {
    {walks_of_any<double>(), walks<1, double>(), walks<2, double>(), walks<3, double>(), walks<4, double>()},
    {walks_of_any<float>(), walks<1, float>(), walks<2, float>(), walks<3, float>(), walks<4, float>()}};

}  // namespace lcp::lcs::LCP_ISA
