#include "solver/enumeration.h"

#include <Eigen/QR>
#include <algorithm>
#include <cstddef>

namespace lcp::solver {

Enumeration::Enumeration(int n) : n_(n), basis_(n, 1e-13), lemke_(n), basic_(n), z_(n), x_(n) {}

Termination Enumeration::run(const double* M, const double* q, std::int64_t max_bases,
                             const std::function<bool()>& is_solution) {
  M_ = M;
  q_ = q;
  bases_ = 0;
  bool any_singular = false;
  for (const bool regular : {true, false}) {
    if (!regular && !any_singular) break;
    std::fill(basic_.begin(), basic_.end(), static_cast<unsigned char>(0));
    do {
      if (bases_ >= max_bases) return Termination::kBudget;
      ++bases_;
      basis_.factor(M_, basic_.data());
      if (basis_.regular() != regular) {
        any_singular = true;
        continue;
      }
      if (regular) solve_regular();
      if (regular ? is_solution() : try_singular(is_solution)) return Termination::kCandidate;
    } while (next());
  }
  return Termination::kFailed;
}

// Goes to the next basis, counted in binary; false after the last.
bool Enumeration::next() {
  for (auto& digit : basic_) {
    digit = !digit;
    if (digit) return true;
  }
  return false;
}

void Enumeration::solve_regular() {
  for (int j = 0; j < basis_.size(); ++j) x_[j] = -q_[basis_.indices()[j]];
  basis_.solve(x_.data());
  std::fill(z_.begin(), z_.end(), 0.0);
  for (int j = 0; j < basis_.size(); ++j) z_[basis_.indices()[j]] = std::max(0.0, x_[j]);
}

// x >= 0 that minimises |C x - q|^2, C the columns of the cone: C'C x - C'q >= 0 complementary to x. The z among the
// positive x are then found again from the rows with w = 0 alone, to full precision.
bool Enumeration::try_singular(const std::function<bool()>& is_solution) {
  const auto n = static_cast<std::size_t>(n_);
  columns_.assign(n * n, 0.0);
  gram_.assign(n * n, 0.0);
  projected_.assign(n, 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) columns_[i * n + j] = basic_[j] ? -M_[i * n + j] : (i == j ? 1.0 : 0.0);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) gram_[i * n + j] += columns_[k * n + i] * columns_[k * n + j];
      projected_[i] -= columns_[j * n + i] * q_[j];
    }
  }
  std::fill(z_.begin(), z_.end(), 0.0);
  std::fill(x_.begin(), x_.end(), 0.0);
  if (*std::min_element(projected_.begin(), projected_.end()) < 0) {
    if (lemke_.run(gram_.data(), projected_.data(), {.max_pivots = 30 * std::int64_t{n_}}) != Termination::kCandidate)
      return false;
    std::copy_n(lemke_.z(), n_, x_.begin());
  }
  std::vector<int> rows, columns;
  for (int i = 0; i < n_; ++i) {
    if (basic_[i] || !(x_[i] > 0)) rows.push_back(i);
    if (basic_[i] && x_[i] > 0) columns.push_back(i);
  }
  Eigen::MatrixXd A(rows.size(), columns.size());
  Eigen::VectorXd b(rows.size());
  for (Eigen::Index i = 0; i < A.rows(); ++i) {
    b[i] = -q_[rows[i]];
    for (Eigen::Index j = 0; j < A.cols(); ++j) A(i, j) = M_[rows[i] * n + columns[j]];
  }
  if (A.cols() > 0) {
    const Eigen::VectorXd solution = A.completeOrthogonalDecomposition().solve(b);
    for (Eigen::Index j = 0; j < A.cols(); ++j) z_[columns[j]] = std::max(0.0, solution[j]);
  }
  if (is_solution()) return true;
  for (int i = 0; i < n_; ++i) z_[i] = basic_[i] ? x_[i] : 0.0;
  return is_solution();
}

}  // namespace lcp::solver
