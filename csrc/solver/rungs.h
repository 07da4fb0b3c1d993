// The rungs of the ladder: the attempts of Method::kAuto, in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solver/candidate.h"
#include "solver/central_path.h"
#include "solver/enumeration.h"
#include "solver/farkas.h"
#include "solver/lemke.h"
#include "solver/newton_min.h"
#include "solver/scaled_problem.h"
#include "solver/settings.h"

namespace lcp::solver {

/// The state that the rungs share while one problem is solved: the problem, the candidate, the remaining budget, and
/// the algorithms, whose memory is allocated when one is first used.
struct Climb {
  Climb(int n, const Settings& settings);

  /// The budget of an algorithm's run; `usual` where the caller sets no limit.
  std::int64_t budget(std::int64_t usual);
  /// Counts the pivots of a run; returns whether the run ended with a candidate.
  bool spend(std::int64_t pivots, Termination end);

  int n;
  Settings settings;
  ScaledProblem problem;
  Candidate candidate;
  const double* guess = nullptr;  ///< n, or nullptr
  std::int64_t pivots = 0;        ///< spent, in the units of Settings::max_pivots
  bool caller_limits = false;     ///< whether ending at the budget of this run is Status::kPivotLimit
  bool ran_out = false;           ///< whether such a run used it up

  std::optional<Lemke> lemke;
  std::optional<NewtonMin> newton_min;
  std::optional<Enumeration> enumeration;
  std::optional<CentralPath> central_path;
  std::optional<Farkas> farkas;
  std::vector<double> z;              ///< scratch, n
  std::vector<double> diagonal;       ///< scratch, n
  std::vector<unsigned char> marked;  ///< scratch, n
};

enum class Decision {
  kSolved,      ///< the candidate is a solution
  kInfeasible,  ///< there is a proof that none exists
  kUndecided    ///< the next rung is to be tried
};

struct Rung {
  const char* name;  ///< as in docs/solvers.md, which says what each rung is for and was measured to be worth
  bool (*applies)(Climb& climb);
  Decision (*attempt)(Climb& climb);
  /// Whether the rung is also tried where earlier ones have found a solution that does not hold in all rows, see
  /// Candidate::row_residual(). A rung in units of M's rows and columns may find a better one.
  bool may_improve = false;
};

/// All rungs, in the order in which they are tried.
std::span<const Rung> rungs();
/// The rungs that every method begins with: the trivial solution and the guess.
std::span<const Rung> first_rungs();

/// One algorithm alone, for a Method other than kAuto; after the trivial solution and the guess.
Decision attempt(Method method, Climb& climb);

}  // namespace lcp::solver
