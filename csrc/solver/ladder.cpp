#include "solver/ladder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "linalg/equilibrate.h"
#include "linalg/scale.h"
#include "solver/verify.h"

namespace lcp::solver {

Ladder::Ladder(int n, const Settings& settings) : climb_(n, settings) {}

Status Ladder::solve(const double* M, const double* q, const double* guess, double* z, double* w) {
  climb_.pivots = 0;
  const Status status = solve_as_given(M, q, guess, z, w);
  const bool underflows = status == Status::kNotFound && !climb_.problem.is_exact();
  return underflows && climb_.settings.method == Method::kAuto ? solve_equilibrated(M, q, z, w) : status;
}

// Where entries of M are so far apart that some underflow when all are divided by the largest.
Status Ladder::solve_equilibrated(const double* M, const double* q, double* z, double* w) {
  const int n = climb_.n;
  std::vector<double> scaled_M(M, M + static_cast<std::ptrdiff_t>(n) * n), scaled_q(n);
  std::vector<int> r(n), c(n);
  linalg::equilibrate(n, scaled_M.data(), r.data(), c.data());
  for (int i = 0; i < n; ++i) scaled_q[i] = std::ldexp(q[i], -r[i]);
  Status status = solve_as_given(scaled_M.data(), scaled_q.data(), nullptr, z, w);
  if (status == Status::kSolved) {
    const bool rounds = climb_.settings.single_precision && !climb_.settings.derived;
    for (int i = 0; i < n; ++i) {
      z[i] = std::ldexp(z[i], -c[i]);
      if (rounds) z[i] = static_cast<float>(z[i]);
    }
    if (violation(n, 0, M, q, z, climb_.settings.tolerance, w) <= 1) {
      for (int i = 0; i < n; ++i) {
        w[i] = z[i] > 0 ? 0.0 : std::max(0.0, w[i]);
        if (rounds) w[i] = static_cast<float>(w[i]);
      }
      if (std::isfinite(linalg::largest_magnitude(w, static_cast<std::size_t>(n)))) return status;
    }
    status = Status::kNotFound;
  }
  // A proof that there is no solution would be one in these units.
  if (status == Status::kInfeasible) status = Status::kNotFound;
  std::fill_n(z, n, std::numeric_limits<double>::quiet_NaN());
  std::fill_n(w, n, std::numeric_limits<double>::quiet_NaN());
  return status;
}

Status Ladder::solve_as_given(const double* M, const double* q, const double* guess, double* z, double* w) {
  climb_.ran_out = false;
  climb_.candidate.forget();
  climb_.guess = guess;
  rung_ = kept_rung_ = nullptr;
  Status status = Status::kBadInput;
  if (climb_.problem.load(M, q)) {
    switch (decide()) {
      case Decision::kSolved:
        std::copy_n(kept_rung_ != nullptr ? kept_z_.data() : climb_.candidate.given_z(), climb_.n, z);
        std::copy_n(kept_rung_ != nullptr ? kept_w_.data() : climb_.candidate.given_w(), climb_.n, w);
        return Status::kSolved;
      case Decision::kInfeasible:
        status = Status::kInfeasible;
        break;
      case Decision::kUndecided:
        status = climb_.ran_out ? Status::kPivotLimit : Status::kNotFound;
    }
  }
  std::fill_n(z, climb_.n, std::numeric_limits<double>::quiet_NaN());
  std::fill_n(w, climb_.n, std::numeric_limits<double>::quiet_NaN());
  return status;
}

Decision Ladder::decide() {
  const bool all = climb_.settings.method == Method::kAuto;
  for (const Rung& rung : all ? rungs() : first_rungs()) {
    if (kept_rung_ != nullptr && !rung.may_improve) continue;
    if (!rung.applies(climb_)) continue;
    rung_ = &rung;
    const Decision decision = rung.attempt(climb_);
    if (decision == Decision::kSolved && all && keep()) continue;
    if (decision != Decision::kUndecided) {
      kept_rung_ = nullptr;
      return decision;
    }
  }
  if (kept_rung_ != nullptr) {
    rung_ = kept_rung_;
    return Decision::kSolved;
  }
  return all ? Decision::kUndecided : attempt(climb_.settings.method, climb_);
}

// Keeps the candidate, if none before was as good, where it does not hold in all rows; returns whether it does not.
bool Ladder::keep() {
  const Candidate& candidate = climb_.candidate;
  if (candidate.holds_in_all_rows()) return false;
  if (kept_rung_ != nullptr && !(candidate.row_residual() < kept_residual_)) return true;
  kept_rung_ = rung_;
  kept_residual_ = candidate.row_residual();
  kept_z_.assign(candidate.given_z(), candidate.given_z() + climb_.n);
  kept_w_.assign(candidate.given_w(), candidate.given_w() + climb_.n);
  return true;
}

}  // namespace lcp::solver
