#include "contact/derivative.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::contact {
namespace {

using Eigen::Vector3d;

bool any(const double* x, Eigen::Index size, bool (*holds)(double)) { return std::any_of(x, x + size, holds); }
Eigen::Map<const Vector3d> of_contact(const double* x, Eigen::Index k) { return Eigen::Map<const Vector3d>(x + 3 * k); }

bool is_nan(double x) { return std::isnan(x); }
bool is_not_zero(double x) { return x != 0; }

}  // namespace

Derivative::Derivative(Eigen::Index n, Eigen::Index contacts)
    : n_(n),
      contacts_(contacts),
      systems_(n, contacts),
      l_(n),
      work_(n),
      Jl_(3 * contacts),
      pull_(3 * contacts),
      at_(contacts),
      K_(contacts) {}

// Computes P(y) and K, and factors H. Returns false where there is no solution.
bool Derivative::linearize(const Problem& problem, const double* v, const double* y) {
  is_linear_ = false;
  if (any(v, n_, is_nan) || any(y, 3 * contacts_, is_nan)) return false;
  system_ = &systems_.set(problem.A, problem.J);
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law law = problem.law(k);
    const Vector3d y_k = of_contact(y, k);
    at_[k] = project(y_k, law);
    K_[k] = projected_compliance(y_k, at_[k], law);
  }
  return is_linear_ = system_->factor(K_);
}

void Derivative::adjoint(const Problem& problem, const double* v, const double* y, const Gradient& g,
                         const Adjoint& result, bool same) {
  const Eigen::Index rows = 3 * contacts_;
  const bool asked = any(g.v, n_, is_not_zero) || any(g.y, rows, is_not_zero) || any(g.gamma, rows, is_not_zero);
  const auto fill_undefined = [&] {
    const double value = asked ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    for (double* x : {result.l, result.v_free}) std::fill_n(x, n_, value);
    for (double* x : {result.v_hat, result.R, result.gamma}) std::fill_n(x, rows, value);
    std::fill_n(result.mu, contacts_, value);
  };
  if (!(same ? is_linear_ : linearize(problem, v, y))) return fill_undefined();

  System& system = *system_;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    pull_.segment<3>(3 * k) = of_contact(g.y, k).cwiseQuotient(problem.law(k).R()) + K_[k] * of_contact(g.gamma, k);
  }
  system.to_bodies(pull_, work_);
  l_ = Eigen::Map<const Vector>(g.v, n_) - work_;
  system.solve(l_);
  system.multiply(l_, work_);
  system.to_contacts(l_, Jl_);
  std::copy_n(l_.data(), n_, result.l);
  std::copy_n(work_.data(), n_, result.v_free);
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d y_k = of_contact(y, k), Jl = Jl_.segment<3>(3 * k);
    const Vector3d c = pull_.segment<3>(3 * k) + K_[k] * Jl;
    const Vector3d of_law = law_gradient(y_k, at_[k], problem.law(k), Jl + of_contact(g.gamma, k));
    const double tangent = (of_law[0] - y_k.head<2>().dot(c.head<2>())) / 2;
    Eigen::Map<Vector3d>(result.v_hat + 3 * k) = c;
    Eigen::Map<Vector3d>(result.R + 3 * k) = Vector3d(tangent, tangent, of_law[1] - y_k.z() * c.z());
    Eigen::Map<Vector3d>(result.gamma + 3 * k) = at_[k].gamma;
    result.mu[k] = of_law[2];
  }
}

// dgamma = K R dy + dP and R dy = ds - J dv - y dR, so that H dv = dp + J' (K (ds - y dR) + dP).
void Derivative::tangent(const Problem& problem, const double* v, const double* y, const Tangent& d, double* dv,
                         double* dgamma, bool same) {
  const Eigen::Index rows = 3 * contacts_;
  if (!(same ? is_linear_ : linearize(problem, v, y))) {
    const bool changes = any(d.p, n_, is_not_zero) || any(d.s, rows, is_not_zero) || any(d.R, rows, is_not_zero) ||
                         any(d.mu, contacts_, is_not_zero);
    const double value = changes ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    std::fill_n(dv, n_, value);
    std::fill_n(dgamma, rows, value);
    return;
  }
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d y_k = of_contact(y, k), given = of_contact(d.R, k);
    const double tangent = (given.x() + given.y()) / 2;
    const Vector3d dR(tangent, tangent, given.z()), of_law(tangent, given.z(), d.mu[k]);
    Vector3d dP;
    for (int i = 0; i < 3; ++i) dP[i] = law_gradient(y_k, at_[k], problem.law(k), Vector3d::Unit(i)).dot(of_law);
    pull_.segment<3>(3 * k) = K_[k] * (of_contact(d.s, k) - y_k.cwiseProduct(dR)) + dP;
  }
  system_->to_bodies(pull_, work_);
  l_ = Eigen::Map<const Vector>(d.p, n_) + work_;
  system_->solve(l_);
  system_->to_contacts(l_, Jl_);
  std::copy_n(l_.data(), n_, dv);
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    Eigen::Map<Vector3d>(dgamma + 3 * k) = pull_.segment<3>(3 * k) - K_[k] * Jl_.segment<3>(3 * k);
  }
}

Inverse::Inverse(Eigen::Index n, Eigen::Index contacts) : n_(n), systems_(n, contacts), x_(n), K_(contacts) {}

void Inverse::operator()(const double* A, const double* J, const double* K, const double* g, double* x) {
  if (!any(g, n_, is_not_zero)) return static_cast<void>(std::fill_n(x, n_, 0.0));
  for (std::size_t k = 0; k < K_.size(); ++k) K_[k] = Eigen::Map<const Eigen::Matrix3d>(K + 9 * k);
  System& system = systems_.set(A, J);
  x_ = Eigen::Map<const Vector>(g, n_);
  if (system.factor(K_)) {
    system.solve(x_);
  } else {
    x_.setConstant(std::numeric_limits<double>::quiet_NaN());
  }
  std::copy_n(x_.data(), n_, x);
}

}  // namespace lcp::contact
