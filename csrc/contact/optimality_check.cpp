#include "contact/optimality_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::contact {
namespace {

using Eigen::Vector2d;
using Eigen::Vector3d;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The distance of x to the ray from the origin along the unit vector d.
double to_ray(const Vector2d& x, const Vector2d& d) { return (x - std::max(0.0, x.dot(d)) * d).norm(); }

// R^1/2 of a contact.
Vector3d roots_of(const Law& law) { return {std::sqrt(law.tangent), std::sqrt(law.tangent), std::sqrt(law.normal)}; }

}  // namespace

OptimalityCheck::OptimalityCheck(Eigen::Index n, Eigen::Index contacts)
    : n_(n),
      contacts_(contacts),
      newton_(n, contacts),
      v_(n),
      y_(3 * contacts),
      gamma_(3 * contacts),
      sizes_(3 * contacts),
      H_(n, n),
      spectrum_(n) {}

// The distance of y to the boundary of two regions, in the norm of R, less its rounding errors. In the coordinates
// (|x_t|, x_n), x = R^1/2 y, the boundaries are two perpendicular rays from the origin: the boundary of the separated
// contact and, if mu > 0, the boundary of the cone.
double OptimalityCheck::distance(const Problem& problem, Eigen::Index contact) const {
  const Law law = problem.law(contact);
  const Vector3d roots = roots_of(law), x = y_.segment<3>(3 * contact).cwiseProduct(roots);
  const double rounding =
      static_cast<double>(n_ + 4) * kUnitRoundoff * sizes_.segment<3>(3 * contact).cwiseQuotient(roots).norm();
  const double slope = law.mu * roots[0] / roots[2];
  const Vector2d flat(x.head<2>().norm(), x.z());
  const double to_separation = to_ray(flat, Vector2d(1, -slope).normalized());
  const double to_stick = law.mu > 0 ? to_ray(flat, Vector2d(slope, 1).normalized()) : to_separation;
  return std::max(0.0, std::min(to_separation, to_stick) - rounding);
}

void OptimalityCheck::set(const Problem& problem, const double* v) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::copy_n(v, n_, v_.data());
  residual_ = margin_ = condition_ = kNaN;
  if (!v_.allFinite()) return;
  const Outcome here =
      newton_.solve(problem, {.tolerance = 0, .max_iterations = 0}, v_.data(), y_.data(), gamma_.data());
  if (here.termination == Termination::kInvalid) return;
  residual_ = here.residual;

  const Eigen::Map<const Matrix> A(problem.A, n_, n_), J(problem.J, 3 * contacts_, n_);
  sizes_ = J.cwiseAbs() * v_.cwiseAbs() + Eigen::Map<const Vector>(problem.v_hat, 3 * contacts_).cwiseAbs();
  H_ = (A + A.transpose()) / 2;
  const Vector scale = H_.diagonal().cwiseSqrt().cwiseInverse();
  margin_ = std::numeric_limits<double>::infinity();
  double push = 0;  // the largest impulse of a contact, in the norm of R
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    push = std::max(push, gamma_.segment<3>(3 * k).cwiseProduct(roots_of(problem.law(k))).norm());
  }
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law law = problem.law(k);
    const Vector3d y = y_.segment<3>(3 * k);
    const auto rows = J.middleRows<3>(3 * k);
    H_ += rows.transpose() * (projected_compliance(y, project(y, law), law) * rows);
    const double own = y.cwiseProduct(roots_of(law)).norm(), size = std::max(own, push);
    margin_ = std::min(margin_, size > 0 ? distance(problem, k) / size : 0);
  }
  if (n_ == 0) {
    condition_ = 1;
    return;
  }
  H_ = scale.asDiagonal() * H_ * scale.asDiagonal();
  spectrum_.compute(H_, Eigen::EigenvaluesOnly);
  condition_ = spectrum_.eigenvalues().maxCoeff() / spectrum_.eigenvalues().minCoeff();
}

}  // namespace lcp::contact
