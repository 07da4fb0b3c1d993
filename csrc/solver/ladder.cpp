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
  rung_ = nullptr;
  Status status = Status::kBadInput;
  if (climb_.problem.load(M, q)) {
    switch (decide()) {
      case Decision::kSolved:
        std::copy_n(climb_.candidate.given_z(), climb_.n, z);
        std::copy_n(climb_.candidate.given_w(), climb_.n, w);
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
    if (!rung.applies(climb_)) continue;
    rung_ = &rung;
    const Decision decision = rung.attempt(climb_);
    if (decision != Decision::kUndecided) return decision;
  }
  return all ? Decision::kUndecided : attempt(climb_.settings.method, climb_);
}

}  // namespace lcp::solver
