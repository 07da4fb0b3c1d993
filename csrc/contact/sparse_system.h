// A system of many bodies, each of which touches few others.
#pragma once

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <vector>

#include "contact/system.h"

namespace lcp::contact {

/// Whether the numbers of H that cannot be known to be 0 are few enough for SparseSystem to be the faster.
bool sparse_pays(const double* A, const double* J, Eigen::Index n, Eigen::Index contacts);

class SparseSystem final : public System {
 public:
  SparseSystem(Eigen::Index n, Eigen::Index contacts);

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

 private:
  using Matrix = Eigen::SparseMatrix<double>;

  Eigen::Index n_, contacts_;
  Matrix A_, J_t_;                    // J' : a column for each row of J, all three of a contact with the same rows
  Matrix H_;                          // its lower triangle; what is not 0 in it is the same for all K
  std::vector<double> base_;          // of A, the values of H_
  std::vector<Eigen::Index> places_;  // in H_, of each contact's pairs of columns, j <= i, j after j
  Eigen::SimplicialLLT<Matrix, Eigen::Lower> factor_;
};

}  // namespace lcp::contact
