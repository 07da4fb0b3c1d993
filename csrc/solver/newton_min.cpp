#include "solver/newton_min.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "linalg/scale.h"

namespace lcp::solver {
namespace {

// The number of exchanges in a row that may leave no fewer wrong pairs. After them only one pair is exchanged or, if
// the caller asks for the short patience, the method gives up.
constexpr int kPatience = 11;
constexpr int kShortPatience = 4;

// A z_i or w_i that is negative by less than this times max |q| is taken for round-off of 0.
constexpr double kRoundOffOfSign = 64 * std::numeric_limits<double>::epsilon();

}  // namespace

NewtonMin::NewtonMin(int n) : n_(n), cholesky_(n), index_(n), x_(n), z_(n), w_(n), basic_(n), wrong_(n) {}

Termination NewtonMin::run(const linalg::Rows& M, bool symmetric, const double* q, std::int64_t max_steps,
                           bool gives_up) {
  const int most_patience = gives_up ? kShortPatience : kPatience;
  symmetric_ = symmetric;
  for (int i = 0; i < n_; ++i) basic_[i] = q[i] < 0;
  const double least_w = -kRoundOffOfSign * linalg::largest_magnitude(q, z_.size());
  int fewest = n_ + 1;
  int patience = most_patience;
  for (steps_ = 0; steps_ < max_steps;) {
    ++steps_;
    if (!solve_basis(M, q)) return Termination::kFailed;
    const double least_z = -kRoundOffOfSign * largest_z_;
    int count = 0;
    for (int i = 0; i < n_; ++i) {  // without branches, which the processor could not predict
      wrong_[i] = static_cast<unsigned char>(static_cast<int>(z_[i] < least_z) | static_cast<int>(w_[i] < least_w));
      count += wrong_[i];
    }
    if (count == 0) {
      clamp();
      return Termination::kCandidate;
    }
    if (count < fewest) {
      fewest = count;
      patience = most_patience;
    } else {
      --patience;
    }
    if (patience <= 0) {
      if (gives_up) return Termination::kFailed;
      const auto last = std::find(wrong_.rbegin(), wrong_.rend(), 1);
      std::fill(wrong_.begin(), wrong_.end(), static_cast<unsigned char>(0));
      *last = 1;
    }
    for (int i = 0; i < n_; ++i) basic_[i] ^= wrong_[i];
  }
  return Termination::kBudget;
}

bool NewtonMin::try_basis(const linalg::Rows& M, const double* q, const unsigned char* basic) {
  std::copy_n(basic, n_, basic_.begin());
  list_basis();
  symmetric_ = true;
  std::fill(z_.begin(), z_.end(), 0.0);
  if (!factor(M) || !correct(q)) return false;
  clamp();
  return true;
}

void NewtonMin::refine(const double* w) {
  correct(w);
  clamp();
}

bool NewtonMin::solve_basis(const linalg::Rows& M, const double* q) {
  list_basis();
  std::fill(z_.begin(), z_.end(), 0.0);
  std::fill(w_.begin(), w_.end(), 0.0);
  if (!factor(M) || !correct(q)) return false;
  linalg::kernels().rows.listed_sums(M, n_ - k_, index_.data() + k_, q, z_.data(), w_.data());
  return true;
}

void NewtonMin::list_basis() {
  k_ = 0;
  for (int i = 0, others = 0; i < n_; ++i) {  // without branches, which the processor could not predict
    index_[k_] = index_[n_ - 1 - others] = i;
    k_ += basic_[i];
    others += 1 - basic_[i];
  }
}

bool NewtonMin::factor(const linalg::Rows& M) {
  if (symmetric_) return cholesky_.factor(M, index_.data(), k_);
  if (!lu_) lu_.emplace(n_, linalg::Pivoting::kPartial);
  double* target = lu_->matrix(k_);
  for (int i = 0; i < k_; ++i) {
    const double* source = M.M + static_cast<std::size_t>(index_[i]) * n_;
    for (int j = 0; j < k_; ++j) *target++ = source[index_[j]];
  }
  return lu_->factor(0) == k_;
}

// z_a -= M_aa^-1 w_a; false where that is not finite.
bool NewtonMin::correct(const double* w) {
  for (int j = 0; j < k_; ++j) x_[j] = w[index_[j]];
  if (symmetric_) {
    cholesky_.solve(x_.data());
  } else {
    lu_->solve(x_.data());
  }
  for (int j = 0; j < k_; ++j) z_[index_[j]] -= x_[j];
  largest_z_ = linalg::largest_magnitude(z_.data(), z_.size());
  return std::isfinite(largest_z_);
}

void NewtonMin::clamp() {
  for (double& z : z_) z = std::max(0.0, z);
}

}  // namespace lcp::solver
