// The pseudo-inverse of a matrix from its LU factors.
#pragma once

#include <vector>

#include "linalg/lu.h"

namespace lcp::linalg {

/// The linear map A^+ that gives the least-squares solution of minimum norm of A x = b. It is made of the factors of
/// B = 2^-r A 2^-c, which tell the rank where A has rows or columns of mixed units; the norms are those of A x - b and
/// x.
///
/// b loses its part in the null space of A', so that B y = 2^-r b can be solved in the rows and columns of the pivots,
/// and x = 2^-c y loses its part in the null space of A. Allocates for a larger matrix than ever before.
class PseudoInverse {
 public:
  /// lu: factors of B with full pivoting. r, c: k exponents each.
  void set(const Lu& lu, const int* r, const int* c);
  /// Sets the inverse for r = c = 0.
  void set(const Lu& lu);

  // lu: the factors that were set.
  void solve(const Lu& lu, double* x);             ///< x <- A^+ x
  void solve_transposed(const Lu& lu, double* x);  ///< x <- (A')^+ x

 private:
  void set_null_spaces(const Lu& lu);
  void make_orthonormal(std::vector<double>& vectors) const;
  void remove(const std::vector<double>& vectors, double* x) const;

  int k_ = 0;
  std::vector<int> r_, c_;
  std::vector<double> left_, right_;  // orthonormal bases of the null spaces of A' and A, vector after vector
  std::vector<double> b_;
};

}  // namespace lcp::linalg
