// Enumeration of the complementary bases.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "linalg/basis.h"
#include "solver/lemke.h"
#include "solver/termination.h"

namespace lcp::solver {

/// q lies in one of the 2^n complementary cones, spanned for each choice a of basic z by the columns of -M in a and of
/// I elsewhere, exactly where the LCP has a solution [Murty, 1988, sec. 1.1]. Tries every a with regular M_aa, then
/// every other one, whose cone may have solutions of its own: the nearest point of the cone to q is itself an LCP with
/// a semidefinite matrix, which Lemke's method solves. So kFailed says that there is no solution, to within round-off.
/// Allocates in the constructor, and for a singular M_aa as Basis does.
class Enumeration {
 public:
  explicit Enumeration(int n);

  /// M: n x n row-major, q: n, both finite and of about unit size. is_solution: whether z(), the candidate of basic(),
  /// is a solution; it is called for one basis after another, until it says so.
  Termination run(const double* M, const double* q, std::int64_t max_bases, const std::function<bool()>& is_solution);

  /// In is_solution, and after kCandidate: z >= 0, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t bases() const { return bases_; }  ///< factored in the last run

 private:
  bool next();
  void solve_regular();
  bool try_singular(const std::function<bool()>& is_solution);

  int n_;
  linalg::Basis basis_;
  Lemke lemke_;
  const double* M_ = nullptr;
  const double* q_ = nullptr;
  std::vector<unsigned char> basic_;
  std::vector<double> z_, x_, columns_, gram_, projected_;
  std::int64_t bases_ = 0;
};

}  // namespace lcp::solver
