#include "rigid/exact_cone.h"

#include <limits>

namespace lcp::rigid {

ExactConeSolver::ExactConeSolver(const Scene& scene, double tolerance)
    : n_(scene.velocities()),
      rows_(scene.rows()),
      limits_{tolerance, std::numeric_limits<std::int64_t>::max()},
      ladders_(scene),
      u_(3 * scene.contacts()) {}

Status ExactConeSolver::solve(int contacts, const ContactProblem& problem, const ContactResult& result) {
  friction::Ladder& ladder = ladders_.get(contacts, n_, contacts, limits_, rows_);
  const Status status = ladder.solve(
      {problem.A, problem.v_free, problem.J, problem.b, problem.mu, problem.lower, problem.upper, problem.compliance},
      nullptr, result.v, result.gamma, u_.data());
  iterations_ = ladder.iterations();
  return status;
}

ExactConeDerivative::ExactConeDerivative(const Scene& scene, double rank_tolerance)
    : n_(scene.velocities()),
      rows_(scene.rows()),
      rank_tolerance_(rank_tolerance),
      derivatives_(scene),
      u_(3 * scene.contacts()),
      no_g_u_(3 * scene.contacts()) {}

friction::Solution ExactConeDerivative::solution(int contacts, const ContactProblem& problem,
                                                 const SolvedContacts& at) {
  contact_velocities(3 * contacts + rows_, n_, problem, at.v, u_.data());
  add_compliance(contacts, rows_, problem, at.gamma, u_.data());
  return {at.v, at.gamma, u_.data()};
}

void ExactConeDerivative::adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const double* g_v, const double* g_gamma, const ContactData<double>& g) {
  derivatives_.get(contacts, n_, contacts, rank_tolerance_, false, rows_)
      .adjoint({problem.A, nullptr, problem.J, nullptr, problem.mu, problem.lower, problem.upper, problem.compliance},
               solution(contacts, problem, at), {g_v, g_gamma, no_g_u_.data()}, {g.p, g.s, g.mu, g.lower, g.upper},
               same);
}

void ExactConeDerivative::tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const ContactData<const double>& d, double* dv, double* dgamma) {
  derivatives_.get(contacts, n_, contacts, rank_tolerance_, false, rows_)
      .tangent({problem.A, nullptr, problem.J, nullptr, problem.mu, problem.lower, problem.upper, problem.compliance},
               solution(contacts, problem, at), {d.p, d.s, d.mu, d.lower, d.upper}, dv, dgamma, same);
}

void ExactConeDerivative::jacobian(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                   Eigen::MatrixXd& by_p, Eigen::MatrixXd& by_s) {
  derivatives_.get(contacts, n_, contacts, rank_tolerance_, false, rows_)
      .jacobian({problem.A, nullptr, problem.J, nullptr, problem.mu, problem.lower, problem.upper, problem.compliance},
                solution(contacts, problem, at), by_p, by_s, same);
}

}  // namespace lcp::rigid
