#include "contact/dense_system.h"

#include <algorithm>

namespace lcp::contact {

DenseSystem::DenseSystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows)
    : n_(n),
      contacts_(contacts),
      A_(n, n),
      J_(3 * contacts + rows, n),
      KJ_(3, n),
      factor_(n),
      H_(n, n),
      half_(n, 3 * contacts + rows) {}

void DenseSystem::set(const double* A, const double* J) {
  const Eigen::Map<const Matrix> given(A, n_, n_);
  A_ = (given + given.transpose()) / 2;
  J_ = Eigen::Map<const Matrix>(J, J_.rows(), n_);
}

// Lazy products allocate nothing, and sum in the same order for every size.
void DenseSystem::multiply(const Vector& x, Vector& result) const { result.noalias() = A_.lazyProduct(x); }
void DenseSystem::to_contacts(const Vector& v, Vector& result) const { result.noalias() = J_.lazyProduct(v); }
void DenseSystem::to_bodies(const Vector& gamma, Vector& result) const {
  result.noalias() = J_.transpose().lazyProduct(gamma);
}
void DenseSystem::multiply_abs(const Vector& x, Vector& result) const {
  result.noalias() = A_.cwiseAbs().lazyProduct(x);
}
void DenseSystem::to_contacts_abs(const Vector& v, Vector& result) const {
  result.noalias() = J_.cwiseAbs().lazyProduct(v);
}
void DenseSystem::to_bodies_abs(const Vector& gamma, Vector& result) const {
  result.noalias() = J_.cwiseAbs().transpose().lazyProduct(gamma);
}
void DenseSystem::diagonal(Vector& result) const { result = A_.diagonal(); }
void DenseSystem::row_squares(const Vector& weights, Vector& result) const {
  result.noalias() = J_.cwiseAbs2().lazyProduct(weights);
}

bool DenseSystem::factor(const std::vector<Eigen::Matrix3d>& K) {
  H_ = A_;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Eigen::Matrix3d& K_k = K[static_cast<std::size_t>(k)];
    if (K_k.isZero(0)) continue;
    const auto rows = J_.middleRows<3>(3 * k);
    KJ_.noalias() = K_k.lazyProduct(rows);
    for (Eigen::Index j = 0; j < n_; ++j) {
      auto column = H_.col(j).tail(n_ - j);
      for (Eigen::Index r = 0; r < 3; ++r) column += rows(r, j) * KJ_.row(r).tail(n_ - j).transpose();
    }
  }
  factor_.compute(H_);
  return factor_.info() == Eigen::Success;
}

void DenseSystem::solve(Vector& x) const { factor_.solveInPlace(x); }

void DenseSystem::inverse(Eigen::MatrixXd& to) const {
  to.setIdentity(n_, n_);
  factor_.solveInPlace(to);
}

// The zeros of L and of half_ are skipped: most are 0 where bodies are apart in A and contacts touch few of them.
void DenseSystem::compliance(double* W) {
  const Eigen::Index count = J_.rows();
  const auto add = [count](double factor, const double* x, double* to) {
    for (Eigen::Index i = 0; i < count; ++i) to[i] += factor * x[i];
  };
  std::fill_n(W, count * count, 0.0);
  half_ = J_.transpose();
  for (Eigen::Index j = 0; j < n_; ++j) {
    const double* L_j = factor_.matrixLLT().col(j).data();
    double* row = half_.data() + j * count;
    const double inverse = 1 / L_j[j];
    for (Eigen::Index i = 0; i < count; ++i) row[i] *= inverse;
    for (Eigen::Index i = j + 1; i < n_; ++i) {
      if (L_j[i] != 0) add(-L_j[i], row, half_.data() + i * count);
    }
    for (Eigen::Index i = 0; i < count; ++i) {
      if (row[i] != 0) add(row[i], row, W + i * count);
    }
  }
}

}  // namespace lcp::contact
