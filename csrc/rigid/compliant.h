// Compliant contact: csrc/contact.
#pragma once

#include <vector>

#include "contact/derivative.h"
#include "contact/newton.h"
#include "rigid/contact_law.h"

namespace lcp::rigid {

/// Allocates for the first problem with as many contacts as none had before, and where a problem is sparse.
class CompliantSolver final : public ContactSolver {
 public:
  CompliantSolver(const Scene& scene, double tolerance);

  Status solve(int contacts, const ContactProblem& problem, const ContactResult& result) override;
  std::int64_t iterations() const override { return iterations_; }

 private:
  Eigen::Index n_;
  contact::Limits limits_;
  ForEachCount<contact::Newton> newtons_;
  std::vector<double> v_hat_, y_;
  std::int64_t iterations_ = 0;
};

/// The same.
class CompliantDerivative final : public ContactDerivative {
 public:
  explicit CompliantDerivative(const Scene& scene);

  void adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same, const double* g_v,
               const double* g_gamma, const ContactData<double>& g) override;
  void tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
               const ContactData<const double>& d, double* dv, double* dgamma) override;

 private:
  Eigen::Index n_;
  ForEachCount<contact::Derivative> derivatives_;
  std::vector<double> no_g_y_, of_v_free_, gamma_, ds_;
};

}  // namespace lcp::rigid
