// Numbers as the difference of two relus, which training can make exactly 0.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 4.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::nn {

/// max(P, 0) - max(N, 0), entry by entry [Notes, 4: a relu for the positive and one for the negative part]. It is
/// exactly 0 where neither P nor N is > 0. Where P <= 0 it has no gradient in P, so that such a 0 is final, also where
/// training got there by chance.
///
/// With `revive`, the gradient of max(P, 0) for P <= 0 is the gradient of P where descent would make P larger, and 0
/// elsewhere, as for a step that is projected onto P >= 0. Then no entry is lost, and a 0 is final only once `revive`
/// is false.
LCP_API at::Tensor relu_pair(const at::Tensor& P, const at::Tensor& N, bool revive);

/// The sum over all entries of max(P, 0) max(N, 0), a scalar to penalise. Where P = N > 0 the pair is 0 by cancellation
/// alone, and only to round-off. The penalty draws both P and N to 0, and has no effect where one of them is there
/// already.
LCP_API at::Tensor relu_pair_overlap(const at::Tensor& P, const at::Tensor& N, bool revive);

}  // namespace lcp::nn
