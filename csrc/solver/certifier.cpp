#include "solver/certifier.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "solver/verify.h"

namespace lcp::solver {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x / y, but 0 for 0 / 0.
double share(double x, double y) { return x == 0 ? 0.0 : x / y; }

}  // namespace

Certifier::Certifier(int n, bool single_precision)
    : n_(n),
      single_precision_(single_precision),
      pair_states_(n, 0, single_precision),
      active_set_(n, single_precision, false),
      states_(n),
      w_(n),
      scale_(n),
      size_(n),
      tied_(n) {}

void Certifier::set(const double* M, const double* q, const double* z, const std::optional<double>& tolerance) {
  residual_ = 0;
  std::fill(size_.begin(), size_.end(), 0.0);
  for (int i = 0; i < n_; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n_;
    w_[i] = accurate_sum(n_, row, z, q[i]);
    scale_[i] = std::abs(q[i]);
    for (int j = 0; j < n_; ++j) scale_[i] += std::abs(row[j] * z[j]);
    for (int j = 0; j < n_; ++j) size_[j] = std::max(size_[j], share(std::abs(row[j] * z[j]), scale_[i]));
    const double e = std::abs(std::min(z[i], w_[i]));
    if (std::isnan(z[i]) || !std::isfinite(scale_[i])) residual_ = std::numeric_limits<double>::quiet_NaN();
    residual_ = residual_ < e ? e : residual_;
  }
  if (std::isnan(residual_)) {
    margin_ = condition_ = residual_;
    rank_ = 0;
    std::fill(tied_.begin(), tied_.end(), static_cast<unsigned char>(0));
    return;
  }
  for (int i = 0; i < n_; ++i) size_[i] = std::max(size_[i], share(std::abs(w_[i]), scale_[i]));
  const bool solves = violation(n_, 0, M, q, z, default_tolerance(single_precision_), w_.data()) <= 1;
  complement(n_, M, q, z, w_.data());
  pair_states_.find(M, q, z, w_.data(), states_.data());
  active_set_.set(M, states_.data());
  margin_ = kInfinity;
  for (int i = 0; i < n_; ++i) {
    if (solves && states_[i] == PairState::kTied) size_[i] = 0;
    margin_ = std::min(margin_, size_[i]);
  }
  for (int i = 0; i < n_; ++i) tied_[i] = tolerance ? size_[i] <= *tolerance : states_[i] == PairState::kTied;

  rank_ = active_set_.rank();
  const int k = active_set_.size();
  condition_ = rank_ < k ? kInfinity : 1.0;
  if (rank_ < k || k == 0) return;
  // The eigenvalues of [0 A; A' 0] are plus and minus the singular values of A.
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(2 * k, 2 * k);
  for (int i = 0; i < k; ++i) {
    const double* row = M + static_cast<std::size_t>(active_set_.indices()[i]) * n_;
    for (int j = 0; j < k; ++j) A(k + j, i) = row[active_set_.indices()[j]];  // the solver reads the lower triangle
  }
  const Eigen::VectorXd values =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(A, Eigen::EigenvaluesOnly).eigenvalues();
  condition_ = values[2 * k - 1] / std::max(values[k], 0.0);
}

}  // namespace lcp::solver
