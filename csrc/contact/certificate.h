// What is known of a solution of problem.h, and of the derivative there.
#pragma once

#include <Eigen/Eigenvalues>

#include "contact/newton.h"
#include "contact/problem.h"

namespace lcp::contact {

/// All numbers are NaN where the problem is not well_posed, A not positive definite, or v not finite.
class Certificate {
 public:
  Certificate(Eigen::Index n, Eigen::Index contacts);

  void set(const Problem& problem, const double* v);

  double residual() const { return residual_; }    ///< that of newton.h
  double margin() const { return margin_; }        ///< see lcp/solve_contact.h
  double condition() const { return condition_; }  ///< of D H D, D = diag(A)^-1/2, in the 2-norm; 1 for n = 0

 private:
  double distance(const Problem& problem, Eigen::Index contact) const;

  Eigen::Index n_, contacts_;
  Newton newton_;
  Vector v_, y_, gamma_, sizes_;
  Eigen::MatrixXd H_;
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> spectrum_;
  double residual_ = 0, margin_ = 0, condition_ = 0;
};

}  // namespace lcp::contact
