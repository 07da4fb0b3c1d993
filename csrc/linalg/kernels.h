// Vector kernels for one dense matrix, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace lcp::linalg {

/// The columns [first, last) of a row. All its other entries are 0.
struct Span {
  int first, last;
};

/// M: n x n, row-major. spans: the span of each row, or nullptr where none is known.
struct Rows {
  int n;
  const double* M;
  const Span* spans;
};

struct RowKernels {
  /// max |x_i|; infinity where an x_i is NaN or infinite.
  double (*largest)(std::int64_t count, const double* x);
  /// max |M_ij|; infinity where an M_ij is NaN or infinite. Fills in the span of each row; for small n, the whole row.
  double (*scan)(int n, const double* M, Span* spans);
  /// Whether some row has no entry of at least this magnitude.
  bool (*has_small_row)(const Rows& rows, double magnitude);
  /// scaled_i = first * second * x_i, and 0 where x_i is 0. Returns whether no x_i != 0 became 0 or subnormal; it does
  /// not look for overflow.
  bool (*scale)(std::int64_t count, const double* x, double first, double second, double* scaled);
  /// Whether |M_ij - M_ji| <= rounding * sqrt(M_ii M_jj) for all i and j, the rounding error of a product A'A beside
  /// its exact value. The spans must be known. diagonal: n, the M_ii > 0.
  bool (*is_symmetric)(const Rows& rows, const double* diagonal, double rounding);
  /// Fills (q + M z)_i and |q_i| + sum_j |M_ij z_j| for `count` rows from i = `from` on. z must be finite where the
  /// rows have spans.
  void (*sums)(const Rows& rows, int from, int count, const double* q, const double* z, double* sum, double* magnitude);
  /// Fills w_i = (q + M z)_i for the `count` rows i that `index` lists. z is as for sums.
  void (*listed_sums)(const Rows& rows, int count, const int* index, const double* q, const double* z, double* w);
};

/// As many rows of a lower triangle as a vector has lanes, stored column by column. The first stored column, `first`,
/// is a multiple of the number of lanes. The columns before `first` are 0.
struct Panel {
  double* data;
  int first;
};

/// The factors M_aa = U D^-1 U', U lower triangular and D its diagonal; see cholesky.h.
struct CholeskyKernels {
  int width;  ///< rows of a panel
  /// index: the k indices a. lower: scratch, `width` numbers for each column. inverse: D^-1. Returns false where M_aa
  /// is not positive definite.
  bool (*factor)(const Rows& rows, int k, const int* index, const Panel* panels, double* lower, double* inverse);
  /// x <- M_aa^-1 x. x is followed by zeros up to a whole panel; scratch is as long as x.
  void (*solve)(int k, const Panel* panels, const double* inverse, double* scratch, double* x);
};

struct Kernels {
  RowKernels rows;
  CholeskyKernels cholesky;
};

/// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace lcp::linalg
