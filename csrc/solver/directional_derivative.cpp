#include "solver/directional_derivative.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "solver/mixed.h"
#include "solver/verify.h"

namespace lcp::solver {

DirectionalDerivative::DirectionalDerivative(int n, bool single_precision)
    : n_(n),
      single_precision_(single_precision),
      pair_states_(n, 0, single_precision),
      active_set_(n, single_precision, false),
      states_(n),
      w_(n),
      r_(n),
      dz_(n),
      dw_(n) {}

void DirectionalDerivative::set(const double* M, const double* q, const double* z) {
  M_ = M;
  z_ = z;
  complement(n_, M, q, z, w_.data());
  pair_states_.find(M, q, z, w_.data(), states_.data());
  active_set_.set(M, states_.data());
}

Status DirectionalDerivative::operator()(const double* dM, const double* dq, double* dz, double* dw) {
  bool ties = false;
  bool finite = active_set_.valid();
  for (int i = 0; i < n_; ++i) {
    const double* row = dM + static_cast<std::size_t>(i) * n_;
    r_[i] = dq[i];
    for (int j = 0; j < n_; ++j) r_[i] += row[j] * z_[j];
    finite = finite && std::isfinite(r_[i]);
    ties = ties || tied(i);
  }
  Status status = Status::kSolved;
  if (!finite) {
    status = Status::kBadInput;
  } else if (ties) {
    status = solve_ties(dz, dw);
  } else {
    active_set_.tangent(r_.data(), dz, dw);
  }
  if (status != Status::kSolved) {
    std::fill_n(dz, n_, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(dw, n_, std::numeric_limits<double>::quiet_NaN());
  }
  return status;
}

Status DirectionalDerivative::solve_ties(double* dz, double* dw) {
  std::vector<int> index(active_set_.indices(), active_set_.indices() + active_set_.size());
  const int k = active_set_.size();
  for (int i = 0; i < n_; ++i) {
    if (tied(i)) index.push_back(i);
  }
  const auto size = index.size();
  std::vector<double> H(size * size), h(size), v(size), y(size);
  for (std::size_t i = 0; i < size; ++i) {
    h[i] = r_[index[i]];
    for (std::size_t j = 0; j < size; ++j) H[i * size + j] = M_[static_cast<std::size_t>(index[i]) * n_ + index[j]];
  }
  const Settings settings = {
      .tolerance = default_tolerance(single_precision_), .max_pivots = {}, .single_precision = single_precision_};
  Mixed mixed(k, static_cast<int>(size) - k, settings);
  const Status status = mixed.solve(H.data(), h.data(), nullptr, v.data(), y.data());
  if (status != Status::kSolved) return status;
  std::fill_n(dz, n_, 0.0);
  for (std::size_t i = 0; i < size; ++i) dz[index[i]] = v[i];
  for (int i = 0; i < n_; ++i) {
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    dw[i] = r_[i];
    for (std::size_t j = 0; j < size; ++j) dw[i] += row[index[j]] * v[j];
  }
  for (std::size_t i = 0; i < size; ++i) dw[index[i]] = y[i];
  return status;
}

double DirectionalDerivative::radius(const double* dq) {
  if (!active_set_.valid()) return std::numeric_limits<double>::quiet_NaN();
  active_set_.tangent(dq, dz_.data(), dw_.data());
  double radius = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n_; ++i) {
    if (active_set_.active(i)) {
      if (dz_[i] < 0) radius = std::min(radius, z_[i] / -dz_[i]);
      continue;
    }
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    double magnitude = std::abs(dq[i]);
    for (int j = 0; j < n_; ++j) magnitude += std::abs(row[j] * dz_[j]);
    if (dw_[i] >= -64 * std::numeric_limits<double>::epsilon() * magnitude) continue;  // 0 but for rounding
    radius = std::min(radius, tied(i) ? 0.0 : w_[i] / -dw_[i]);
  }
  return radius;
}

}  // namespace lcp::solver
