#include "solver/active_set.h"

#include <algorithm>

#include "solver/pair_states.h"
#include "solver/singular.h"
#include "solver/unsolved.h"

namespace lcp::solver {

ActiveSet::ActiveSet(int n, bool single_precision, bool tied_active)
    : n_(n), tied_active_(tied_active), basis_(n, negligible_pivot(single_precision)), active_(n), x_(n) {}

void ActiveSet::set(const double* M, const std::int8_t* states) {
  M_ = M;
  valid_ = std::none_of(states, states + n_, [](std::int8_t state) { return state == PairState::kUnsolved; });
  if (!valid_) return;
  for (int i = 0; i < n_; ++i)
    active_[i] = states[i] == PairState::kBasic || (states[i] == PairState::kTied && tied_active_);
  basis_.factor(M, active_.data());
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
