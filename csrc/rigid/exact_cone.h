// The exact cone of Coulomb's law: csrc/friction.
#pragma once

#include <vector>

#include "friction/derivative.h"
#include "friction/ladder.h"
#include "rigid/contact_law.h"

namespace lcp::rigid {

/// Allocates for the first problem with as many contacts as none had before, and as friction::Ladder does.
class ExactConeSolver final : public ContactSolver {
 public:
  ExactConeSolver(const Scene& scene, double tolerance);

  Status solve(int contacts, const ContactProblem& problem, const ContactResult& result) override;
  std::int64_t iterations() const override { return iterations_; }

 private:
  Eigen::Index n_;
  int rows_;
  friction::Limits limits_;
  ForEachCount<friction::Ladder> ladders_;
  std::vector<double> u_;
  std::int64_t iterations_ = 0;
};

/// The same, as friction::Derivative does.
class ExactConeDerivative final : public ContactDerivative {
 public:
  ExactConeDerivative(const Scene& scene, double rank_tolerance);

  void adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same, const double* g_v,
               const double* g_gamma, const ContactData<double>& g) override;
  void tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
               const ContactData<const double>& d, double* dv, double* dgamma) override;
  void jacobian(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same, Eigen::MatrixXd& by_p,
                Eigen::MatrixXd& by_s) override;

 private:
  friction::Solution solution(int contacts, const ContactProblem& problem, const SolvedContacts& at);

  Eigen::Index n_;
  int rows_;
  double rank_tolerance_;
  ForEachCount<friction::Derivative> derivatives_;
  std::vector<double> u_, no_g_u_;
};

}  // namespace lcp::rigid
