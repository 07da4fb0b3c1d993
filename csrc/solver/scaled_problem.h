// One LCP, scaled by powers of two so that neither its units nor its size matter.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "linalg/kernels.h"

namespace lcp::solver {

/// The problem scaled so that the largest entry of q lies in [0.5, 1):
///
///   w = M z + q  <=>  w 2^-f = (M 2^-e)(z 2^(e-f)) + q 2^-f.
///
/// Powers of two change no bit of a mantissa. M is left as it was given, e = 0, but where products with its entries
/// may under- or overflow. Allocates in the constructor and when a scaled copy of M is first asked for.
class ScaledProblem {
 public:
  explicit ScaledProblem(int n);

  /// M: n x n row-major, q: n; they must stay alive while this is used. False where an entry is not finite.
  bool load(const double* M, const double* q);

  int n() const { return n_; }
  linalg::Rows given() const { return {n_, given_M_, spans_.data()}; }
  const double* given_q() const { return given_q_; }

  linalg::Rows matrix() const { return {n_, matrix_, spans_.data()}; }  ///< M 2^-e
  const double* q() const { return q_.data(); }                         ///< q 2^-f
  int matrix_exponent() const { return matrix_exponent_; }              ///< e
  int vector_exponent() const { return vector_exponent_; }              ///< f
  bool is_exact() const { return is_exact_; }                           ///< whether no scaling by now lost a digit

  /// Whether all entries of row i of M are so small beside the largest of M that the row must be in other units.
  bool is_small_row(int i) const;
  /// Whether some row is_small_row.
  bool has_small_row() const;
  /// The exponents of the units of the rows, as linalg::remove_units() finds them. Allocates.
  const int* row_units() const;

  /// matrix() 2^-normalized_exponent(), whose largest entry lies in [0.5, 1).
  const double* normalized_matrix();
  int normalized_exponent() const { return normalized_exponent_; }

  // Transformations of the normalized matrix, of which one is stored at a time.
  /// 2^-r M 2^-c with rows and columns of like size, and q accordingly, of unit size.
  void equilibrate();
  /// The difference between the exponents of rows, or of columns, after equilibrate().
  int unit_spread() const;
  /// Scales rows by the size of q_i where it is not 0, then columns by their largest entry.
  void scale_rows_by_q();
  /// M + shift I.
  void shift_diagonal(double shift);

  const double* transformed_matrix() const { return transformed_M_.data(); }
  const double* transformed_q() const { return transformed_q_.data(); }
  const int* row_exponents() const { return row_exponent_.data(); }        ///< r
  const int* column_exponents() const { return column_exponent_.data(); }  ///< c
  /// Converts a z of the equilibrated or row-scaled problem into one of the problem with the normalized matrix.
  void untransform(const double* z, double* normalized_z) const;

 private:
  int n_;
  const double* given_M_ = nullptr;
  const double* given_q_ = nullptr;
  std::vector<double> q_;
  const double* matrix_ = nullptr;
  std::vector<linalg::Span> spans_;
  int matrix_exponent_ = 0, vector_exponent_ = 0, normalized_exponent_ = 0;
  bool is_exact_ = true;
  double small_entry_ = 0;
  mutable std::optional<bool> has_small_row_;  // found, as the units are, when it is first asked for
  mutable bool has_row_units_ = false;
  mutable std::vector<int> row_unit_;
  std::vector<double> M_;
  bool has_normalized_matrix_ = false;
  bool is_equilibrated_ = false;
  std::vector<double> transformed_M_, transformed_q_;
  std::vector<int> row_exponent_, column_exponent_;
  int q_exponent_ = 0;  // the exponent that brought the transformed q to unit size
};

}  // namespace lcp::solver
