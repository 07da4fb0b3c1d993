// The parameters of a linear fit that its data determine.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lcp/export.h"

namespace lcp::learning {

struct Identifiability {
  std::int64_t rank = 0;  ///< number of independent combinations of the parameters that the data determine
  double condition = 0;   ///< largest over smallest of the singular values of the scaled features that are not 0
  at::Tensor null_space;  ///< [parameters, parameters - rank], orthonormal: changes of the parameters without an effect
};

/// The identifiability of the parameters of y = features . parameters. The features are scaled to unit columns before
/// the singular values are compared. A singular value below 1e-10 of the largest counts as 0, and so does a column of
/// zeros.
///   features: [samples, parameters], float64.
LCP_API Identifiability identifiability(const at::Tensor& features);

}  // namespace lcp::learning
