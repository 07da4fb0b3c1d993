// Problems of different sizes as one batch, and the parts of its results.
//
//   auto [q, sizes] = lcp::pad({q_0, q_1, q_2}, 1);
//   auto [M, rows] = lcp::pad({M_0, M_1, M_2}, 2);
//   lcp::SolveResult result = lcp::solve(M, q, {.sizes = sizes});
//   std::vector<at::Tensor> z = lcp::unpad(result.z, sizes);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lcp/export.h"

namespace lcp {

struct PaddedBatch {
  at::Tensor values;  ///< [N, ...]
  at::Tensor sizes;   ///< [N], int64: the first of the dimensions that differ, of each tensor
};

/// Stacks N tensors of which the last `dims` dimensions may differ in size. Zeros at the ends bring each to the largest
/// of these sizes. diagonal: the number that continues the diagonals of square matrices, such as 1 for the mass
/// matrices of scenes with different numbers of bodies. Differentiable. Throws c10::Error for no tensors, for tensors
/// of different dtypes, devices or other dimensions, and for a diagonal != 0 where matrices are not square.
LCP_API PaddedBatch pad(const std::vector<at::Tensor>& tensors, std::int64_t dims, double diagonal = 0);

/// The first sizes[b] entries of each row of x. x: [..., n]; sizes: [...], int64; the rows in row-major order. The
/// sizes of contact impulses, [..., 3 c], are 3 times the numbers of contacts. Differentiable. Throws c10::Error for
/// other shapes and for sizes that are not in 0..n.
LCP_API std::vector<at::Tensor> unpad(const at::Tensor& x, const at::Tensor& sizes);

}  // namespace lcp
