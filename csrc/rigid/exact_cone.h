// The exact cone of Coulomb's law: csrc/friction.
#pragma once

#include <vector>

#include "friction/derivative.h"
#include "friction/impulse_problem.h"
#include "friction/ladder.h"
#include "friction/smooth_path.h"
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

 private:
  friction::Solution solution(int contacts, const ContactProblem& problem, const SolvedContacts& at);

  Eigen::Index n_;
  double rank_tolerance_;
  ForEachCount<friction::Derivative> derivatives_;
  std::vector<double> u_, no_g_u_;
};

/// The derivative of a point of the smooth path, see friction/smooth_path.h. Allocates as ExactConeDerivative does.
class SmoothConeDerivative final : public ContactDerivative {
 public:
  SmoothConeDerivative(const Scene& scene, double rank_tolerance);

  SolvedContacts point(int contacts, const ContactProblem& problem, const SolvedContacts& solution) override;
  void adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same, const double* g_v,
               const double* g_gamma, const ContactData<double>& g) override;
  void tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
               const ContactData<const double>& d, double* dv, double* dgamma) override;

 private:
  struct Workspace {
    friction::ImpulseProblem problem;
    friction::SmoothPath path;
    friction::Derivative derivative;
    std::vector<double> h, scaled_u, v, gamma, u, no_g_u;

    Workspace(Eigen::Index n, int contacts, double rank_tolerance);
  };

  double kappa_;
  Eigen::Index n_;
  double rank_tolerance_;
  ForEachCount<Workspace> workspaces_;
};

}  // namespace lcp::rigid
