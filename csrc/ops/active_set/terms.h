// The terms of a sum of outer products over a batch.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/DimVector.h>

#include "ops/operator.h"

namespace lcp::ops {

/// t and x over the batch of both, the dimensions that are summed moved behind those that are kept.
struct Terms {
  Tensor t, x;
  c10::DimVector sizes;  // the batch dimensions
  std::int64_t outputs = 1, per_output = 1;
};

/// size: the shape of the sum, [..., n, m], see kSumOuter. Throws c10::Error where it does not fit t and x.
Terms arrange(const Tensor& t, const Tensor& x, c10::IntArrayRef size);

}  // namespace lcp::ops
