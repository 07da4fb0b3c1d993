// Dense solves with the principal submatrix M_aa of a complementary basis.
#pragma once

#include <Eigen/LU>
#include <optional>
#include <vector>

#include "linalg/lu.h"
#include "linalg/pseudo_inverse.h"

namespace lcp::linalg {

/// LU factors of M_aa, a = the marked rows and columns of M, with full pivoting: the last pivot of a partially pivoted
/// LU does not always show that redundant contacts make M_aa singular. Only a large M_aa whose estimated condition
/// number leaves no doubt is factored by blocks with partial pivoting, which is many times faster.
///
/// For a singular M_aa the minimum-norm least-squares solution is returned. Its rank is that of the equilibrated
/// matrix, since a small pivot may be that of small units. Where the other pivots are large and all that is left is
/// round-off, the matrix need not be equilibrated to tell. Allocates only in the constructor, but for a large M_aa, and
/// for one that is singular or near it.
class Basis {
 public:
  /// negligible: a pivot below this times the largest counts as 0; the relative size of the data's own errors.
  Basis(int n, double negligible);

  /// M: n x n row-major, must stay alive while this is used; marked: n flags.
  void factor(const double* M, const unsigned char* marked);

  bool regular() const { return pivots_ == k_; }
  int rank();  ///< of M_aa
  int size() const { return k_; }
  const int* indices() const { return index_.data(); }  ///< the marked indices, ascending

  /// x: k, in place, in the order of indices(): x <- M_aa^-1 x.
  void solve(double* x);
  /// x <- M_aa^-T x.
  void solve_transposed(double* x);

  /// Solves M_aa x = b. Entries of `x`, k numbers, that a singular M_aa does not determine keep their values. b is
  /// overwritten. Allocates for a large M_aa only; in a singular one, rows that contradict the others are ignored.
  void solve_near(double* b, double* x);

 private:
  void copy_to(double* target) const;  // M_aa, row-major
  const Lu& prepare_inverse();

  int n_;
  double negligible_;
  int k_ = 0;
  int pivots_ = 0;         // that are not negligible
  bool is_clear_ = false;  // whether the factors solve without loss; else inverse_ does
  const double* M_ = nullptr;
  std::vector<int> index_;
  Lu lu_;
  std::optional<Lu> equilibrated_;
  PseudoInverse inverse_;
  enum { kUnset, kOfLu, kOfEquilibrated } inverse_is_ = kUnset;
  Eigen::PartialPivLU<Eigen::MatrixXd> blocked_;
  bool is_blocked_ = false;  // whether blocked_ has the factors, and not lu_
};

}  // namespace lcp::linalg
