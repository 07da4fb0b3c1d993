// The System of many bodies, each of which touches few others.
#pragma once

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <vector>

#include "contact/system.h"

namespace lcp::contact {

/// Whether so many entries of H are 0 for every K that SparseSystem is faster than DenseSystem.
bool sparse_pays(const double* A, const double* J, Eigen::Index n, Eigen::Index contacts, Factors factors);

class SparseSystem final : public System {
 public:
  SparseSystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows = 0);

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
  using Matrix = Eigen::SparseMatrix<double>;

  Eigen::Index n_, contacts_;
  Matrix A_;
  Matrix J_t_;                // J'. The three columns of a contact have the same sparsity pattern.
  Matrix H_;                  // The lower triangle of H, whose sparsity pattern is the same for all K.
  std::vector<double> base_;  // The values of H_ for K = 0, which are those of A.

  // The places of the entries of H that each contact changes: for each pair j <= i of velocities that it moves, the
  // index of H(i, j) in the values of H_; j is the outer loop.
  std::vector<Eigen::Index> places_;
  Eigen::SimplicialLLT<Matrix, Eigen::Lower> factor_;
};

}  // namespace lcp::contact
