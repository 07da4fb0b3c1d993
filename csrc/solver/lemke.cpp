#include "solver/lemke.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/random.h"

namespace lcp::solver {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Lemke::Lemke(int n)
    : n_(n),
      stride_((n + 3 + 7) / 8 * 8),
      tableau_(static_cast<std::size_t>(n) * stride_),
      row_variable_(n),
      column_variable_(n + 1),
      column_of_(2 * n + 1),
      z_(n),
      basic_(n) {}

End Lemke::run(const double* M, const double* q, const Options& options) {
  load(M, q, options.cover);
  const int artificial_row = first_row();  // z0 stays basic in this row until it leaves
  int r = artificial_row;
  int c = n_;
  for (pivots_ = 0; pivots_ < options.max_pivots;) {
    pivot(r, c);
    ++pivots_;
    const int left = column_variable_[c];
    if (left == artificial()) {
      read_solution();
      return End::kClaim;
    }
    c = column_of_[left < n_ ? left + n_ : left - n_];  // the complement of what left drives next
    r = ratio_test(c, artificial_row, options.pivot_tolerance, options.tie_tolerance);
    if (r < 0) return End::kStuck;
  }
  return End::kLimit;
}

void Lemke::load(const double* M, const double* q, std::uint64_t cover) {
  // A generic right-hand side decides ties as lexicographic ordering would, at the cost of one column.
  Random perturbation(12345 + cover);
  Random covering(cover);
  largest_q_ = 0;
  for (int i = 0; i < n_; ++i) {
    double* t = row(i);
    std::copy_n(M + static_cast<std::size_t>(i) * n_, n_, t);
    t[n_] = cover == 0 ? 1.0 : covering.uniform(0.5, 2.0);
    t[n_ + 1] = q[i];
    t[n_ + 2] = perturbation.uniform(0.5, 1.5);
    std::fill(t + n_ + 3, t + stride_, 0.0);
    row_variable_[i] = i;
    column_variable_[i] = n_ + i;
    column_of_[n_ + i] = i;
    largest_q_ = std::max(largest_q_, std::abs(q[i]));
  }
  column_variable_[n_] = artificial();
  column_of_[artificial()] = n_;
}

int Lemke::first_row() const {
  const auto ratio = [this](int i, int column) {
    const double* t = tableau_.data() + static_cast<std::size_t>(i) * stride_;
    return t[column] / t[n_];
  };
  int best = 0;
  for (int i = 1; i < n_; ++i) {
    const double a = ratio(i, n_ + 1);
    const double b = ratio(best, n_ + 1);
    if (a < b || (a == b && ratio(i, n_ + 2) < ratio(best, n_ + 2))) best = i;
  }
  return best;
}

void Lemke::pivot(int r, int c) {
  double* tr = row(r);
  const double inverse = 1.0 / tr[c];
  for (int j = 0; j < stride_; ++j) tr[j] *= -inverse;
  tr[c] = 0;
  for (int i = 0; i < n_; ++i) {
    double* t = row(i);
    const double factor = t[c];
    if (i == r || factor == 0) continue;
    for (int j = 0; j < stride_; ++j) t[j] += factor * tr[j];
    t[c] = factor * inverse;
  }
  tr[c] = inverse;
  std::swap(row_variable_[r], column_variable_[c]);
  column_of_[column_variable_[c]] = c;
}

// The row that blocks the driving column c first, or -1. The artificial variable wins a tie, since a solution is
// found when it leaves; the perturbation decides among the others. A right-hand side below 0 is round-off.
int Lemke::ratio_test(int c, int artificial_row, double pivot_tolerance, double tie_tolerance) {
  double largest = 0;
  for (int i = 0; i < n_; ++i) largest = std::max(largest, std::abs(row(i)[c]));
  const double threshold = -pivot_tolerance * largest;
  const auto ratio = [&](const double* t) { return t[c] < threshold ? std::max(0.0, t[n_ + 1]) / -t[c] : kInfinity; };

  double smallest = kInfinity;
  for (int i = 0; i < n_; ++i) smallest = std::min(smallest, ratio(row(i)));
  if (smallest == kInfinity) return -1;

  const double limit = smallest + tie_tolerance * std::max(smallest, 1e-3 * largest_q_);
  if (ratio(row(artificial_row)) <= limit) return artificial_row;
  int best = -1;
  double best_perturbation = kInfinity;
  for (int i = 0; i < n_; ++i) {
    const double* t = row(i);
    if (ratio(t) > limit) continue;
    const double perturbation = t[n_ + 2] / -t[c];
    if (best < 0 || perturbation < best_perturbation) {
      best = i;
      best_perturbation = perturbation;
    }
  }
  return best;
}

void Lemke::read_solution() {
  std::fill(z_.begin(), z_.end(), 0.0);
  std::fill(basic_.begin(), basic_.end(), static_cast<unsigned char>(0));
  for (int i = 0; i < n_; ++i) {
    const int variable = row_variable_[i] - n_;
    if (variable < 0) continue;
    z_[variable] = std::max(0.0, row(i)[n_ + 1]);
    basic_[variable] = 1;
  }
}

}  // namespace lcp::solver
