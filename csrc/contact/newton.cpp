#include "contact/newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::contact {
namespace {

using Rows = Eigen::Map<const Matrix>;
using Numbers = Eigen::Map<const Eigen::VectorXd>;

constexpr double kFarthest = 1.5;    // of a Newton step
constexpr double kFlat = 1e-12;      // of the slope at its end, over that at its start
constexpr int kEvaluations = 60;     // of the slope, at most
constexpr double kSymmetric = 1e-9;  // how far A may be from its transpose, of its largest number

Law law_of(const Problem& problem, int k) { return {problem.mu[k], problem.R[3 * k], problem.R[3 * k + 2]}; }

}  // namespace

Newton::Newton(int n, int contacts)
    : n_(n),
      contacts_(contacts),
      scale_(n),
      momentum_(n),
      gradient_(n),
      step_(n),
      push_(n),
      moved_(n),
      y_(3 * contacts),
      Jv_(3 * contacts),
      Jstep_(3 * contacts),
      trial_(3 * contacts),
      trial_gamma_(3 * contacts),
      H_(n, n),
      KJ_(3, n),
      at_(static_cast<std::size_t>(contacts)) {}

bool Newton::fits(const Problem& problem) const {
  const Rows A(problem.A, n_, n_), J(problem.J, 3 * contacts_, n_);
  if (!A.allFinite() || !J.allFinite() || !Numbers(problem.v_free, n_).allFinite()) return false;
  if (!Numbers(problem.v_hat, 3 * contacts_).allFinite()) return false;
  for (int k = 0; k < contacts_; ++k) {
    const double* R = problem.R + 3 * k;
    if (!(R[0] > 0 && R[2] > 0 && R[1] == R[0] && std::isfinite(R[0]) && std::isfinite(R[2]))) return false;
    if (!(problem.mu[k] >= 0 && std::isfinite(problem.mu[k]))) return false;
  }
  if (n_ == 0) return true;
  const double largest = A.cwiseAbs().maxCoeff();
  for (int i = 0; i < n_; ++i) {
    if (!(A(i, i) > 0)) return false;
    for (int j = 0; j < i; ++j) {
      if (std::abs(A(i, j) - A(j, i)) > kSymmetric * largest) return false;
    }
  }
  return true;
}

void Newton::project_all(const Problem& problem, const Vector& y, double* gamma) {
  for (int k = 0; k < contacts_; ++k) {
    const std::size_t i = static_cast<std::size_t>(k);
    at_[i] = project(y.segment<3>(3 * k), law_of(problem, k));
    Eigen::Map<Eigen::Vector3d>(gamma + 3 * k) = at_[i].gamma;
  }
}

// The zero of the slope of the objective along the step, which rises: Newton's method between bounds.
double Newton::step_length(const Problem& problem, double slope, double curvature) {
  const double start = slope - Jstep_.dot(trial_gamma_);
  double low = 0, high = kFarthest, length = 1;
  for (int k = 0; k < kEvaluations; ++k) {
    double value = slope + length * curvature, rise = curvature;
    for (int c = 0; c < contacts_; ++c) {
      const Law law = law_of(problem, c);
      const Eigen::Vector3d along = Jstep_.segment<3>(3 * c);
      const Eigen::Vector3d weight(law.tangent, law.tangent, law.normal);
      const Eigen::Vector3d y = y_.segment<3>(3 * c) - length * along.cwiseQuotient(weight);
      const Projection at = project(y, law);
      value -= along.dot(at.gamma);
      rise += along.dot(projected_compliance(y, at, law) * along);
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

Outcome Newton::solve(const Problem& problem, const Limits& limits, double* v_out, double* gamma_out) {
  if (!fits(problem)) return {End::kBad, 0, std::numeric_limits<double>::quiet_NaN()};
  const Rows A(problem.A, n_, n_), J(problem.J, 3 * contacts_, n_);
  const Numbers v_free(problem.v_free, n_), v_hat(problem.v_hat, 3 * contacts_), R(problem.R, 3 * contacts_);
  Eigen::Map<Vector> v(v_out, n_), gamma(gamma_out, 3 * contacts_);
  scale_ = A.diagonal().cwiseSqrt().cwiseInverse();
  H_ = A;
  if (Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>>(H_).info() != Eigen::Success) {
    return {End::kBad, 0, std::numeric_limits<double>::quiet_NaN()};
  }

  double last = std::numeric_limits<double>::infinity();
  for (int iteration = 0;; ++iteration) {
    moved_ = v - v_free;
    momentum_.noalias() = A.lazyProduct(moved_);
    Jv_.noalias() = J.lazyProduct(v);
    y_ = (v_hat - Jv_).cwiseQuotient(R);
    project_all(problem, y_, gamma_out);
    push_.noalias() = J.transpose().lazyProduct(gamma);
    gradient_ = momentum_ - push_;
    moved_.noalias() = A.lazyProduct(v);
    const double size = std::max(moved_.cwiseProduct(scale_).stableNorm(), push_.cwiseProduct(scale_).stableNorm());
    const double off = gradient_.cwiseProduct(scale_).stableNorm();
    const double residual = size > 0 ? off / size : off > 0 ? std::numeric_limits<double>::infinity() : 0;
    if (residual <= limits.tolerance) return {End::kSolved, iteration, residual};
    if (iteration == limits.max_iterations) return {End::kLimit, iteration, residual};
    if (!std::isfinite(residual)) return {End::kStuck, iteration, residual};

    H_ = A;
    for (int k = 0; k < contacts_; ++k) {
      const Projection& at = at_[static_cast<std::size_t>(k)];
      if (at.region == Region::kNone) continue;
      const auto rows = J.middleRows<3>(3 * k);
      KJ_.noalias() = projected_compliance(y_.segment<3>(3 * k), at, law_of(problem, k)).lazyProduct(rows);
      H_.triangularView<Eigen::Lower>() += rows.transpose().lazyProduct(KJ_);
    }
    Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(H_);
    if (factor.info() != Eigen::Success) return {End::kBad, iteration, residual};
    step_ = -gradient_;
    factor.solveInPlace(step_);
    Jstep_.noalias() = J.lazyProduct(step_);
    moved_.noalias() = A.lazyProduct(step_);
    trial_gamma_ = gamma;
    const double length = step_length(problem, step_.dot(momentum_), step_.dot(moved_));
    moved_ = v + length * step_;
    // At the floor of rounding steps no longer change v, or the residual no longer falls.
    if ((moved_.array() == v.array()).all() ||
        (residual >= last && residual < 1e3 * limits.tolerance && length < 1e-8)) {
      return {End::kStuck, iteration, residual};
    }
    last = residual;
    v = moved_;
  }
}

}  // namespace lcp::contact
