#include "rigid/compliant.h"

#include <algorithm>

namespace lcp::rigid {

CompliantSolver::CompliantSolver(const Scene& scene, double tolerance)
    : n_(scene.velocities()),
      limits_{tolerance, contact::kDefaultMaxIterations},
      newtons_(scene),
      v_hat_(3 * scene.contacts()),
      y_(3 * scene.contacts()) {}

Status CompliantSolver::solve(int contacts, const ContactProblem& problem, const ContactResult& result) {
  std::transform(problem.b, problem.b + 3 * contacts, v_hat_.begin(), [](double b) { return -b; });
  std::copy_n(problem.v_free, n_, result.v);
  const contact::Outcome outcome =
      newtons_.get(contacts, n_, contacts)
          .solve({problem.A, problem.v_free, problem.J, v_hat_.data(), problem.R, problem.mu}, limits_, result.v,
                 result.unknowns != nullptr ? result.unknowns : y_.data(), result.gamma);
  iterations_ = outcome.iterations;
  return contact::status_of(outcome.termination);
}

CompliantDerivative::CompliantDerivative(const Scene& scene)
    : n_(scene.velocities()),
      derivatives_(scene),
      no_g_y_(3 * scene.contacts()),
      of_v_free_(n_),
      gamma_(3 * scene.contacts()),
      ds_(3 * scene.contacts()) {}

void CompliantDerivative::adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const double* g_v, const double* g_gamma, const ContactData<double>& g) {
  derivatives_.get(contacts, n_, contacts)
      .adjoint({problem.A, nullptr, problem.J, nullptr, problem.R, problem.mu}, at.v, at.unknowns,
               {g_v, no_g_y_.data(), g_gamma}, {g.p, of_v_free_.data(), g.s, g.R, g.mu, gamma_.data()}, same);
  for (int i = 0; i < 3 * contacts; ++i) g.s[i] = -g.s[i];  // b = -v_hat
}

void CompliantDerivative::tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const ContactData<const double>& d, double* dv, double* dgamma) {
  std::transform(d.s, d.s + 3 * contacts, ds_.begin(), [](double s) { return -s; });  // b = -v_hat
  derivatives_.get(contacts, n_, contacts)
      .tangent({problem.A, nullptr, problem.J, nullptr, problem.R, problem.mu}, at.v, at.unknowns,
               {d.p, ds_.data(), d.R, d.mu}, dv, dgamma, same);
}

}  // namespace lcp::rigid
