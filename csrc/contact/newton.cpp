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
constexpr double kFar = 0.1;         // of the residual, beyond which softer problems come first
constexpr double kSofter = 0.1;      // of the first of these, and of each next one's softness over the last's
constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;

std::size_t at(Eigen::Index k) { return static_cast<std::size_t>(k); }

Vector3d weights(const Law& law) { return {law.tangent, law.tangent, law.normal}; }

}  // namespace

Newton::Newton(Eigen::Index n, Eigen::Index contacts)
    : n_(n),
      contacts_(contacts),
      systems_(n, contacts),
      v_(n),
      v_free_(n),
      free_momentum_(n),
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
      sizes_(contacts),
      at_(at(contacts)),
      K_(at(contacts)) {}

// Makes contacts as soft as softness times their size at least; with softness_ = 0 where all are already.
void Newton::soften(const Problem& problem, double softness) {
  softness_ = 0;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law own = problem.law(k);
    if (softness * sizes_[k] > std::min(own.tangent, own.normal)) softness_ = softness;
  }
}

Law Newton::law(const Problem& problem, Eigen::Index contact) const {
  const Law own = problem.law(contact);
  const double least = softness_ * sizes_[contact];
  return {own.mu, std::max(own.tangent, least), std::max(own.normal, least)};
}

// |D x|.
double Newton::scaled_norm(const Vector& x) {
  scaled_ = x.cwiseProduct(scale_);
  return scaled_.stableNorm();
}

void Newton::impulses(const Problem& problem) {
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law own = law(problem, k);
    y_.segment<3>(3 * k) = (v_hat_ - Jv_).segment<3>(3 * k).cwiseQuotient(weights(own));
    at_[at(k)] = project(y_.segment<3>(3 * k), own);
    gamma_.segment<3>(3 * k) = at_[at(k)].gamma;
  }
}

void Newton::compliances(const Problem& problem) {
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    K_[at(k)] = projected_compliance(y_.segment<3>(3 * k), at_[at(k)], law(problem, k));
  }
}

// |D e|.
double Newton::rounding(const Problem& problem, const System& system) {
  compliances(problem);
  work_ = v_.cwiseAbs();
  system.to_contacts_abs(work_, contact_work_);
  contact_work_ += v_hat_.cwiseAbs();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d sizes = K_[at(k)].cwiseAbs() * contact_work_.segment<3>(3 * k);
    contact_work_.segment<3>(3 * k) = sizes + gamma_.segment<3>(3 * k).cwiseAbs();
  }
  work_ += v_free_.cwiseAbs();
  system.multiply_abs(work_, step_);
  system.to_bodies_abs(contact_work_, work_);
  step_ += work_;
  return static_cast<double>(n_ + 3 * contacts_ + 4) * kUnit * scaled_norm(step_);
}

// The zero of the slope of the objective along the step, which rises: Newton's method between bounds.
double Newton::step_length(const Problem& problem, double slope, double curvature) {
  const double start = slope - Jstep_.dot(gamma_);
  double low = 0, high = kFarthest, length = 1;
  for (int k = 0; k < kEvaluations; ++k) {
    double value = slope + length * curvature, rise = curvature;
    for (Eigen::Index c = 0; c < contacts_; ++c) {
      const Law own = law(problem, c);
      const Vector3d along = Jstep_.segment<3>(3 * c);
      const Vector3d y = y_.segment<3>(3 * c) - length * along.cwiseQuotient(weights(own));
      const Projection there = project(y, own);
      value -= along.dot(there.gamma);
      rise += along.dot(projected_compliance(y, there, own) * along);
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

Newton::Residual Newton::evaluate(const Problem& problem, const System& system) {
  work_ = v_ - v_free_;
  system.multiply(work_, momentum_);
  system.to_contacts(v_, Jv_);
  impulses(problem);
  system.to_bodies(gamma_, push_);
  gradient_ = momentum_ - push_;
  work_ = momentum_ + free_momentum_;
  const double off = scaled_norm(gradient_), size = std::max(scaled_norm(work_), scaled_norm(push_));
  return {off, off == 0 ? 0 : off / size};
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
  system.multiply(v_free_, free_momentum_);
  system.diagonal(work_);
  scale_ = work_.cwiseSqrt().cwiseInverse();
  work_ = work_.cwiseInverse();
  system.row_squares(work_, contact_work_);
  for (Eigen::Index k = 0; k < contacts_; ++k) sizes_[k] = contact_work_.segment<3>(3 * k).mean();

  const auto end = [&](End how, std::int64_t iterations, const Residual& at) -> Outcome {
    std::copy_n(v_.data(), n_, v);
    std::copy_n(y_.data(), 3 * contacts_, y);
    std::copy_n(gamma_.data(), 3 * contacts_, gamma);
    return {how, iterations, at.relative};
  };
  softness_ = 0;
  bool softened = false;
  for (std::int64_t iteration = 0;;) {
    const Residual at = evaluate(problem, system);
    if (softness_ == 0) {
      if (at.relative <= limits.tolerance) return end(End::kSolved, iteration, at);
      if (at.relative <= kNearFloor && at.absolute <= rounding(problem, system)) {
        return end(End::kSolved, iteration, at);
      }
      if (iteration == limits.max_iterations) return end(End::kLimit, iteration, at);
    }
    if (at.relative > kFar ? !softened : softness_ > 0) {
      const double before = softness_;
      soften(problem, softened ? before * kSofter : kSofter);
      softened = true;
      if (softness_ != before) continue;
    }
    if (iteration == limits.max_iterations) {
      softness_ = 0;
      continue;
    }

    compliances(problem);
    if (!std::isfinite(at.absolute) || !system.factor(K_)) return end(End::kStuck, iteration, at);
    step_ = -gradient_;
    system.solve(step_);
    system.to_contacts(step_, Jstep_);
    system.multiply(step_, work_);
    const double length = step_length(problem, step_.dot(momentum_), step_.dot(work_));
    work_ = v_ + length * step_;
    if (work_ == v_) return end(End::kStuck, iteration, at);
    v_.swap(work_);
    ++iteration;
  }
}

}  // namespace lcp::contact
