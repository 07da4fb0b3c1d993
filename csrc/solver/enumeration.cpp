#include "solver/enumeration.h"

#include <Eigen/QR>
#include <algorithm>
#include <cstddef>

namespace lcp::solver {

Enumeration::Enumeration(int n, int num_equations)
    : n_(n), num_equations_(num_equations), basis_(n, 1e-13), lemke_(n - num_equations), basic_(n), z_(n), x_(n) {}

Termination Enumeration::run(const double* M, const double* q, std::int64_t max_bases,
                             const std::function<bool()>& is_solution) {
  M_ = M;
  q_ = q;
  bases_ = 0;
  bool any_singular = false;
  for (const bool regular : {true, false}) {
    if (!regular && !any_singular) break;
    for (int i = 0; i < n_; ++i) basic_[i] = i < num_equations_;
    do {
      if (bases_ >= max_bases) return Termination::kBudget;
      ++bases_;
      basis_.factor(M_, basic_.data());
      if (basis_.regular() != regular) {
        any_singular = true;
        continue;
      }
      solve_basis();
      if (is_solution() || (!regular && try_cone(is_solution))) return Termination::kCandidate;
    } while (next());
  }
  return Termination::kFailed;
}

// Goes to the next basis, counted in binary; false after the last.
bool Enumeration::next() {
  for (int i = num_equations_; i < n_; ++i) {
    basic_[i] = !basic_[i];
    if (basic_[i]) return true;
  }
  return false;
}

// Solves the equations of the basis; if it is singular, by the smallest solution.
void Enumeration::solve_basis() {
  for (int j = 0; j < basis_.size(); ++j) x_[j] = -q_[basis_.indices()[j]];
  basis_.solve(x_.data());
  std::fill(z_.begin(), z_.end(), 0.0);
  for (int j = 0; j < basis_.size(); ++j) {
    const int i = basis_.indices()[j];
    z_[i] = i < num_equations_ ? x_[j] : std::max(0.0, x_[j]);
  }
}

// Finds the x that minimises |C x - q|^2 for the columns C of the cone, with x >= 0 except for unknowns of equations.
// These unknowns are eliminated first: the part of C in the span of their columns is subtracted. Then C'C x - C'q >= 0
// is complementary to x. The z among the positive x are found again from the rows with w = 0 alone, to full precision.
bool Enumeration::try_cone(const std::function<bool()>& is_solution) {
  using Eigen::MatrixXd, Eigen::VectorXd;
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> M(M_, n_, n_);
  const Eigen::Map<const VectorXd> q(q_, n_);
  const int pairs = n_ - num_equations_;
  MatrixXd columns = MatrixXd::Identity(n_, n_);
  for (int j = 0; j < n_; ++j) {
    if (basic_[j]) columns.col(j) = -M.col(j);
  }
  MatrixXd cone = columns.rightCols(pairs);
  VectorXd target = q;
  const auto free = columns.leftCols(num_equations_);
  Eigen::ColPivHouseholderQR<MatrixXd> reached;
  if (num_equations_ > 0) {
    reached.compute(free);
    const MatrixXd basis = reached.householderQ() * MatrixXd::Identity(n_, reached.rank());
    cone -= basis * (basis.transpose() * cone);
    target -= basis * (basis.transpose() * target);
  }
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> gram = cone.transpose() * cone;
  const VectorXd projected = -cone.transpose() * target;
  VectorXd x = VectorXd::Zero(n_);
  if (pairs > 0 && projected.minCoeff() < 0) {
    if (lemke_.run(gram.data(), projected.data(), {.max_pivots = 30 * std::int64_t{pairs}}) != Termination::kCandidate)
      return false;
    x.tail(pairs) = Eigen::Map<const VectorXd>(lemke_.z(), pairs);
  }
  if (num_equations_ > 0) x.head(num_equations_) = reached.solve(q - columns.rightCols(pairs) * x.tail(pairs));

  std::vector<int> rows, variables;
  for (int i = 0; i < n_; ++i) {
    if (basic_[i] || !(x[i] > 0)) rows.push_back(i);
    if (i < num_equations_ || (basic_[i] && x[i] > 0)) variables.push_back(i);
  }
  std::fill(z_.begin(), z_.end(), 0.0);
  if (!variables.empty()) {
    const VectorXd solution = M(rows, variables).completeOrthogonalDecomposition().solve(-q(rows));
    for (std::size_t j = 0; j < variables.size(); ++j) {
      const int i = variables[j];
      z_[i] = i < num_equations_ ? solution[static_cast<Eigen::Index>(j)]
                                 : std::max(0.0, solution[static_cast<Eigen::Index>(j)]);
    }
  }
  if (is_solution()) return true;
  for (int i = 0; i < n_; ++i) z_[i] = basic_[i] ? x[i] : 0.0;
  return is_solution();
}

}  // namespace lcp::solver
