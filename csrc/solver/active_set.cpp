#include "solver/active_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/unsolved.h"

namespace lcp::solver {

// Entries of contact problems carry errors of some epsilon: those of their rounding in float, of the products J A^-1 J'
// in double.
ActiveSet::ActiveSet(int n, int free, bool single_precision, bool tied_active)
    : n_(n),
      free_(free),
      epsilon_(single_precision ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()),
      tied_active_(tied_active),
      basis_(n, single_precision ? 1e-5 : 1e-12),
      active_(n),
      tied_(n),
      has_q_(n),
      role_(n),
      x_(n) {}

void ActiveSet::set(const double* M, const double* z, const double* w) {
  M_ = M;
  valid_ = std::none_of(z, z + n_, [](double value) { return std::isnan(value); });
  if (!valid_) return;
  find_active(z, w);
  basis_.factor(M, active_.data());
}

// A degenerate basic variable is 0 but for the solver's round-off. z_j is taken for one where its effect |M_ij| z_j is
// round-off in every row with q_i != 0, and, in the other rows, beside what such variables leave there.
void ActiveSet::find_active(const double* z, const double* w) {
  const double roundoff = 64 * epsilon_;
  std::fill(role_.begin(), role_.end(), Role::kUnseen);
  for (int i = 0; i < n_; ++i) {
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    double q = w[i];
    double total = w[i];
    for (int j = 0; j < n_; ++j) {
      q -= row[j] * z[j];
      total += std::abs(row[j] * z[j]);
    }
    has_q_[i] = std::abs(q) > roundoff * total;
    const double scale = std::abs(q) + total - w[i];
    tied_[i] = w[i] <= roundoff * scale;
    if (!has_q_[i]) continue;
    for (int j = 0; j < n_; ++j) {
      const double effect = std::abs(row[j] * z[j]);
      if (effect > roundoff * scale) {
        role_[j] = Role::kCounts;
      } else if (effect > 0 && role_[j] == Role::kUnseen) {
        role_[j] = Role::kRoundOff;
      }
    }
  }
  for (int j = 0; j < n_; ++j) active_[j] = j < free_ || (z[j] > 0 && role_[j] != Role::kRoundOff);
  for (int i = 0; i < n_; ++i) {
    if (has_q_[i]) continue;
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    double rest = 0;
    for (int j = 0; j < n_; ++j) rest += role_[j] == Role::kRoundOff ? 0.0 : std::abs(row[j] * z[j]);
    for (int j = 0; j < n_; ++j) {
      if (rest > 0 && std::abs(row[j] * z[j]) > roundoff * rest) active_[j] = 1;
    }
  }
  for (int j = 0; j < n_; ++j) {
    tied_[j] = tied_[j] && !active_[j];
    if (tied_[j] && tied_active_) active_[j] = 1;
  }
}

void ActiveSet::tangent(const double* r, double* dz, double* dw) {
  if (!valid_) {
    const double value = unsolved_derivative({r}, n_);
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
    std::fill_n(t, n_, unsolved_derivative({g_z, g_w}, n_));
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
