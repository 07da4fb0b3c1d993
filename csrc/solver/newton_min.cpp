#include "solver/newton_min.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace lcp::solver {
namespace {

constexpr int kPatience = 10;

// z and w this far below 0, beside the largest q, are round-off.
constexpr double kRoundOff = 64 * std::numeric_limits<double>::epsilon();

}  // namespace

NewtonMin::NewtonMin(int n) : n_(n), lu_(n), index_(n), x_(n), z_(n), w_(n), basic_(n) {}

End NewtonMin::run(const double* M, const double* q, std::int64_t max_steps) {
  double largest_q = 0;
  for (int i = 0; i < n_; ++i) {
    basic_[i] = q[i] < 0;
    largest_q = std::max(largest_q, std::abs(q[i]));
  }
  int fewest = n_ + 1;
  int patience = kPatience;
  for (steps_ = 0; steps_ < max_steps;) {
    ++steps_;
    if (!solve_basis(M, q)) return End::kStuck;
    double largest_z = 0;
    for (int i = 0; i < n_; ++i) largest_z = std::max(largest_z, std::abs(z_[i]));
    const auto wrong = [&](int i) {
      return basic_[i] ? z_[i] < -kRoundOff * largest_z : w_[i] < -kRoundOff * largest_q;
    };
    int count = 0;
    int last = -1;
    for (int i = 0; i < n_; ++i) {
      if (!wrong(i)) continue;
      ++count;
      last = i;
    }
    if (count == 0) {
      for (double& z : z_) z = std::max(0.0, z);
      return End::kClaim;
    }
    if (count < fewest) {
      fewest = count;
      patience = kPatience;
    } else {
      --patience;
    }
    if (patience < 0) {
      basic_[last] = !basic_[last];
      continue;
    }
    for (int i = 0; i < n_; ++i) {
      if (wrong(i)) basic_[i] = !basic_[i];
    }
  }
  return End::kLimit;
}

bool NewtonMin::solve_basis(const double* M, const double* q) {
  int k = 0;
  for (int i = 0; i < n_; ++i) {
    if (basic_[i]) index_[k++] = i;
  }
  double* target = lu_.matrix(k);
  for (int i = 0; i < k; ++i) {
    const double* source = M + static_cast<std::size_t>(index_[i]) * n_;
    for (int j = 0; j < k; ++j) *target++ = source[index_[j]];
    x_[i] = -q[index_[i]];
  }
  if (!lu_.factor()) return false;
  lu_.solve(x_.data());
  std::fill(z_.begin(), z_.end(), 0.0);
  for (int j = 0; j < k; ++j) z_[index_[j]] = x_[j];
  for (int i = 0; i < n_; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n_;
    w_[i] = basic_[i] ? 0.0 : q[i];
    if (basic_[i]) continue;
    for (int j = 0; j < k; ++j) w_[i] += row[index_[j]] * x_[j];
  }
  return std::all_of(x_.begin(), x_.begin() + k, [](double x) { return std::isfinite(x); });
}

}  // namespace lcp::solver
