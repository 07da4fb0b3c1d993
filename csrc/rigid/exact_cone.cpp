#include "rigid/exact_cone.h"

#include <algorithm>
#include <limits>

namespace lcp::rigid {

ExactConeSolver::ExactConeSolver(const Scene& scene, double tolerance)
    : n_(6 * scene.bodies),
      limits_{tolerance, std::numeric_limits<std::int64_t>::max()},
      ladders_(scene),
      u_(3 * scene.contacts()) {}

Status ExactConeSolver::solve(int contacts, const ContactProblem& problem, const ContactResult& result) {
  friction::Ladder& ladder = ladders_.get(contacts, n_, contacts, limits_);
  const Status status = ladder.solve({problem.A, problem.v_free, problem.J, problem.b, problem.mu}, nullptr, result.v,
                                     result.gamma, u_.data());
  iterations_ = ladder.iterations();
  return status;
}

ExactConeDerivative::ExactConeDerivative(const Scene& scene, double rank_tolerance)
    : n_(6 * scene.bodies),
      rank_tolerance_(rank_tolerance),
      derivatives_(scene),
      u_(3 * scene.contacts()),
      no_g_u_(3 * scene.contacts()) {}

friction::Solution ExactConeDerivative::solution(int contacts, const ContactProblem& problem,
                                                 const SolvedContacts& at) {
  contact_velocities(contacts, n_, problem, at.v, u_.data());
  return {at.v, at.gamma, u_.data()};
}

void ExactConeDerivative::adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const double* g_v, const double* g_gamma, const ContactData<double>& g) {
  derivatives_.get(contacts, n_, contacts, rank_tolerance_)
      .adjoint({problem.A, nullptr, problem.J, nullptr, problem.mu}, solution(contacts, problem, at),
               {g_v, g_gamma, no_g_u_.data()}, {g.p, g.s, g.mu}, same);
}

void ExactConeDerivative::tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                  const ContactData<const double>& d, double* dv, double* dgamma) {
  derivatives_.get(contacts, n_, contacts, rank_tolerance_)
      .tangent({problem.A, nullptr, problem.J, nullptr, problem.mu}, solution(contacts, problem, at), {d.p, d.s, d.mu},
               dv, dgamma, same);
}

SmoothConeDerivative::Workspace::Workspace(Eigen::Index n, int contacts, double rank_tolerance)
    : problem(n, contacts),
      path(contacts),
      derivative(n, contacts, rank_tolerance, /*smooth=*/true),
      h(3 * contacts),
      scaled_u(3 * contacts),
      v(n),
      gamma(3 * contacts),
      u(3 * contacts),
      no_g_u(3 * contacts) {}

SmoothConeDerivative::SmoothConeDerivative(const Scene& scene, double rank_tolerance)
    : kappa_(scene.law.kappa), n_(6 * scene.bodies), rank_tolerance_(rank_tolerance), workspaces_(scene) {}

// Where there is no such point, u is NaN, and so is the derivative.
SolvedContacts SmoothConeDerivative::point(int contacts, const ContactProblem& problem,
                                           const SolvedContacts& solution) {
  Workspace& work = workspaces_.get(contacts, n_, contacts, rank_tolerance_);
  const std::ptrdiff_t size = 3 * contacts;
  bool found = work.problem.set({problem.A, problem.v_free, problem.J, problem.b, problem.mu});
  if (found) {
    const double unit = work.problem.unit(), *const weight = work.problem.impulses().weight;
    contact_velocities(contacts, n_, problem, solution.v, work.u.data());
    work.problem.scaled(solution.gamma, work.h.data());
    for (std::ptrdiff_t i = 0; i < size; ++i) work.scaled_u[i] = work.u[i] / (weight[i / 3] * unit);
    found = work.path.point(work.problem.impulses(), kappa_ / (unit * unit), work.h.data(), work.scaled_u.data());
    if (found) {
      work.problem.unscaled(work.h.data(), work.gamma.data(), work.v.data(), work.u.data());
      // J v + b has lost the digits of a velocity near 0.
      for (std::ptrdiff_t i = 0; i < size; ++i) work.u[i] = work.scaled_u[i] * weight[i / 3] * unit;
    }
  }
  if (!found) {
    std::copy_n(solution.v, n_, work.v.begin());
    std::copy_n(solution.gamma, size, work.gamma.begin());
    std::fill(work.u.begin(), work.u.end(), std::numeric_limits<double>::quiet_NaN());
  }
  return {work.v.data(), work.gamma.data(), nullptr, nullptr};
}

void SmoothConeDerivative::adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                   const double* g_v, const double* g_gamma, const ContactData<double>& g) {
  Workspace& work = workspaces_.get(contacts, n_, contacts, rank_tolerance_);
  work.derivative.adjoint({problem.A, nullptr, problem.J, nullptr, problem.mu}, {at.v, at.gamma, work.u.data()},
                          {g_v, g_gamma, work.no_g_u.data()}, {g.p, g.s, g.mu}, same);
}

void SmoothConeDerivative::tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                   const ContactData<const double>& d, double* dv, double* dgamma) {
  Workspace& work = workspaces_.get(contacts, n_, contacts, rank_tolerance_);
  work.derivative.tangent({problem.A, nullptr, problem.J, nullptr, problem.mu}, {at.v, at.gamma, work.u.data()},
                          {d.p, d.s, d.mu}, dv, dgamma, same);
}

}  // namespace lcp::rigid
