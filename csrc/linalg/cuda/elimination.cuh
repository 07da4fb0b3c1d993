// Gaussian elimination with partial pivoting in the registers of a warp.
#pragma once

#include "linalg/cuda/warp.cuh"

namespace lcp::linalg::cuda {

// A x = b of order size, row and right-hand side of each lane; lane c gets x_c. Returns an estimate of |U^-1| in the
// columns of the lanes that count, as batch/adjoint.h has it. A row that was a pivot stays where it is.
template <int size>
__device__ double solve_system_in_warp(double (&row)[size], double b, bool counts, double* x) {
  bool used = lane() >= size;
  double growth = 0;
  double sum = 0;      // lane c: sum over r < c of U_rc y_r
  double inverse = 0;  // lane c: 1 / U_cc
  int pivot_row = 0;   // lane c
#pragma unroll
  for (int c = 0; c < size; ++c) {
    const double candidate = used ? -1.0 : stdx::abs(row[c]);
    const double largest = largest_of_lanes(candidate);
    int r = first_lane(!used && candidate == largest);
    if (r < 0) r = first_lane(!used);  // a NaN
    const double inverse_c = 1.0 / from_lane(row[c], r);
    const double sum_c = from_lane(sum, c);
    const double y = -(sum_c + stdx::copysign(1.0, sum_c)) * inverse_c;
    if (lane() == c) {
      if (counts) growth = stdx::abs(y);
      inverse = inverse_c;
      pivot_row = r;
    }
    used = used || lane() == r;
    const double factor = used ? 0.0 : row[c] * inverse_c;
#pragma unroll
    for (int j = c + 1; j < size; ++j) {
      const double u = from_lane(row[j], r);
      if (lane() == j) sum = multiply_add(u, y, sum);
      row[j] = subtract_product(factor, u, row[j]);
    }
    b = subtract_product(factor, from_lane(b, r), b);
  }
  bool done = lane() >= size;
#pragma unroll
  for (int c = size - 1; c >= 0; --c) {
    const int r = from_lane(pivot_row, c);
    const double x_c = from_lane(b, r) * from_lane(inverse, c);
    if (lane() == c) *x = x_c;
    done = done || lane() == r;
    if (!done) b = subtract_product(row[c], x_c, b);
  }
  return largest_of_lanes(growth);
}

}  // namespace lcp::linalg::cuda
