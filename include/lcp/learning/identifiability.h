// What a linear fit can and cannot learn from its data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lcp::learning {

struct Identifiability {
  std::int64_t rank = 0;  ///< how many independent combinations of the parameters the data determine
  double condition = 0;   ///< largest over smallest singular value above the rank's cut, of the scaled features
  at::Tensor
      null_space;  ///< [parameters, parameters - rank], orthonormal: changes of the parameters that no datum sees
};

/// For y = features . parameters. The features are scaled to unit columns before the singular values are compared; a
/// singular value below 1e-10 of the largest counts as 0, and so does a column of zeros.
///   features: [samples, parameters], float64.
Identifiability identifiability(const at::Tensor& features);

}  // namespace lcp::learning
