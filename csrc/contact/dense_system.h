// The System of few bodies, or of many bodies that all touch each other.
#pragma once

#include <Eigen/Cholesky>
#include <vector>

#include "contact/system.h"

namespace lcp::contact {

/// Allocates only in the constructor for n up to about 100. For larger n, Eigen's blocked factorisation allocates.
class DenseSystem final : public System {
 public:
  DenseSystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows = 0);

  void set(const double* A, const double* J) override;
  void multiply(const Vector& x, Vector& result) const override;
  void to_contacts(const Vector& v, Vector& result) const override;
  void to_bodies(const Vector& gamma, Vector& result) const override;
  void multiply_abs(const Vector& x, Vector& result) const override;
  void to_contacts_abs(const Vector& v, Vector& result) const override;
  void to_bodies_abs(const Vector& gamma, Vector& result) const override;
  void diagonal(Vector& result) const override;
  void row_squares(const Vector& weights, Vector& result) const override;
  bool factor(const std::vector<Eigen::Matrix3d>& K) override;
  void solve(Vector& x) const override;
  void inverse(Eigen::MatrixXd& to) const override;
  void compliance(double* W) override;

 private:
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Eigen::Index n_, contacts_;
  Eigen::MatrixXd A_;
  Matrix J_, KJ_;  // KJ_ is K_k J_k, [3, n], for one contact k.
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::MatrixXd H_;
  Matrix half_;  // L^-1 J' for H = L L', [n, 3 c + k]
};

}  // namespace lcp::contact
