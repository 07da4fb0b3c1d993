// The features of a linear least-squares fit of affine f and G.
#pragma once

#include <ATen/ATen.h>

namespace lcp::training {

/// For affine f and G each component of f + G p is linear in their coefficients. The features that the coefficients
/// multiply are the products of (1, p_1, p_2) and (v, u, 1), [n, 9].
///   v, u: [n]. p: [n, 2].
inline at::Tensor features(const at::Tensor& v, const at::Tensor& u, const at::Tensor& p) {
  const at::Tensor one = at::ones_like(v);
  const at::Tensor state = at::stack({v, u, one}, -1);
  const at::Tensor force = at::cat({one.unsqueeze(-1), p}, -1);
  return (force.unsqueeze(-1) * state.unsqueeze(-2)).flatten(1);
}

constexpr std::int64_t kBias = 2;  ///< the index of the feature that f's bias multiplies

}  // namespace lcp::training
