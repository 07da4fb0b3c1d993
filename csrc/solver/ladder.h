// From (M, q) to a verified solution or a true status: what is tried, in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/status.h"
#include "linalg/basis.h"
#include "solver/central_path.h"
#include "solver/enumeration.h"
#include "solver/farkas.h"
#include "solver/lemke.h"
#include "solver/newton_min.h"
#include "solver/verify.h"

namespace lcp::solver {

enum class Method {
  kAuto,         ///< the whole ladder, see Rung
  kLemke,        ///< one run of Lemke's method with d = e
  kEnumeration,  ///< complementary bases, one after another
  kNewtonMin,    ///< Newton's method on min(z, w) = 0
  kCentralPath,  ///< one path z_i w_i = kappa, followed to kappa = 0
};

struct Settings {
  Method method = Method::kAuto;
  double tolerance = default_tolerance(false);  ///< see verify.h
  /// For one problem, all rungs together: pivots of Lemke's method, bases tried, Newton steps. Absent: 30 n pivots for
  /// each run of Lemke, 2^20 bases, 30 + n steps of Newton-min, 1500 steps along all paths.
  std::optional<std::int64_t> max_pivots;
  bool single_precision = false;  ///< z is rounded to float before it is verified
};

/// The steps of Method::kAuto, in the order in which they are tried; docs/solvers.md has what each was measured to be
/// worth.
enum class Rung {
  kTrivial,            ///< q >= 0: z = 0
  kGuess,              ///< the basis that was proposed: one solve
  kNewtonMin,          ///< M symmetric with positive diagonal, n >= 16: a few M_aa where Lemke needs many pivots
  kLemke,              ///< d = e. A pivot tolerance of 1e-8 keeps bases of redundant contacts apart from round-off
  kTightLemke,         ///< pivot tolerance 1e-12, tie tolerance 1e-14
  kEquilibrated,       ///< Lemke with rows and columns of like size: entries of many orders of magnitude
  kTightEquilibrated,  ///< the same with tight tolerances
  kRowScaled,          ///< Lemke with rows in the size of q, then columns of like size
  /// Lemke on M + s max|M| I, s the precision of the entries: rounding makes a singular semidefinite M indefinite, and
  /// Lemke then may end on a ray that the exact M does not have.
  kShifted,
  /// A proof that there is no solution since M z + q >= 0 has none. Not before, since rounding also makes solvable
  /// problems infeasible, though they have a z within the tolerance.
  kFarkas,
  kEnumeration,  ///< n <= 10: every complementary basis. Here the ladder of small problems ends
  /// Lemke with up to eight random covering vectors, each of which walks another path of bases: past a ray, and past
  /// the exponentially long path that [Murty, 1988, ch. 6] builds for d = e.
  kCovers,
  kCentralPath,  ///< up to twenty paths: for rays that no covering vector avoids
};

/// Solves one problem after another of the same n. Each claim of an algorithm is verified on the data as they were
/// given, and where that fails or is not near round-off, its basis is solved afresh and verified again. Allocates in
/// the constructor, when a rung is first reached, in kFarkas, and for a basis near singular as Basis does.
class Ladder {
 public:
  Ladder(int n, const Settings& settings);

  /// M: n x n row-major, q, z, w: n. guess: n, whose positive entries propose the active set, or nullptr. Where the
  /// status is not kSolved, z and w are NaN.
  Status solve(const double* M, const double* q, const double* guess, double* z, double* w);

  std::int64_t pivots() const { return pivots_; }  ///< spent on the last problem, in the units of Settings::max_pivots

  Rung rung() const { return rung_; }  ///< the last that the last problem needed

  /// After kInfeasible: y >= 0, n, with M'y <= 0 and q'y < 0.
  const double* farkas() const { return farkas_->y(); }

 private:
  enum class Matrix { kGiven, kEquilibrated, kRowScaled, kShifted };

  bool load(const double* M, const double* q);
  linalg::Rows matrix() const { return {n_, matrix_, spans_.data()}; }
  const double* unit_matrix();
  Status climb(const double* guess);
  Status climb_all(const double* guess);
  bool applies(Rung rung, const double* guess);
  bool holds(Rung rung, const double* guess);

  std::int64_t budget(std::int64_t usual) const;
  bool spend(std::int64_t pivots, Termination end);
  bool try_lemke(Lemke::Options options, Matrix matrix);
  bool try_zero();
  bool symmetric_with_positive_diagonal();
  bool try_newton_min();
  bool try_enumeration();
  bool try_covers();
  bool try_central_path(std::uint64_t starts);
  bool try_guess(const double* guess);
  bool proves_infeasible();

  void equilibrate_once();
  void scale_rows_by_q();
  void shift_diagonal();
  double violation_of(const double* z, int z_exponent);
  bool is_near_round_off(double claim) const;
  bool keep_better(double& claim);
  bool accept(double claim, const unsigned char* basic);
  void solve_basis(const unsigned char* basic, double* z);
  bool write(double* z, double* w);

  int n_;
  Settings settings_;
  std::optional<Lemke> lemke_;
  std::optional<NewtonMin> newton_min_;
  std::optional<Enumeration> enumeration_;
  std::optional<CentralPath> central_path_;
  std::optional<Farkas> farkas_;
  std::optional<linalg::Basis> basis_;
  const double* given_M_ = nullptr;
  const double* given_q_ = nullptr;
  // The problem scaled by powers of two, so that the largest entry of q_ lies in [0.5, 1):
  // w = M z + q  <=>  w 2^-f = (M 2^-e)(z 2^(e-f)) + q 2^-f.
  // Claims are verified on matrix_ = M 2^-e, in whose units z_ is: M as it was given, e = 0, but where products with
  // its entries may under- or overflow.
  std::vector<double> q_, z_, w_, trial_z_, trial_w_, x_;
  const double* matrix_ = nullptr;
  std::vector<linalg::Span> spans_;
  int matrix_exponent_ = 0;
  int vector_exponent_ = 0;
  bool scaled_exactly_ = true;
  // matrix_ 2^-unit_exponent_, whose largest entry lies in [0.5, 1): when a rung first asks for it.
  std::vector<double> M_;
  int unit_exponent_ = 0;
  bool has_unit_matrix_ = false;
  std::vector<unsigned char> marked_;
  // That with rows and columns scaled by r and c, and q brought to unit size, or with its diagonal shifted: when a rung
  // first asks for it.
  bool is_equilibrated_ = false;
  std::vector<double> scaled_M_, scaled_q_;
  std::vector<int> row_exponent_, column_exponent_;
  int scaled_exponent_ = 0;
  Rung rung_ = Rung::kTrivial;
  std::int64_t pivots_ = 0;
  bool ran_out_ = false;
};

}  // namespace lcp::solver
