// Enumeration of the complementary bases.
#pragma once

#include <cstdint>
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

  /// M: n x n row-major, q: n, both finite and of about unit size; tolerance: see verify.h. A z is proposed only after
  /// it has been verified.
  Termination run(const double* M, const double* q, double tolerance, std::int64_t max_bases);

  /// After kCandidate: z >= 0, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t bases() const { return bases_; }  ///< factored in the last run

 private:
  bool next();
  bool try_regular();
  bool try_singular();
  bool verified();

  int n_;
  linalg::Basis basis_;
  Lemke lemke_;
  const double* M_ = nullptr;
  const double* q_ = nullptr;
  double tolerance_ = 0;
  std::vector<unsigned char> basic_;
  std::vector<double> z_, w_, x_, columns_, gram_, projected_;
  std::int64_t bases_ = 0;
};

}  // namespace lcp::solver
