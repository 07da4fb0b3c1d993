// LU factors with partial pivoting in memory that is allocated once.
#pragma once

#include <cstddef>
#include <vector>

namespace lcp::linalg {

/// A k x k matrix, k <= n, factored and solved with in place, where a library's decomposition would allocate for each
/// new k. Allocates only in the constructor.
class Lu {
 public:
  explicit Lu(int n);

  /// Where to put the matrix to factor: k x k row-major.
  double* matrix(int k);

  /// False where a pivot is 0 or not finite: then there is nothing to solve with.
  bool factor();

  void solve(double* x) const;             ///< x: k, in place: x <- A^-1 x
  void solve_transposed(double* x) const;  ///< x <- A^-T x

 private:
  const double* row(int i) const { return lu_.data() + static_cast<std::size_t>(i) * k_; }
  double* row(int i) { return lu_.data() + static_cast<std::size_t>(i) * k_; }

  int k_ = 0;
  std::vector<double> lu_;
  std::vector<int> swap_;
};

}  // namespace lcp::linalg
