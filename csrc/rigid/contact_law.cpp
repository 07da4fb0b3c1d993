#include "rigid/contact_law.h"

#include "rigid/compliant.h"
#include "rigid/exact_cone.h"
#include "rigid/polyhedral.h"
#include "rigid/smooth.h"

namespace lcp::rigid {

int unknowns_of(const Law& law) {
  switch (law.formulation) {
    case Formulation::kExactCone:
      break;
    case Formulation::kPolyhedral:
      return law.directions + 2;
    case Formulation::kCompliant:
      return 3;
  }
  return 0;
}

void ContactDerivative::jacobian(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                 Eigen::MatrixXd& by_p, Eigen::MatrixXd& by_s) {
  const Eigen::Index n = by_p.rows();
  const Eigen::Index size = by_s.cols(), rows = size - 3 * contacts;
  Eigen::VectorXd unit = Eigen::VectorXd::Zero(n), of_p(n), of_s(size), of_R(3 * contacts), of_mu(contacts),
                  of_lower(rows), of_upper(rows);
  const Eigen::VectorXd none = Eigen::VectorXd::Zero(size);
  for (Eigen::Index i = 0; i < n; ++i) {
    unit[i] = 1;
    adjoint(contacts, problem, at, same || i > 0, unit.data(), none.data(),
            {of_p.data(), of_s.data(), of_R.data(), of_mu.data(), nullptr, of_lower.data(), of_upper.data()});
    unit[i] = 0;
    by_p.row(i) = of_p;
    by_s.row(i) = of_s;
  }
}

std::unique_ptr<ContactSolver> make_solver(const Scene& scene, double tolerance) {
  switch (scene.law.formulation) {
    case Formulation::kExactCone:
      break;
    case Formulation::kPolyhedral:
      return std::make_unique<PolyhedralSolver>(scene, tolerance);
    case Formulation::kCompliant:
      return std::make_unique<CompliantSolver>(scene, tolerance);
  }
  return std::make_unique<ExactConeSolver>(scene, tolerance);
}

std::unique_ptr<ContactDerivative> make_derivative(const Scene& scene, double rank_tolerance, Ties ties) {
  if (scene.law.kappa > 0) return make_smooth_derivative(scene);
  switch (scene.law.formulation) {
    case Formulation::kExactCone:
      break;
    case Formulation::kPolyhedral:
      return std::make_unique<PolyhedralDerivative>(scene, ties);
    case Formulation::kCompliant:
      return std::make_unique<CompliantDerivative>(scene);
  }
  return std::make_unique<ExactConeDerivative>(scene, rank_tolerance);
}

}  // namespace lcp::rigid
