#include "contact/newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::contact {
namespace {

using Eigen::Vector3d;
using Numbers = Eigen::Map<const Vector>;

constexpr double kFarthest = 1.5;    // of a Newton step
constexpr double kFlat = 1e-12;      // of the slope at its end, over that at its start
constexpr int kEvaluations = 60;     // of the slope, at most
constexpr double kNearFloor = 1e-4;  // of the residual, beyond which no rounding is looked at
constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;

std::size_t at(int k) { return static_cast<std::size_t>(k); }

Vector3d weights(const Law& law) { return {law.tangent, law.tangent, law.normal}; }

}  // namespace

Newton::Newton(int n, int contacts)
    : n_(n),
      contacts_(contacts),
      systems_(n, contacts),
      v_(n),
      v_free_(n),
      v_hat_(3 * contacts),
      scale_(n),
      momentum_(n),
      push_(n),
      gradient_(n),
      step_(n),
      work_(n),
      scaled_(n),
      y_(3 * contacts),
      gamma_(3 * contacts),
      Jv_(3 * contacts),
      Jstep_(3 * contacts),
      contact_work_(3 * contacts),
      at_(at(contacts)),
      K_(at(contacts)) {}

// |D x|.
double Newton::scaled_norm(const Vector& x) {
  scaled_ = x.cwiseProduct(scale_);
  return scaled_.stableNorm();
}

void Newton::impulses(const Problem& problem) {
  for (int k = 0; k < contacts_; ++k) {
    const Law law = problem.law(k);
    y_.segment<3>(3 * k) = (v_hat_ - Jv_).segment<3>(3 * k).cwiseQuotient(weights(law));
    at_[at(k)] = project(y_.segment<3>(3 * k), law);
    gamma_.segment<3>(3 * k) = at_[at(k)].gamma;
  }
}

void Newton::compliances(const Problem& problem) {
  for (int k = 0; k < contacts_; ++k) {
    K_[at(k)] = projected_compliance(y_.segment<3>(3 * k), at_[at(k)], problem.law(k));
  }
}

// |D e|.
double Newton::rounding(const Problem& problem, const System& system) {
  compliances(problem);
  work_ = v_.cwiseAbs();
  system.to_contacts_abs(work_, contact_work_);
  contact_work_ += v_hat_.cwiseAbs();
  for (int k = 0; k < contacts_; ++k) {
    const Vector3d sizes = K_[at(k)].cwiseAbs() * contact_work_.segment<3>(3 * k);
    contact_work_.segment<3>(3 * k) = sizes + gamma_.segment<3>(3 * k).cwiseAbs();
  }
  work_ += v_free_.cwiseAbs();
  system.multiply_abs(work_, step_);
  system.to_bodies_abs(contact_work_, work_);
  step_ += work_;
  return (n_ + 3 * contacts_ + 4) * kUnit * scaled_norm(step_);
}

// The zero of the slope of the objective along the step, which rises: Newton's method between bounds.
double Newton::step_length(const Problem& problem, double slope, double curvature) {
  const double start = slope - Jstep_.dot(gamma_);
  double low = 0, high = kFarthest, length = 1;
  for (int k = 0; k < kEvaluations; ++k) {
    double value = slope + length * curvature, rise = curvature;
    for (int c = 0; c < contacts_; ++c) {
      const Law law = problem.law(c);
      const Vector3d along = Jstep_.segment<3>(3 * c);
      const Vector3d y = y_.segment<3>(3 * c) - length * along.cwiseQuotient(weights(law));
      const Projection there = project(y, law);
      value -= along.dot(there.gamma);
      rise += along.dot(projected_compliance(y, there, law) * along);
    }
    if (std::abs(value) <= kFlat * std::abs(start)) return length;
    (value < 0 ? low : high) = length;
    if (value < 0 && length == kFarthest) return length;
    if (high - low <= std::numeric_limits<double>::epsilon() * high) return low;
    const double next = length - value / rise;
    length = next > low && next < high ? next : next >= kFarthest && high == kFarthest ? kFarthest : (low + high) / 2;
  }
  return length;
}

Outcome Newton::solve(const Problem& problem, const Limits& limits, double* v, double* y, double* gamma) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (!well_posed(problem, n_, contacts_)) return {End::kBad, 0, kNaN};
  System& system = systems_.set(problem.A, problem.J);
  std::fill(K_.begin(), K_.end(), Eigen::Matrix3d::Zero());
  if (!system.factor(K_)) return {End::kBad, 0, kNaN};
  v_ = Numbers(v, n_);
  v_free_ = Numbers(problem.v_free, n_);
  v_hat_ = Numbers(problem.v_hat, 3 * contacts_);
  system.diagonal(scale_);
  scale_ = scale_.cwiseSqrt().cwiseInverse();

  const auto end = [&](End how, int iterations, double residual) -> Outcome {
    std::copy_n(v_.data(), n_, v);
    std::copy_n(y_.data(), 3 * contacts_, y);
    std::copy_n(gamma_.data(), 3 * contacts_, gamma);
    return {how, iterations, residual};
  };
  for (int iteration = 0;; ++iteration) {
    work_ = v_ - v_free_;
    system.multiply(work_, momentum_);
    system.to_contacts(v_, Jv_);
    impulses(problem);
    system.to_bodies(gamma_, push_);
    gradient_ = momentum_ - push_;
    system.multiply(v_, work_);
    const double off = scaled_norm(gradient_), size = std::max(scaled_norm(work_), scaled_norm(push_));
    const double residual = off == 0 ? 0 : off / size;
    if (residual <= limits.tolerance) return end(End::kSolved, iteration, residual);
    if (residual <= kNearFloor && off <= rounding(problem, system)) return end(End::kSolved, iteration, residual);
    if (iteration == limits.max_iterations) return end(End::kLimit, iteration, residual);

    compliances(problem);
    if (!std::isfinite(off) || !system.factor(K_)) return end(End::kStuck, iteration, residual);
    step_ = -gradient_;
    system.solve(step_);
    system.to_contacts(step_, Jstep_);
    system.multiply(step_, work_);
    const double length = step_length(problem, step_.dot(momentum_), step_.dot(work_));
    work_ = v_ + length * step_;
    if (work_ == v_) return end(End::kStuck, iteration, residual);
    v_.swap(work_);
  }
}

}  // namespace lcp::contact
