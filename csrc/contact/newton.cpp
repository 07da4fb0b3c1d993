#include "contact/newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::contact {
namespace {

using Eigen::Vector3d;
using Numbers = Eigen::Map<const Vector>;

// The residual to which each softened problem is solved where y is an unknown. With 0.1, the impulses that are handed
// on are so inaccurate that some problems take hundreds of steps (measured).
constexpr double kShiftResidual = 0.01;

// The number of failures after which the method gives up where y is an unknown. Softened problems with the smallest S
// and Newton steps without effect count together.
constexpr int kMaxFailures = 10;

// The number of Newton steps after which the method gives up where y is an unknown. The hardest of 100 000 problems
// that it solved took about 150.
constexpr int kMaxSteps = 300;

// y + low := y + low + change, where low takes the rounding errors of y.
void advance(Vector3d& y, Vector3d& low, const Vector3d& change) {
  const Vector3d sum = y + change, part = sum - y;
  low += (y - (sum - part)) + (change - part);
  y = sum;
}

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
      low_(3 * contacts),
      delassus_(contacts),
      at_(contacts),
      K_(contacts) {}

// Makes R >= softness w hold in the current problem. softness_ is 0 where the given problem already has R >= softness
// w.
void Newton::soften(const Problem& problem, double softness) {
  softness_ = 0;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law given = problem.law(k);
    if (softness * delassus_[k] > std::min(given.tangent, given.normal)) softness_ = softness;
  }
}

Law Newton::law(const Problem& problem, Eigen::Index contact) const {
  const Law given = problem.law(contact);
  const double lower = softness_ * delassus_[contact];
  return {given.mu, std::max(given.tangent, lower), std::max(given.normal, lower)};
}

double Newton::scaled_norm(const Vector& x) {
  scaled_ = x.cwiseProduct(scale_);
  return scaled_.stableNorm();
}

// Continues with the softened problem that has v_hat + (S - R) gamma in place of v_hat.
void Newton::shift(const Problem& problem, const System& system, double softness) {
  soften(problem, softness);
  system.to_contacts(v_, Jv_);
  low_.setZero();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d S = law(problem, k).R(), R = problem.law(k).R(), gamma = gamma_.segment<3>(3 * k);
    const Vector3d pull = (v_hat_ - Jv_).segment<3>(3 * k) + (S - R).cwiseProduct(gamma);
    y_.segment<3>(3 * k) = pull.cwiseQuotient(S);
  }
}

void Newton::impulses(const Problem& problem) {
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Law law_k = law(problem, k);
    if (y_is_unknown_) {
      at_[k] = project(y_.segment<3>(3 * k), low_.segment<3>(3 * k), law_k);
    } else {
      y_.segment<3>(3 * k) = (v_hat_ - Jv_).segment<3>(3 * k).cwiseQuotient(law_k.R());
      at_[k] = project(y_.segment<3>(3 * k), law_k);
    }
    gamma_.segment<3>(3 * k) = at_[k].gamma;
  }
}

void Newton::compliances(const Problem& problem) {
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    K_[k] = projected_compliance(y_.segment<3>(3 * k), at_[k], law(problem, k));
  }
}

double Newton::momentum_rounding(const System& system) {
  work_ = v_.cwiseAbs() + v_free_.cwiseAbs();
  system.multiply_abs(work_, step_);
  return static_cast<double>(n_ + 3 * contacts_ + 4) * kUnitRoundoff * scaled_norm(step_);
}

double Newton::rounding(const Problem& problem, const System& system) {
  work_ = v_.cwiseAbs();
  if (y_is_unknown_) {
    contact_work_ = gamma_.cwiseAbs();
  } else {
    compliances(problem);
    system.to_contacts_abs(work_, contact_work_);
    contact_work_ += v_hat_.cwiseAbs();
    for (Eigen::Index k = 0; k < contacts_; ++k) {
      const Vector3d sizes = K_[k].cwiseAbs() * contact_work_.segment<3>(3 * k);
      contact_work_.segment<3>(3 * k) = sizes + gamma_.segment<3>(3 * k).cwiseAbs();
    }
  }
  work_ += v_free_.cwiseAbs();
  system.multiply_abs(work_, step_);
  system.to_bodies_abs(contact_work_, work_);
  step_ += work_;
  return static_cast<double>(n_ + 3 * contacts_ + 4) * kUnitRoundoff * scaled_norm(step_);
}

// The step length at which the derivative of the objective along the step is 0. This derivative increases with the
// length, so that Newton's method, safeguarded by bisection, finds its zero. |v - v_free|_A^2 / 2 contributes `slope`
// to the derivative and `curvature` to the second derivative. If rounding errors make the derivative at 0 not negative,
// the result is 0.
double Newton::step_length(const Problem& problem, double slope, double curvature) {
  const double start = slope - Jstep_.dot(gamma_);
  if (!(start < 0)) return 0;
  double low = 0, high = kMaxStepLength, length = 1;
  for (int k = 0; k < kMaxEvaluations; ++k) {
    double value = slope + length * curvature, rise = curvature;
    for (Eigen::Index c = 0; c < contacts_; ++c) {
      const Law law_c = law(problem, c);
      const Vector3d along = Jstep_.segment<3>(3 * c);
      const Vector3d change = -length * along.cwiseQuotient(law_c.R());
      Vector3d y = y_.segment<3>(3 * c);
      Projection there;
      if (y_is_unknown_) {
        Vector3d rest = low_.segment<3>(3 * c);
        advance(y, rest, change);
        there = project(y, rest, law_c);
      } else {
        y += change;
        there = project(y, law_c);
      }
      value -= along.dot(there.gamma);
      rise += along.dot(projected_compliance(y, there, law_c) * along);
    }
    if (std::abs(value) <= kSlopeTolerance * std::abs(start)) return length;
    (value < 0 ? low : high) = length;
    if (value < 0 && length == kMaxStepLength) return length;
    if (high - low <= std::numeric_limits<double>::epsilon() * high) return low;
    const double next = length - value / rise;
    length = next > low && next < high                          ? next
             : next >= kMaxStepLength && high == kMaxStepLength ? kMaxStepLength
                                                                : (low + high) / 2;
  }
  return length;
}

Newton::Residual Newton::evaluate(const Problem& problem, const System& system) {
  work_ = v_ - v_free_;
  system.multiply(work_, momentum_);
  if (!y_is_unknown_) system.to_contacts(v_, Jv_);
  impulses(problem);
  system.to_bodies(gamma_, push_);
  gradient_ = momentum_ - push_;
  const double error = scaled_norm(gradient_), change = std::max(scaled_norm(momentum_), scaled_norm(push_));
  const bool is_small = error <= kNearSolution * std::max(change, scaled_norm(free_momentum_));
  const bool is_zero = error == 0 || (is_small && error <= momentum_rounding(system));
  return {error, is_zero ? 0 : error / change, is_small};
}

bool Newton::is_rounding(const Problem& problem, const System& system, const Residual& at) {
  return at.relative == 0 || (at.is_small && at.absolute <= rounding(problem, system));
}

bool Newton::accurate(const Problem& problem, const Limits& limits, const System& system, const Residual& at) {
  if (at.relative <= limits.tolerance) return true;
  return at.relative <= (y_is_unknown_ ? kNearSolution : kMaxBlur) && is_rounding(problem, system, at);
}

// Whether R y = v_hat - J v up to rounding errors, for the given R and y.
bool Newton::complies(const Problem& problem, const System& system) {
  system.to_contacts(v_, Jv_);
  work_ = v_.cwiseAbs() + v_free_.cwiseAbs();
  system.to_contacts_abs(work_, contact_work_);
  contact_work_ += v_hat_.cwiseAbs();
  const double unit = 4 * static_cast<double>(n_ + 3 * contacts_ + 4) * kUnitRoundoff;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d S = law(problem, k).R(), gamma = gamma_.segment<3>(3 * k);
    const Vector3d R_gamma = problem.law(k).R().cwiseProduct(gamma);
    const Vector3d R_y = R_gamma + S.cwiseProduct(y_.segment<3>(3 * k) - gamma);
    const Vector3d size = contact_work_.segment<3>(3 * k) + R_gamma.cwiseAbs();
    if (!(((v_hat_ - Jv_).segment<3>(3 * k) - R_y).cwiseAbs().maxCoeff() <= unit * size.maxCoeff())) return false;
  }
  return true;
}

// Sets step_ and Jstep_, and work_ to A step_. False if the Hessian is not positive definite.
bool Newton::newton_step(const Problem& problem, System& system) {
  pace_.spend((n_ + 3 * contacts_) * n_ * n_);
  compliances(problem);
  if (!system.factor(K_)) return false;
  step_ = -gradient_;
  system.solve(step_);
  system.to_contacts(step_, Jstep_);
  system.multiply(step_, work_);
  return true;
}

Outcome Newton::solve_for_v(const Problem& problem, const Limits& limits, System& system) {
  softness_ = 0;
  bool softened = false;
  for (std::int64_t iteration = 0;;) {
    const Residual at = evaluate(problem, system);
    if (softness_ == 0) {
      if (accurate(problem, limits, system, at)) return {Termination::kSolved, iteration, at.relative};
      if (iteration == limits.max_iterations) return {Termination::kIterationLimit, iteration, at.relative};
    }
    const bool is_blurred = at.relative > kMaxBlur && is_rounding(problem, system, at);
    if (is_blurred && softness_ == 0) return {Termination::kNoProgress, iteration, at.relative};
    if (at.relative > kFarFromSolution && !is_blurred ? !softened : softness_ > 0) {
      const double before = softness_;
      soften(problem, softened ? before * kSoftnessFactor : kSoftnessFactor);
      softened = true;
      if (softness_ != before) continue;
    }
    if (iteration == limits.max_iterations) {
      softness_ = 0;
      continue;
    }

    if (!std::isfinite(at.absolute) || !newton_step(problem, system)) {
      return {Termination::kNoProgress, iteration, at.relative};
    }
    const double length = step_length(problem, step_.dot(momentum_), step_.dot(work_));
    work_ = v_ + length * step_;
    if (work_ == v_) return {Termination::kNoProgress, iteration, at.relative};
    v_.swap(work_);
    ++iteration;
  }
}

Outcome Newton::solve_for_v_and_y(const Problem& problem, const Limits& limits, System& system,
                                  std::int64_t iteration) {
  const std::int64_t last = iteration + kMaxSteps;
  double softness = kSoftnessFactor;
  gamma_.setZero();
  shift(problem, system, softness);
  for (int failures = 0; failures <= kMaxFailures && iteration < last; ++iteration) {
    Residual at = evaluate(problem, system);
    if (at.relative <= kShiftResidual || is_rounding(problem, system, at)) {
      if (!complies(problem, system)) {
        if (softness_ == 0 || softness == kUnitRoundoff) ++failures;
        softness = std::max(kSoftnessFactor * softness, kUnitRoundoff);
        shift(problem, system, softness);
        at = evaluate(problem, system);
      } else if (accurate(problem, limits, system, at)) {
        for (Eigen::Index k = 0; k < contacts_; ++k) {
          const Vector3d S = law(problem, k).R(), R = problem.law(k).R(), gamma = gamma_.segment<3>(3 * k);
          y_.segment<3>(3 * k) = gamma + S.cwiseQuotient(R).cwiseProduct(y_.segment<3>(3 * k) - gamma);
        }
        return {Termination::kSolved, iteration, at.relative};
      }
    }
    if (iteration >= limits.max_iterations) return {Termination::kIterationLimit, iteration, at.relative};

    if (!std::isfinite(at.absolute) || !newton_step(problem, system)) break;
    const double descent = step_length(problem, step_.dot(momentum_), step_.dot(work_));
    const double length = descent > 0 ? descent : 1;
    work_ = v_ + length * step_;
    if (descent == 0 || work_ == v_) ++failures;
    v_.swap(work_);
    for (Eigen::Index k = 0; k < contacts_; ++k) {
      Vector3d y = y_.segment<3>(3 * k), low = low_.segment<3>(3 * k);
      advance(y, low, -length * Jstep_.segment<3>(3 * k).cwiseQuotient(law(problem, k).R()));
      y_.segment<3>(3 * k) = y;
      low_.segment<3>(3 * k) = low;
    }
  }
  return {Termination::kNoProgress, iteration, std::numeric_limits<double>::quiet_NaN()};
}

Outcome Newton::solve(const Problem& problem, const Limits& limits, double* v, double* y, double* gamma) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (!well_posed(problem, n_, contacts_)) return {Termination::kInvalid, 0, kNaN};
  System& system = systems_.set(problem.A, problem.J);
  std::fill(K_.begin(), K_.end(), Eigen::Matrix3d::Zero());
  if (!system.factor(K_)) return {Termination::kInvalid, 0, kNaN};
  v_ = Numbers(v, n_);
  v_free_ = Numbers(problem.v_free, n_);
  v_hat_ = Numbers(problem.v_hat, 3 * contacts_);
  system.multiply(v_free_, free_momentum_);
  system.diagonal(work_);
  scale_ = work_.cwiseSqrt().cwiseInverse();
  work_ = work_.cwiseInverse();
  system.row_squares(work_, contact_work_);
  for (Eigen::Index k = 0; k < contacts_; ++k) delassus_[k] = contact_work_.segment<3>(3 * k).mean();

  y_is_unknown_ = false;
  soften(problem, kStiff);
  Outcome outcome = {Termination::kNoProgress, 0, kNaN};
  if (softness_ == 0) outcome = solve_for_v(problem, limits, system);
  if (outcome.termination == Termination::kNoProgress) {
    y_is_unknown_ = true;
    outcome = solve_for_v_and_y(problem, limits, system, outcome.iterations);
  }
  if (outcome.termination != Termination::kSolved) {
    y_is_unknown_ = false;
    softness_ = 0;
    outcome.residual = evaluate(problem, system).relative;
  }
  std::copy_n(v_.data(), n_, v);
  std::copy_n(y_.data(), 3 * contacts_, y);
  std::copy_n(gamma_.data(), 3 * contacts_, gamma);
  return outcome;
}

}  // namespace lcp::contact
