#include "solver/rungs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

#include "linalg/kernels.h"

namespace lcp::solver {
namespace {

// The n from which on Newton-min needs fewer operations than Lemke's method on definite problems.
constexpr int kNewtonMinSize = 16;

// The n above which the last rungs try less, since the time of each of their runs grows as n^3 or faster.
constexpr int kSlow = 100;

// The number of random covering vectors that are tried.
std::uint64_t covers(int n) { return n <= 2 * kSlow ? 8 : 2; }

// The number of central paths that are followed. path_steps: Newton steps along all of them, enough for one path.
constexpr std::uint64_t kPaths = 20;
std::int64_t path_steps(int n) {
  const std::int64_t times = std::max(1, n / kSlow);
  return std::max<std::int64_t>(100, 1500 / (times * times));
}

// The asymmetry that rounding causes in a product such as J M^-1 J', in units of the precision of the entries.
constexpr double kAsymmetry = 16;

// Newton steps within the last basis of Newton-min, where its solution is not near round-off.
constexpr int kRefinements = 2;

// Lemke's options where entries of many orders of magnitude leave small pivots that are not round-off.
constexpr Lemke::Options kTight = {.pivot_tolerance = 1e-12, .tie_tolerance = 1e-14};

// Units of rows, or of columns, are alike where they differ by no more than 2 to this power.
constexpr int kLikeUnits = 3;

Decision solved_if(bool solved) { return solved ? Decision::kSolved : Decision::kUndecided; }

bool is_small(Climb& climb) { return climb.n <= kEnumerable && !climb.settings.quick; }
bool is_large(Climb& climb) { return climb.n > kEnumerable && !climb.settings.quick; }
// Small problems with a solution that rounding to the caller's precision spoils skip these rungs, which would find it
// again; enumeration finds all other solutions.
bool seeks_any(Climb& climb) { return climb.n > kEnumerable || !climb.candidate.has_lost_solution(); }
bool seeks_proof(Climb& climb) { return !climb.settings.quick && seeks_any(climb); }
bool has_bounds(Climb& climb) {
  if (!seeks_any(climb)) return false;
  const double* row = climb.problem.matrix().M;
  for (int i = 0; i < climb.n; ++i, row += climb.n) {
    if (bounds_from_above(climb.n, row, climb.problem.q()[i])) return true;
  }
  return false;
}
bool has_guess(Climb& climb) { return climb.guess != nullptr; }
bool has_nonnegative_q(Climb& climb) {
  return std::all_of(climb.problem.q(), climb.problem.q() + climb.n, [](double x) { return x >= 0; });
}

bool is_symmetric_with_positive_diagonal(Climb& climb) {
  const linalg::Rows M = climb.problem.matrix();
  double* const diagonal = climb.diagonal.data();
  for (int i = climb.n - 1; i >= 0; --i) {  // the zeros of friction problems are at the end
    diagonal[i] = M.M[static_cast<std::size_t>(i) * (climb.n + 1)];
    if (!(diagonal[i] > 0)) return false;
  }
  const double precision = climb.settings.single_precision ? std::numeric_limits<float>::epsilon() / 2.0
                                                           : std::numeric_limits<double>::epsilon() / 2;
  return linalg::kernels().rows.is_symmetric(M, diagonal, kAsymmetry * precision);
}

bool suits_newton_min(Climb& climb) { return climb.n >= kNewtonMinSize && is_symmetric_with_positive_diagonal(climb); }

Decision take_zero(Climb& climb) {
  climb.candidate.set_zero(climb.problem);
  return solved_if(climb.candidate.is_solution(climb.problem));
}

NewtonMin& newton_min(Climb& climb) {
  if (!climb.newton_min) climb.newton_min.emplace(climb.n);
  return *climb.newton_min;
}

// Tries the basis of the guess's positive entries. Variables that a singular M_aa does not determine are taken from the
// guess.
Decision try_guess(Climb& climb) {
  for (int i = 0; i < climb.n; ++i) climb.marked[i] = climb.guess[i] > 0;
  if (suits_newton_min(climb) &&
      newton_min(climb).try_basis(climb.problem.matrix(), climb.problem.q(), climb.marked.data())) {
    climb.candidate.set(climb.problem, climb.newton_min->z(), 0);
  } else {
    climb.candidate.set_basis(climb.problem, climb.marked.data(), climb.guess);
  }
  return solved_if(climb.candidate.is_solution(climb.problem));
}

// A run of Newton-min; gives_up: see NewtonMin::run.
bool run_newton_min(Climb& climb, bool symmetric, bool gives_up) {
  NewtonMin& newton = newton_min(climb);
  const Termination end =
      newton.run(climb.problem.matrix(), symmetric, climb.problem.q(), climb.budget(30 + climb.n), gives_up);
  return climb.spend(newton.steps(), end);
}

Decision accept_newton_min(Climb& climb) {
  Candidate& candidate = climb.candidate;
  NewtonMin& newton = *climb.newton_min;
  candidate.set(climb.problem, newton.z(), 0);
  for (int k = 0; k < kRefinements && !candidate.is_near_round_off() && std::isfinite(candidate.violation()); ++k) {
    newton.refine(candidate.w());
    if (!candidate.improve(climb.problem, newton.z(), 0)) break;
  }
  return solved_if(candidate.accept(climb.problem, newton.basic()));
}

Decision try_newton_min(Climb& climb) {
  return run_newton_min(climb, true, true) ? accept_newton_min(climb) : Decision::kUndecided;
}

// Newton-min as the method that the caller names: M may be neither symmetric nor definite.
Decision insist_on_newton_min(Climb& climb) {
  const bool symmetric = is_symmetric_with_positive_diagonal(climb);
  if (run_newton_min(climb, symmetric, false)) return accept_newton_min(climb);
  if (!symmetric || climb.ran_out) return Decision::kUndecided;
  return run_newton_min(climb, false, false) ? accept_newton_min(climb) : Decision::kUndecided;
}

// Runs Lemke's method on options.unit M and q, which have unit size or were equilibrated or scaled by rows.
bool run_lemke(Climb& climb, const double* M, const double* q, Lemke::Options options) {
  if (!climb.lemke) climb.lemke.emplace(climb.n);
  options.max_pivots = climb.budget(std::int64_t{30} * climb.n);
  const Termination end = climb.lemke->run(M, q, options);
  return climb.spend(climb.lemke->pivots(), end);
}

Decision try_lemke(Climb& climb, Lemke::Options options) {
  const ScaledProblem& problem = climb.problem;
  Candidate& candidate = climb.candidate;
  options.unit = std::ldexp(1.0, -problem.normalized_exponent());
  if (!run_lemke(climb, problem.matrix().M, problem.q(), options)) return Decision::kUndecided;
  candidate.set(problem, climb.lemke->z(), -problem.normalized_exponent());
  if (!candidate.is_near_round_off() && std::isfinite(candidate.violation())) {
    climb.lemke->refine(candidate.w());
    candidate.improve(problem, climb.lemke->z(), -problem.normalized_exponent());
  }
  return solved_if(candidate.accept(problem, climb.lemke->basic()));
}

// Runs Lemke's method after the problem has been equilibrated or scaled by rows.
Decision try_transformed(Climb& climb, const Lemke::Options& options) {
  ScaledProblem& problem = climb.problem;
  if (!run_lemke(climb, problem.transformed_matrix(), problem.transformed_q(), options)) return Decision::kUndecided;
  problem.untransform(climb.lemke->z(), climb.z.data());
  climb.candidate.set(problem, climb.z.data(), -problem.normalized_exponent());
  return solved_if(climb.candidate.accept(problem, climb.lemke->basic()));
}

Decision try_plain_lemke(Climb& climb) { return try_lemke(climb, {}); }

Decision try_tight_lemke(Climb& climb) { return try_lemke(climb, kTight); }

Decision try_equilibrated(Climb& climb) {
  climb.problem.equilibrate();
  return try_transformed(climb, {});
}

Decision try_tight_equilibrated(Climb& climb) {
  climb.problem.equilibrate();
  return try_transformed(climb, kTight);
}

Decision try_scaled_rows(Climb& climb) {
  climb.problem.scale_rows_by_q();
  return try_transformed(climb, {});
}

// Rounding makes a singular semidefinite M indefinite, and Lemke's method may then end on a ray that the exact M does
// not have. The shift is the precision of the entries.
Decision try_shifted(Climb& climb) {
  ScaledProblem& problem = climb.problem;
  problem.shift_diagonal(climb.settings.single_precision ? 1e-7 : 1e-15);
  if (!run_lemke(climb, problem.transformed_matrix(), problem.q(), {})) return Decision::kUndecided;
  climb.candidate.set(problem, climb.lemke->z(), -problem.normalized_exponent());
  return solved_if(climb.candidate.accept(problem, climb.lemke->basic()));
}

Decision try_bounded(Climb& climb) { return try_lemke(climb, {.bounded = true}); }

// to_normalized: converts the enumeration's z, for these M and q, into one of the problem with the normalized matrix.
Decision run_enumeration(Climb& climb, const double* M, const double* q,
                         const std::function<const double*(const double* z)>& to_normalized) {
  if (!climb.enumeration) climb.enumeration.emplace(climb.n);
  // Two references, which std::function holds without allocating.
  const auto is_solution = [&climb, &to_normalized] {
    return climb.candidate.set_if_solution(climb.problem, to_normalized(climb.enumeration->z())) &&
           climb.candidate.accept(climb.problem, climb.enumeration->basic());
  };
  const Termination end = climb.enumeration->run(M, q, climb.budget(std::int64_t{1} << 20), is_solution);
  return solved_if(climb.spend(climb.enumeration->bases(), end));
}

Decision try_enumeration(Climb& climb) {
  return run_enumeration(climb, climb.problem.normalized_matrix(), climb.problem.q(),
                         [](const double* z) { return z; });
}

// Enumerates after the problem has been equilibrated or scaled by rows.
Decision enumerate_transformed(Climb& climb) {
  return run_enumeration(climb, climb.problem.transformed_matrix(), climb.problem.transformed_q(),
                         [&](const double* z) {
                           climb.problem.untransform(z, climb.z.data());
                           return climb.z.data();
                         });
}

// Tries all bases, also in other units, on which the nearest point of a singular cone depends. From here on it does not
// matter whether earlier rungs ran out of their budgets.
Decision enumerate_all(Climb& climb) {
  climb.ran_out = false;
  if (try_enumeration(climb) == Decision::kSolved) return Decision::kSolved;
  ScaledProblem& problem = climb.problem;
  problem.equilibrate();
  if (problem.unit_spread() <= kLikeUnits) return Decision::kUndecided;
  if (enumerate_transformed(climb) == Decision::kSolved) return Decision::kSolved;
  problem.scale_rows_by_q();
  return enumerate_transformed(climb);
}

Decision prove_infeasible(Climb& climb) {
  if (!climb.farkas) climb.farkas.emplace(climb.n);
  ScaledProblem& problem = climb.problem;
  problem.equilibrate();
  const Termination end = climb.farkas->run(problem.given().M, problem.given_q(), problem.row_exponents(),
                                            problem.column_exponents(), climb.budget(std::int64_t{60} * climb.n));
  if (!climb.spend(climb.farkas->pivots(), end)) return Decision::kUndecided;
  // The tolerance of single precision is so wide that an infeasible problem may have a z within it.
  const bool may_be_solved = climb.settings.single_precision && is_small(climb);
  return may_be_solved && enumerate_all(climb) == Decision::kSolved ? Decision::kSolved : Decision::kInfeasible;
}

// Each covering vector walks another path of bases: past a ray, and past the exponentially long path that
// [Murty, 1988, ch. 6] builds for d = e.
Decision try_covers(Climb& climb) {
  for (std::uint64_t cover = 1; cover <= covers(climb.n); ++cover) {
    if (try_lemke(climb, {.cover = cover}) == Decision::kSolved) return Decision::kSolved;
  }
  return Decision::kUndecided;
}

Decision follow_paths(Climb& climb, std::uint64_t paths) {
  if (!climb.central_path) climb.central_path.emplace(climb.n, 0);
  CentralPath& path = *climb.central_path;
  std::int64_t left = climb.budget(path_steps(climb.n));
  for (std::uint64_t start = 0; start < paths; ++start) {
    const Termination end = path.run(climb.problem.normalized_matrix(), climb.problem.q(), start, left);
    left -= path.steps();
    if (climb.spend(path.steps(), end)) {
      climb.candidate.set(climb.problem, path.z(), -climb.problem.normalized_exponent());
      if (climb.candidate.accept(climb.problem, path.basic())) return Decision::kSolved;
    }
    if (end == Termination::kBudget) break;
  }
  return Decision::kUndecided;
}

Decision follow_all_paths(Climb& climb) { return follow_paths(climb, kPaths); }

constexpr std::array<Rung, 14> kRungs = {{
    {"q >= 0", has_nonnegative_q, take_zero},
    {"guess", has_guess, try_guess},
    {"newton_min", suits_newton_min, try_newton_min},
    {"lemke", seeks_any, try_plain_lemke, true},
    {"tight", seeks_any, try_tight_lemke, true},
    {"equilibrated", seeks_any, try_equilibrated, true},
    {"tight equilibrated", seeks_any, try_tight_equilibrated, true},
    {"row-scaled", seeks_any, try_scaled_rows, true},
    {"shifted", seeks_any, try_shifted},
    {"bounded", has_bounds, try_bounded},
    // Farkas comes late, since rounding also makes problems infeasible that have a z within the tolerance.
    {"Farkas", seeks_proof, prove_infeasible},
    {"enumeration", is_small, enumerate_all},
    {"covers", is_large, try_covers},
    {"central path", is_large, follow_all_paths},
}};

}  // namespace

Climb::Climb(int size, const Settings& how)
    : n(size), settings(how), problem(size), candidate(size, how), z(size), diagonal(size), marked(size) {}

std::int64_t Climb::budget(std::int64_t usual) {
  const bool all = settings.method == Method::kAuto;
  caller_limits = !all && n > kEnumerable;
  if (!settings.max_pivots) return usual;
  const std::int64_t left = *settings.max_pivots - pivots;
  caller_limits = !all || left < usual;
  return all ? std::min(usual, left) : left;
}

bool Climb::spend(std::int64_t spent, Termination end) {
  pivots += spent;
  ran_out = ran_out || (end == Termination::kBudget && caller_limits);
  return end == Termination::kCandidate;
}

std::span<const Rung> rungs() { return kRungs; }

std::span<const Rung> first_rungs() { return rungs().first(2); }

Decision attempt(Method method, Climb& climb) {
  switch (method) {
    case Method::kLemke:
      return try_plain_lemke(climb);
    case Method::kEnumeration:
      return try_enumeration(climb);
    case Method::kNewtonMin:
      return insist_on_newton_min(climb);
    case Method::kCentralPath:
      return follow_paths(climb, 1);
    case Method::kAuto:
      break;
  }
  return Decision::kUndecided;
}

}  // namespace lcp::solver
