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
