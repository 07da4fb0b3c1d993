#include "solver/active_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::solver {
namespace {

bool all_zero(const double* x, int n) {
  return std::all_of(x, x + n, [](double value) { return value == 0; });
}

}  // namespace

ActiveSet::ActiveSet(int n, double epsilon) : n_(n), epsilon_(epsilon), basis_(n), active_(n), x_(n) {}

void ActiveSet::set(const double* M, const double* z, const double* w) {
  M_ = M;
  valid_ = std::none_of(z, z + n_, [](double value) { return std::isnan(value); });
  if (!valid_) return;
  double largest_q = 0;
  for (int i = 0; i < n_; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n_;
    double q = w[i];
    for (int j = 0; j < n_; ++j) q -= row[j] * z[j];
    largest_q = std::max(largest_q, std::abs(q));
  }
  for (int i = 0; i < n_; ++i) {
    double largest = 0;
    for (int j = 0; j < n_; ++j) largest = std::max(largest, std::abs(M[static_cast<std::size_t>(j) * n_ + i]));
    active_[i] = z[i] > 0 && z[i] * largest > 8 * epsilon_ * largest_q;
  }
  basis_.factor(M, active_.data());
}

void ActiveSet::tangent(const double* r, double* dz, double* dw) {
  if (!valid_) {
    const double value = all_zero(r, n_) ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    std::fill_n(dz, n_, value);
    std::fill_n(dw, n_, value);
    return;
  }
  for (int i = 0; i < basis_.size(); ++i) x_[i] = -r[basis_.indices()[i]];
  basis_.solve(x_.data());
  std::fill_n(dz, n_, 0.0);
  for (int i = 0; i < basis_.size(); ++i) dz[basis_.indices()[i]] = x_[i];
  for (int i = 0; i < n_; ++i) {
    dw[i] = 0;
    if (active_[i]) continue;
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    double sum = r[i];
    for (int j = 0; j < basis_.size(); ++j) sum += row[basis_.indices()[j]] * x_[j];
    dw[i] = sum;
  }
}

void ActiveSet::adjoint(const double* g_z, const double* g_w, double* t) {
  if (!valid_) {
    const bool zero = all_zero(g_z, n_) && all_zero(g_w, n_);
    std::fill_n(t, n_, zero ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    return;
  }
  for (int j = 0; j < basis_.size(); ++j) x_[j] = -g_z[basis_.indices()[j]];
  for (int i = 0; i < n_; ++i) {
    t[i] = 0;
    if (active_[i]) continue;
    t[i] = g_w[i];
    if (g_w[i] == 0) continue;
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    for (int j = 0; j < basis_.size(); ++j) x_[j] -= row[basis_.indices()[j]] * g_w[i];
  }
  basis_.solve_transposed(x_.data());
  for (int j = 0; j < basis_.size(); ++j) t[basis_.indices()[j]] = x_[j];
}

}  // namespace lcp::solver
