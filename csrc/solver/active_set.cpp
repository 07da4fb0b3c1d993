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

// Entries of contact problems carry errors of some epsilon: those of their rounding in float, of the products J A^-1 J'
// in double.
ActiveSet::ActiveSet(int n, bool single_precision)
    : n_(n),
      epsilon_(single_precision ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()),
      basis_(n, single_precision ? 1e-5 : 1e-12),
      active_(n),
      x_(n),
      effect_(n) {}

void ActiveSet::set(const double* M, const double* z, const double* w) {
  M_ = M;
  valid_ = std::none_of(z, z + n_, [](double value) { return std::isnan(value); });
  if (!valid_) return;
  double largest = 0;
  std::fill(effect_.begin(), effect_.end(), 0.0);
  for (int i = 0; i < n_; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n_;
    double scale = 0;
    for (int j = 0; j < n_; ++j) scale = std::max(scale, std::abs(row[j]));
    if (scale == 0) continue;
    for (int j = 0; j < n_; ++j) effect_[j] = std::max(effect_[j], std::abs(row[j]) / scale);
    largest = std::max(largest, w[i] / scale);
  }
  for (int j = 0; j < n_; ++j) {
    effect_[j] *= z[j];
    largest = std::max(largest, effect_[j]);
  }
  for (int j = 0; j < n_; ++j) active_[j] = z[j] > 0 && effect_[j] > 8 * epsilon_ * largest;
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
