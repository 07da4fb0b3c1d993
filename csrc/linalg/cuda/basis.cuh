// The rank decisions and the minimum-norm least-squares solution of linalg/basis.h, one matrix in each warp.
#pragma once

#include <limits>

#include "linalg/cuda/warp.cuh"
#include "linalg/lu.h"

namespace lcp::linalg::cuda {

// The rows and columns of the active lanes of a matrix A, brought to B = [I R; 0 0], but for the order of rows and
// columns, by eliminations with full pivoting that are recorded in `operations`: B = operations A.
template <int size>
class WarpBasis {
 public:
  __device__ WarpBasis(int n, bool active, WarpMemory<size>& matrix, WarpMemory<size>& operations)
      : n_(n), active_(active), active_lanes_(__ballot_sync(kAllLanes, active)), B_(matrix), L_(operations) {}

  // A_ij = entry(i, j) of active lanes i and j.
  template <class Entry>
  __device__ void load(const Entry& entry) {
    __syncwarp();
    for (int k = lane(); k < n_ * n_; k += kWarp) {
      const int i = k / n_;
      const int j = k % n_;
      const bool basic = (active_lanes_ >> i & active_lanes_ >> j & 1) != 0;
      B_.entry(i, j) = basic ? double(entry(i, j)) : 0.0;
    }
    start();
  }
  // Begins with an A that is in `matrix` already, and whose other rows and columns are 0.
  __device__ void start() {
    row_exponent_ = column_exponent_ = 0;
    __syncwarp();
  }

  // linalg::remove_units and then linalg::equilibrate in a warp: each lane keeps the exponents of its row and its
  // column.
  __device__ void equilibrate() {
    remove_units();
    constexpr int sweeps = 8;
    double target = 0;
    for (int j = 0; exists() && j < n_; ++j) target = stdx::max(target, stdx::abs(B_.at(lane(), j)));
    target = largest_of_lanes(target);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      row_exponent_ += scale_lines([this](int k) -> double& { return B_.entry(lane(), k); }, target);
      column_exponent_ += scale_lines([this](int k) -> double& { return B_.entry(k, lane()); }, target);
    }
  }

  // Returns the rank: a pivot below `negligible` times the largest counts as 0.
  __device__ int eliminate(double negligible) {
    for (int j = 0; exists() && j < n_; ++j) L_.entry(lane(), j) = lane() == j ? 1.0 : 0.0;
    __syncwarp();
    column_of_row_ = row_of_column_ = -1;
    free_columns_ = active_lanes_;
    is_clear_ = false;
    double first_pivot = 0;
    int rank = 0;
    for (; free_columns_ != 0; ++rank) {
      double best = -1;
      int best_column = 0;
      if (active_ && column_of_row_ < 0) {
        for (unsigned columns = free_columns_; columns != 0; columns &= columns - 1) {
          const int j = __ffs(static_cast<int>(columns)) - 1;
          const double x = stdx::abs(B_.at(lane(), j));
          if (x > best) {
            best = x;
            best_column = j;
          }
        }
      }
      const double largest = largest_of_lanes(best);
      if (rank == 0) first_pivot = largest;
      if (!(largest > negligible * first_pivot)) break;
      is_clear_ = largest > linalg::kClearPivot * first_pivot;
      const int r = first_lane(best == largest);
      eliminate_with(r, from_lane(best_column, r));
    }
    return rank;
  }

  // Whether all pivots of eliminate were clear.
  __device__ bool is_clear() const { return is_clear_; }

  // After eliminate, x of lane j for the right-hand side b of lane i; undetermined entries are 0.
  __device__ double solve(double b) {
    L_.share(b);
    double sum = 0;
    for (int j = 0; exists() && j < n_; ++j) sum = multiply_add(L_.at(lane(), j), L_.vector[j], sum);
    const double x = from_lane(sum, row_of_column_ < 0 ? 0 : row_of_column_);
    return row_of_column_ < 0 ? 0.0 : x;
  }

  // The least squares solution of least norm for a matrix of rank `rank`, after equilibrate and eliminate.
  __device__ double solve_carefully(double b, int rank) {
    const bool singular = rank < __popc(active_lanes_);
    const unsigned zero_rows = __ballot_sync(kAllLanes, active_ && column_of_row_ < 0);
    if (singular) {
      // The rows of `operations` that have no pivot span the left null space of B.
      for (unsigned rows = zero_rows; rows != 0; rows &= rows - 1) {
        if (exists()) L_.entry(first(rows), lane()) = ldexp(L_.at(first(rows), lane()), -row_exponent_);
      }
      b = without_span(zero_rows, b);
    }
    double x = ldexp(solve(ldexp(b, -row_exponent_)), -column_exponent_);
    if (!singular) return x;
    __syncwarp();
    unsigned columns = free_columns_;
    for (unsigned rows = zero_rows; rows != 0; rows &= rows - 1, columns &= columns - 1) {
      const int f = first(columns);
      const double entry = row_of_column_ >= 0 ? -B_.at(row_of_column_, f) : lane() == f ? 1.0 : 0.0;
      if (exists()) L_.entry(first(rows), lane()) = ldexp(entry, -column_exponent_);
    }
    return without_span(zero_rows, x);
  }

 private:
  __device__ bool exists() const { return lane() < n_; }
  __device__ static int first(unsigned set) { return __ffs(static_cast<int>(set)) - 1; }

  // The least-squares fit of r_i + c_j to log2 |B_ij| by turns, rows and columns.
  __device__ void remove_units() {
    constexpr int turns = 50;
    constexpr double settled = 1e-2;  // the fit is rounded to integers
    for (int j = 0; exists() && j < n_; ++j) L_.entry(lane(), j) = log2(stdx::abs(B_.at(lane(), j)));
    const auto mean = [this](double other, const auto& at) {
      L_.share(other);
      double sum = 0;
      int count = 0;
      for (int k = 0; exists() && k < n_; ++k) {
        const double logarithm = at(k);
        if (!(logarithm > -std::numeric_limits<double>::infinity())) continue;  // an entry that is 0
        sum += logarithm - L_.vector[k];
        ++count;
      }
      return count == 0 ? 0.0 : sum / count;
    };
    double r = 0;
    double c = 0;
    for (int turn = 0; turn < turns; ++turn) {
      const double before = c;
      r = mean(c, [this](int k) { return L_.at(lane(), k); });
      c = mean(r, [this](int k) { return L_.at(k, lane()); });
      if (!any_lane(stdx::abs(c - before) > settled)) break;
    }
    row_exponent_ = static_cast<int>(lround(r));
    column_exponent_ = static_cast<int>(lround(c));
    L_.share(column_exponent_);
    for (int j = 0; exists() && j < n_; ++j) {
      B_.entry(lane(), j) = ldexp(B_.at(lane(), j), -row_exponent_ - static_cast<int>(L_.vector[j]));
    }
    __syncwarp();
  }

  template <class Line>
  __device__ int scale_lines(const Line& line, double target) {
    __syncwarp();
    double largest = 0;
    for (int k = 0; exists() && k < n_; ++k) largest = stdx::max(largest, stdx::abs(line(k)));
    const double share = largest / target;
    const int exponent = share > 0 ? static_cast<int>(lround(log2(share) / 2)) : 0;
    for (int k = 0; exists() && exponent != 0 && k < n_; ++k) line(k) = ldexp(line(k), -exponent);
    __syncwarp();
    return exponent;
  }

  __device__ void eliminate_with(int r, int c) {
    const double inverse = 1.0 / B_.at(r, c);
    __syncwarp();
    if (exists()) {
      B_.entry(r, lane()) *= inverse;
      L_.entry(r, lane()) *= inverse;
    }
    __syncwarp();
    const double factor = active_ && lane() != r ? B_.at(lane(), c) : 0.0;
    if (factor != 0) {
      for (int j = 0; j < n_; ++j) {
        B_.entry(lane(), j) = subtract_product(factor, B_.at(r, j), B_.at(lane(), j));
        L_.entry(lane(), j) = subtract_product(factor, L_.at(r, j), L_.at(lane(), j));
      }
    }
    __syncwarp();
    if (active_) B_.entry(lane(), c) = lane() == r ? 1.0 : 0.0;
    if (lane() == r) column_of_row_ = c;
    if (lane() == c) row_of_column_ = r;
    free_columns_ &= ~(1U << c);
    __syncwarp();
  }

  // x less its part in the span of these rows of `operations`, which become an orthonormal basis of it [Gram, Schmidt,
  // each twice].
  __device__ double without_span(unsigned rows, double x) {
    __syncwarp();
    for (unsigned rest = rows; rest != 0; rest &= rest - 1) {
      const int row = first(rest);
      double v = exists() ? L_.at(row, lane()) : 0.0;
      v /= largest_of_lanes(stdx::abs(v));
      for (int turn = 0; turn < 2; ++turn) {
        for (unsigned before = rows & ((1U << row) - 1); before != 0; before &= before - 1) {
          const double q = exists() ? L_.at(first(before), lane()) : 0.0;
          v = subtract_product(q, sum_of_lanes(q * v), v);
        }
        v /= sqrt(sum_of_lanes(v * v));
      }
      if (exists()) L_.entry(row, lane()) = v;
      __syncwarp();
      x = subtract_product(v, sum_of_lanes(v * x), x);
    }
    return x;
  }

  int n_;
  bool active_;
  unsigned active_lanes_, free_columns_ = 0;
  WarpMemory<size>&B_, &L_;
  int row_exponent_ = 0, column_exponent_ = 0;
  int column_of_row_ = -1, row_of_column_ = -1;
  bool is_clear_ = false;
};

}  // namespace lcp::linalg::cuda
