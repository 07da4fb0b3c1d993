#include "solver/ladder.h"

#include <algorithm>
#include <limits>

namespace lcp::solver {

Ladder::Ladder(int n, const Settings& settings) : climb_(n, settings) {}

Status Ladder::solve(const double* M, const double* q, const double* guess, double* z, double* w) {
  climb_.pivots = 0;
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

// Returns whether the candidate fails to hold in all rows. Such a candidate is kept if none before was as good.
bool Ladder::keep() {
  Candidate& candidate = climb_.candidate;
  const double residual = candidate.row_residual(climb_.problem);
  if (residual == 0) return false;
  if (kept_rung_ != nullptr && !(residual < kept_residual_)) return true;
  kept_rung_ = rung_;
  kept_residual_ = residual;
  kept_z_.assign(candidate.given_z(), candidate.given_z() + climb_.n);
  kept_w_.assign(candidate.given_w(), candidate.given_w() + climb_.n);
  return true;
}

}  // namespace lcp::solver
