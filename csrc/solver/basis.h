// Dense solves with the principal submatrix M_aa of a complementary basis.
#pragma once

#include <vector>

namespace lcp::solver {

/// LU factors with partial pivoting of M_aa, a = the marked rows and columns of M. Allocates only in the constructor,
/// but for a singular M_aa, whose minimum-norm least-squares solution comes from a complete orthogonal decomposition.
class Basis {
 public:
  explicit Basis(int n);

  /// M: n x n row-major; marked: n flags.
  void factor(const double* M, const unsigned char* marked);

  int size() const { return k_; }
  const int* indices() const { return index_.data(); }  ///< the marked indices, ascending
  bool singular() const { return singular_; }           ///< a pivot within round-off of 0

  /// x: k, in place, in the order of indices(): x <- M_aa^-1 x.
  void solve(double* x);
  /// x <- M_aa^-T x.
  void solve_transposed(double* x);

 private:
  void solve_least_squares(double* x, bool transposed);

  int n_;
  int k_ = 0;
  bool singular_ = false;
  const double* M_ = nullptr;
  std::vector<int> index_, swap_;
  std::vector<double> lu_;  // k x k row-major
};

}  // namespace lcp::solver
