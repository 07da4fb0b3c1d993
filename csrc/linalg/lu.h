// LU factors in memory that is allocated once.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "interrupt/checkpoint.h"

namespace lcp::linalg {

/// The choice of pivots: the largest entry of the column, or of all remaining entries, which alone shows the rank.
enum class Pivoting { kPartial, kFull };

/// A smaller pivot, relative to the largest, may be that of a row or column in other units, and loses digits.
inline constexpr double kClearPivot = 1e-8;

/// A k x k matrix, k <= n, factored and solved with in place, where a library's decomposition would allocate for each
/// new k. Allocates only in the constructor.
class Lu {
 public:
  Lu(int n, Pivoting pivoting);

  /// Memory for the matrix to factor: k x k row-major.
  double* matrix(int k);

  /// Factors the matrix until a pivot is at most `negligible` times the first, or is not finite. Returns the number of
  /// pivots: k where the matrix is regular.
  int factor(double negligible);

  int size() const { return k_; }
  int pivots() const { return pivots_; }
  double first_pivot() const { return pivots_ == 0 ? 1 : std::abs(lu_[0]); }
  double last_pivot() const { return pivots_ == 0 ? 1 : std::abs(row(pivots_ - 1)[pivots_ - 1]); }

  /// Whether each entry that is left after the last pivot is at most `negligible` times the sum of the magnitudes that
  /// were subtracted to make it, in any units of the rows and columns: then the entry is their round-off.
  bool rest_is_negligible(double negligible) const;

  // Solutions for a regular matrix; x: k, in place.
  void solve(double* x) const;             ///< x <- A^-1 x
  void solve_transposed(double* x) const;  ///< x <- A^-T x

  /// Solves A x = b in the rows and columns of the pivots, and keeps the other entries of x. For a regular matrix,
  /// these are all rows and columns. b is overwritten.
  void solve_near(double* b, double* x) const;
  /// The same for A' x = b.
  void solve_near_transposed(double* b, double* x) const;

  /// The k - pivots() vectors x with A x = 0, or A' x = 0, k numbers each, that the pivots determine from an entry of 1
  /// in one row or column without a pivot and 0 in the others.
  void null_space(double* vectors) const;
  void null_space_of_transpose(double* vectors) const;

 private:
  const double* row(int i) const { return lu_.data() + static_cast<std::size_t>(i) * k_; }
  double* row(int i) { return lu_.data() + static_cast<std::size_t>(i) * k_; }
  void substitute(double* x) const;
  void substitute_transposed(double* x) const;
  template <Pivoting pivoting>
  double find_pivot(int c);
  template <Pivoting pivoting>
  int factor(double negligible);

  Pivoting pivoting_;
  int k_ = 0;
  int pivots_ = 0;
  std::vector<double> lu_;                   // k x k row-major
  std::vector<int> row_swap_, column_swap_;  // with kPartial, column_swap_[i] = i
  interrupt::Pace pace_;
};

}  // namespace lcp::linalg
