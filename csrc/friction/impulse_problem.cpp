#include "friction/impulse_problem.h"

#include <algorithm>
#include <cmath>

#include "friction/law_error.h"

namespace lcp::friction {

void Impulses::velocities(const double* h, double* u) const {
  const int count = size();
  std::copy_n(q, count, u);
  for (int j = 0; j < count; ++j) {
    if (h[j] == 0) continue;
    const double* column = W + static_cast<std::size_t>(j) * count;  // W is symmetric
    for (int i = 0; i < count; ++i) u[i] += column[i] * h[j];
  }
}

double Impulses::residual(const double* h, const double* u) const {
  double worst = 0;
  for (int k = 0; k < contacts; ++k) {
    const double here = weight[k] * law_error(h + 3 * k, u + 3 * k, given_mu[k]);
    if (here > worst || std::isnan(here)) worst = here;
  }
  return worst;
}

ImpulseProblem::ImpulseProblem(Eigen::Index n, Eigen::Index contacts)
    : n_(n),
      contacts_(contacts),
      systems_(n, contacts),
      W_(9 * contacts * contacts),
      q_(3 * contacts),
      weight_(contacts),
      mu_(contacts),
      none_(contacts, Eigen::Matrix3d::Zero()),
      column_(n),
      row_(3 * contacts),
      u_(3 * contacts) {}

bool ImpulseProblem::set(const Problem& problem) {
  problem_ = problem;
  system_ = &systems_.set(problem.A, problem.J);
  if (!system_->factor(none_)) return false;
  const Eigen::Index rows = 3 * contacts_;
  system_->compliance(W_.data());
  column_ = Eigen::Map<const contact::Vector>(problem.v_free, n_);
  system_->to_contacts(column_, row_);
  row_ += Eigen::Map<const contact::Vector>(problem.b, rows);
  unit_ = rows > 0 ? row_.lpNorm<Eigen::Infinity>() : 0;
  if (unit_ == 0) unit_ = 1;
  column_ = column_.cwiseAbs();
  system_->to_contacts_abs(column_, u_);
  u_ += Eigen::Map<const contact::Vector>(problem.b, rows).cwiseAbs();
  rounding_ = rows > 0 ? kRounding * u_.maxCoeff() / unit_ : 0;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    double trace = 0;
    for (Eigen::Index i = 3 * k; i < 3 * k + 3; ++i) trace += W_[i * rows + i];
    weight_[k] = trace > 0 ? std::sqrt(trace / 3) : 1;  // a contact that moves nothing has W_kk = 0
  }
  for (Eigen::Index i = 0; i < rows; ++i) {
    q_[i] = row_[i] / (weight_[i / 3] * unit_);
    row_[i] = 1 / weight_[i / 3];
  }
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < rows; ++j) W_[i * rows + j] *= row_[i] * row_[j];
  }
  for (Eigen::Index k = 0; k < contacts_; ++k) mu_[k] = std::min(problem.mu[k], kLargestFriction);
  impulses_ = {static_cast<int>(contacts_), W_.data(), q_.data(), mu_.data(), problem.mu, weight_.data()};
  return true;
}

void ImpulseProblem::scaled(const double* gamma, double* h) const {
  for (Eigen::Index i = 0; i < 3 * contacts_; ++i) h[i] = gamma[i] * weight_[i / 3] / unit_;
}

double ImpulseProblem::unscaled(const double* h, double* gamma, double* v, double* u) {
  for (Eigen::Index i = 0; i < 3 * contacts_; ++i) row_[i] = h[i] * unit_ / weight_[i / 3];
  std::copy_n(row_.data(), row_.size(), gamma);
  system_->to_bodies(row_, column_);
  system_->solve(column_);
  column_ += Eigen::Map<const contact::Vector>(problem_.v_free, n_);
  std::copy_n(column_.data(), n_, v);
  system_->to_contacts(column_, u_);
  for (Eigen::Index i = 0; i < 3 * contacts_; ++i) {
    u[i] = u_[i] + problem_.b[i];
    u_[i] = u[i] / (weight_[i / 3] * unit_);
  }
  return impulses_.residual(h, u_.data());
}

double ImpulseProblem::effect(const double* h) {
  for (Eigen::Index i = 0; i < 3 * contacts_; ++i) row_[i] = h[i] / weight_[i / 3];
  system_->to_bodies(row_, column_);
  const contact::Vector push = column_;
  system_->solve(column_);
  return std::sqrt(std::max(0.0, push.dot(column_)));
}

}  // namespace lcp::friction
