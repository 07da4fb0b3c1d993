// The accuracy with which velocities solve a Problem, and how well the derivative of the solution is defined there.
#pragma once

#include <Eigen/Eigenvalues>

#include "contact/newton.h"
#include "contact/problem.h"

namespace lcp::contact {

/// The numbers of a solution; NaN where the problem is not well_posed, A is not positive definite, or v is not finite.
class OptimalityCheck {
 public:
  OptimalityCheck(Eigen::Index n, Eigen::Index contacts);

  void set(const Problem& problem, const double* v);

  double residual() const { return residual_; }    ///< Outcome::residual
  double margin() const { return margin_; }        ///< see ContactCertificate in lcp/certify_contact.h
  double condition() const { return condition_; }  ///< cond(D H D) in the 2-norm, D = diag(A)^-1/2; 1 for n = 0

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
