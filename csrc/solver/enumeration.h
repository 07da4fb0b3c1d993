// Enumeration of the complementary bases.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "linalg/basis.h"
#include "solver/lemke.h"
#include "solver/termination.h"

namespace lcp::solver {

/// The largest number of pairs for which all bases are tried before a problem counts as not solved.
inline constexpr int kEnumerable = 10;

/// The LCP has a solution exactly where q lies in one of the 2^n complementary cones. For each choice a of basic z, a
/// cone is spanned by the columns of -M in a and the columns of I elsewhere [Murty, 1988, sec. 1.1].
///
/// Every a with a regular M_aa is tried first, then every other one. For a singular M_aa the smallest z_a with M_aa z_a
/// = -q_a is tried, then the point of the cone nearest to q. That point solves an LCP with a semidefinite matrix, which
/// Lemke's method solves. So kFailed says that there is no solution, to within round-off. Unknowns of equations are
/// basic in all choices, and of any sign. Allocates in the constructor, and for a singular M_aa as Basis does.
class Enumeration {
 public:
  /// num_equations: the first so many of the n rows are equations.
  explicit Enumeration(int n, int num_equations = 0);

  /// M: n x n row-major, q: n, both finite and of about unit size. is_solution: whether z(), the candidate of basic(),
  /// is a solution; the run calls it for one basis after another, until it returns true.
  Termination run(const double* M, const double* q, std::int64_t max_bases, const std::function<bool()>& is_solution);

  /// Within is_solution and after kCandidate: z, which is >= 0 for pairs, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t bases() const { return bases_; }  ///< the number of bases that the last run factored

 private:
  bool next();
  void solve_basis();
  bool try_cone(const std::function<bool()>& is_solution);

  int n_, num_equations_;
  linalg::Basis basis_;
  Lemke lemke_;
  const double* M_ = nullptr;
  const double* q_ = nullptr;
  std::vector<unsigned char> basic_;
  std::vector<double> z_, x_;
  std::int64_t bases_ = 0;
};

}  // namespace lcp::solver
