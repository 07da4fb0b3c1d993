// Enumeration of the complementary bases.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "linalg/basis.h"
#include "solver/lemke.h"
#include "solver/termination.h"

namespace lcp::solver {

/// Up to this many pairs all bases are tried before a problem counts as not solved.
inline constexpr int kEnumerable = 10;

/// q lies in one of the 2^n complementary cones, spanned for each choice a of basic z by the columns of -M in a and of
/// I elsewhere, exactly where the LCP has a solution [Murty, 1988, sec. 1.1]. Tries every a with regular M_aa, then
/// every other one: the smallest z_a with M_aa z_a = -q_a, and then the nearest point of the cone to q, which is itself
/// an LCP with a semidefinite matrix, which Lemke's method solves. So kFailed says that there is no solution, to within
/// round-off. Unknowns of equations are basic in all of them, and of any sign. Allocates in the constructor, and for a
/// singular M_aa as Basis does.
class Enumeration {
 public:
  /// Of n rows, the first num_equations are equations.
  explicit Enumeration(int n, int num_equations = 0);

  /// M: n x n row-major, q: n, both finite and of about unit size. is_solution: whether z(), the candidate of basic(),
  /// is a solution; it is called for one basis after another, until it says so.
  Termination run(const double* M, const double* q, std::int64_t max_bases, const std::function<bool()>& is_solution);

  /// In is_solution, and after kCandidate: z, of the pairs >= 0, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t bases() const { return bases_; }  ///< factored in the last run

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
