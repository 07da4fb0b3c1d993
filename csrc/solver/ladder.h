// From (M, q) to a verified solution or a true status: what is tried, in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/status.h"
#include "solver/basis.h"
#include "solver/lemke.h"

namespace lcp::solver {

enum class Method {
  kAuto,   ///< the whole ladder below
  kLemke,  ///< its first rung alone
};

struct Settings {
  Method method = Method::kAuto;
  double tolerance = 1e-9;                 ///< see verify.h
  std::optional<std::int64_t> max_pivots;  ///< for one problem, all rungs together; absent: 30 n for each rung
  bool single_precision = false;           ///< z is rounded to float before it is verified
};

/// Solves one problem after another of the same n. Allocates in the constructor, when it first equilibrates a problem,
/// and for a basis near singular as Basis does.
///
/// The rungs, each followed by the verification of its claim and, where that fails or is not near round-off, by a
/// fresh solve of the basis it ended with:
///   1. q >= 0: z = 0.
///   2. Lemke with d = e. A pivot tolerance of 1e-8 keeps the bases of redundant contacts apart from round-off.
///   3. Lemke with pivot tolerance 1e-12 and tie tolerance 1e-14, then both runs again on the equilibrated problem: for
///      entries that differ by many orders of magnitude.
///   4. Lemke on M + s max|M| I, s the precision of the entries: rounding makes a singular semidefinite M indefinite,
///   and
///      Lemke then may end on a ray that the exact M does not have. The claim is verified on M itself, as all are.
///   5. Lemke with up to eight random covering vectors, each of which walks another path of bases: past a ray, and
///      past the exponentially long path that [Murty, 1988, ch. 6] builds for d = e.
class Ladder {
 public:
  Ladder(int n, const Settings& settings);

  /// M: n x n row-major, q, z, w: n. Where the status is not kSolved, z and w are NaN.
  Status solve(const double* M, const double* q, double* z, double* w);

  std::int64_t pivots() const { return pivots_; }  ///< spent on the last problem

 private:
  bool load(const double* M, const double* q);
  Status climb();
  Lemke::End run(std::size_t rung, const Lemke::Options& options);
  void equilibrate_once();
  bool accept();
  bool write(double* z, double* w);

  int n_;
  Settings settings_;
  Lemke lemke_;
  Basis basis_;
  // The problem scaled by powers of two, so that the largest entries of M_ and q_ lie in [0.5, 1):
  // w = M z + q  <=>  w 2^-f = (M 2^-e)(z 2^(e-f)) + q 2^-f.
  std::vector<double> M_, q_, z_, w_, trial_z_, trial_w_, x_;
  int matrix_exponent_ = 0;
  int vector_exponent_ = 0;
  // The same with rows and columns of like size, made when a rung first asks for it.
  bool is_equilibrated_ = false;
  std::vector<double> equilibrated_M_, equilibrated_q_;
  std::vector<int> row_exponent_, column_exponent_;
  int equilibrated_exponent_ = 0;  // of q
  std::int64_t pivots_ = 0;
};

}  // namespace lcp::solver
