// An affine f and G as one linear map.
#pragma once

#include <ATen/ATen.h>

namespace lcp::training {

/// Each output of f + G p is linear in its numbers of an affine f and G; they multiply (1, p_1, p_2) x (v, u, 1):
/// [n, 9].  v, u: [n]. p: [n, 2].
inline at::Tensor features(const at::Tensor& v, const at::Tensor& u, const at::Tensor& p) {
  const at::Tensor one = at::ones_like(v);
  const at::Tensor state = at::stack({v, u, one}, -1);
  const at::Tensor force = at::cat({one.unsqueeze(-1), p}, -1);
  return (force.unsqueeze(-1) * state.unsqueeze(-2)).flatten(1);
}

constexpr std::int64_t kBias = 2;  ///< the feature of f's bias

}  // namespace lcp::training
