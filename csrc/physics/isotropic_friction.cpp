#include "physics/isotropic_friction.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace lcp::physics {
namespace {

using Vector = Eigen::Vector3d;

// The objective in which |v| is replaced by sqrt(|v|^2 + eps^2), which is smooth.
class SmoothedObjective {
 public:
  SmoothedObjective(const Vector& nu_free, const Vector& inertia, const std::array<SupportJacobian, kSupports>& J,
                    const Vector& limits)
      : nu_free_(nu_free), inertia_(inertia), limits_(limits), J_(J) {}

  double value(double eps, const Vector& nu) const {
    double sum = 0.5 * (nu - nu_free_).dot(inertia_.cwiseProduct(nu - nu_free_));
    for (std::size_t i = 0; i < J_.size(); ++i) sum += limit(i) * speed(i, nu, eps);
    return sum;
  }

  // Newton's method with backtracking, from nu.
  void minimise(double eps, Vector& nu) const {
    for (int iteration = 0; iteration < 100; ++iteration) {
      Vector gradient = inertia_.cwiseProduct(nu - nu_free_);
      Eigen::Matrix3d hessian = inertia_.asDiagonal();
      for (std::size_t i = 0; i < J_.size(); ++i) {
        const Eigen::Vector2d t = J_[i] * nu / speed(i, nu, eps);
        gradient += limit(i) * J_[i].transpose() * t;
        const Eigen::Matrix2d across = Eigen::Matrix2d::Identity() - t * t.transpose();
        hessian += limit(i) / speed(i, nu, eps) * J_[i].transpose() * across * J_[i];
      }
      const Vector step = -hessian.ldlt().solve(gradient);
      const double slope = gradient.dot(step), here = value(eps, nu);
      double length = 1;
      while (length > 1e-12 && !(value(eps, nu + length * step) <= here + 1e-4 * length * slope)) length *= 0.5;
      if (length <= 1e-12) return;  // rounding errors allow no further decrease
      nu += length * step;
      if (step.norm() <= 1e-15 * nu.norm()) return;
    }
  }

 private:
  double limit(std::size_t i) const { return limits_[static_cast<Eigen::Index>(i)]; }
  double speed(std::size_t i, const Vector& nu, double eps) const { return std::hypot((J_[i] * nu).norm(), eps); }

  Vector nu_free_, inertia_, limits_;
  std::array<SupportJacobian, kSupports> J_;
};

}  // namespace

Vector isotropic_friction_step(const Vector& nu_free, const Vector& inertia,
                               const std::array<SupportJacobian, kSupports>& J, const Vector& limits) {
  double fastest = 0;
  for (const SupportJacobian& J_i : J) fastest = std::max(fastest, (J_i * nu_free).norm());
  if (fastest == 0) return nu_free;
  const SmoothedObjective objective(nu_free, inertia, J, limits);
  Vector nu = nu_free;
  for (double eps = 0.1 * fastest; eps > 1e-14 * fastest; eps *= 0.1) objective.minimise(eps, nu);
  // The velocity of a body that sticks is not exactly 0 for eps > 0.
  return objective.value(0, Vector::Zero()) <= objective.value(0, nu) ? Vector(Vector::Zero()) : nu;
}

}  // namespace lcp::physics
