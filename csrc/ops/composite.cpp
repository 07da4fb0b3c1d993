#include "ops/composite.h"

#include <ATen/functorch/TensorWrapper.h>

namespace lcp::ops {

at::Tensor without_wrappers(at::Tensor x) {
  while (const auto* const wrapper = at::functorch::maybeGetTensorWrapper(x)) x = wrapper->value();
  return x;
}

}  // namespace lcp::ops
