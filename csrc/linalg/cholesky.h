// Factors of the definite principal submatrices M_aa of one matrix after another.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "linalg/kernels.h"

namespace lcp::linalg {

/// M_aa = U D^-1 U' without square roots, by panels of rows, each from its first nonzero on: a matrix of bandwidth b
/// costs k b^2 operations. Libraries' factorisations do not choose the instruction set when they run, do not skip the
/// zeros of an active set, and allocate; hence this one. Allocates only in the constructor.
class Cholesky {
 public:
  explicit Cholesky(int n);

  /// M: n x n, symmetric; index: k of its rows, ascending. False, without factors, where M_aa is not definite or
  /// so near singular that solutions would have few correct digits.
  bool factor(const Rows& M, const int* index, int k);

  /// x: k, in place: x <- M_aa^-1 x.
  void solve(double* x);

 private:
  struct alignas(64) Line {
    double numbers[8];
  };
  static std::unique_ptr<Line[]> lines(std::size_t numbers);

  const CholeskyKernels& kernels_;
  int k_ = 0;
  std::unique_ptr<Line[]> entries_, lower_, inverse_, x_;
  std::vector<Panel> panels_;
};

}  // namespace lcp::linalg
