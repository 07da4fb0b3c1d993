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
  h += 3 * contacts;
  u += 3 * contacts;
  for (int r = 0; r < rows; ++r) {
    const double here = row_weight * row_error(h[r], u[r], lower[r], upper[r]);
    if (here > worst || std::isnan(here)) worst = here;
  }
  return worst;
}

void Impulses::clamp_rows(double* h) const {
  h += 3 * contacts;
  for (int r = 0; r < rows; ++r) h[r] = std::min(std::max(h[r], lower[r]), upper[r]);
}

ImpulseProblem::ImpulseProblem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows)
    : n_(n),
      contacts_(contacts),
      rows_(rows),
      systems_(n, contacts, rows, contact::Factors::kOnce),
      W_((3 * contacts + rows) * (3 * contacts + rows)),
      q_(3 * contacts + rows),
      weight_(contacts + rows),
      mu_(contacts),
      lower_(rows),
      upper_(rows),
      compliance_(rows),
      none_(contacts, Eigen::Matrix3d::Zero()),
      column_(n),
      row_(3 * contacts + rows),
      u_(3 * contacts + rows) {}

// The largest velocity of a contact, and of the rows in the units of Impulses.
double ImpulseProblem::speed(const contact::Vector& u) const {
  double largest = contacts_ > 0 ? u.head(3 * contacts_).lpNorm<Eigen::Infinity>() : 0;
  for (Eigen::Index r = 0; r < rows_; ++r) {
    largest = std::max(largest, impulses_.row_weight * std::abs(u[3 * contacts_ + r]) / weight_[contacts_ + r]);
  }
  return largest;
}

bool ImpulseProblem::set(const Problem& problem) {
  problem_ = problem;
  system_ = &systems_.set(problem.A, problem.J);
  if (!system_->factor(none_)) return false;
  const Eigen::Index size = 3 * contacts_ + rows_;
  system_->compliance(W_.data());
  for (Eigen::Index r = 0; r < rows_; ++r) {
    compliance_[r] = problem.compliance != nullptr ? problem.compliance[r] : 0;
    W_[(3 * contacts_ + r) * (size + 1)] += compliance_[r];
  }
  impulses_.row_weight = contacts_ > 0 ? 0 : 1;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    double trace = 0;
    for (Eigen::Index i = 3 * k; i < 3 * k + 3; ++i) trace += W_[i * size + i];
    weight_[k] = trace > 0 ? std::sqrt(trace / 3) : 1;  // a contact that moves nothing has W_kk = 0
    impulses_.row_weight = std::max(impulses_.row_weight, weight_[k]);
  }
  for (Eigen::Index i = 3 * contacts_; i < size; ++i) {
    const double d = W_[i * size + i];
    weight_[i - 2 * contacts_] = d > 0 ? std::sqrt(d) : 1;
  }
  column_ = Eigen::Map<const contact::Vector>(problem.v_free, n_);
  system_->to_contacts(column_, row_);
  row_ += Eigen::Map<const contact::Vector>(problem.b, size);
  u_ = row_;
  unit_ = 0;
  for (Eigen::Index r = 0; r < rows_; ++r) {
    const Eigen::Index i = 3 * contacts_ + r;
    const double still = compliance_[r] > 0 ? -row_[i] / W_[i * (size + 1)] : 0;
    const double impulse = std::min(std::max(still, problem.lower[r]), problem.upper[r]);
    if (impulse == 0) continue;
    u_ += impulse * Eigen::Map<const contact::Vector>(W_.data() + i * size, size);
    if (compliance_[r] == 0) continue;
    const double change = (W_[i * (size + 1)] - compliance_[r]) * std::abs(impulse);
    unit_ = std::max(unit_, impulses_.row_weight * change / weight_[contacts_ + r]);
  }
  unit_ = std::max(unit_, speed(u_));
  if (unit_ == 0) unit_ = 1;
  column_ = column_.cwiseAbs();
  system_->to_contacts_abs(column_, u_);
  u_ += Eigen::Map<const contact::Vector>(problem.b, size).cwiseAbs();
  rounding_ = kRounding * speed(u_) / unit_;
  const auto weight = [&](Eigen::Index i) { return weight_[i < 3 * contacts_ ? i / 3 : i - 2 * contacts_]; };
  for (Eigen::Index i = 0; i < size; ++i) {
    q_[i] = row_[i] / (weight(i) * unit_);
    row_[i] = 1 / weight(i);
  }
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j) W_[i * size + j] *= row_[i] * row_[j];
  }
  for (Eigen::Index k = 0; k < contacts_; ++k) mu_[k] = std::min(problem.mu[k], kLargestFriction);
  for (Eigen::Index r = 0; r < rows_; ++r) {
    const double per_gamma = weight_[contacts_ + r] / unit_;
    lower_[r] = problem.lower[r] * per_gamma;
    upper_[r] = problem.upper[r] * per_gamma;
    compliance_[r] *= row_[3 * contacts_ + r] * row_[3 * contacts_ + r];
  }
  impulses_ = {static_cast<int>(contacts_),
               W_.data(),
               q_.data(),
               mu_.data(),
               problem.mu,
               weight_.data(),
               static_cast<int>(rows_),
               lower_.data(),
               upper_.data(),
               impulses_.row_weight,
               compliance_.data()};
  return true;
}

void ImpulseProblem::scaled(const double* gamma, double* h) const {
  for (int i = 0; i < impulses_.size(); ++i) h[i] = gamma[i] * weight_[impulses_.owner(i)] / unit_;
}

double ImpulseProblem::unscaled(const double* h, double* gamma, double* v, double* u) {
  for (int i = 0; i < impulses_.size(); ++i) row_[i] = h[i] * unit_ / weight_[impulses_.owner(i)];
  // Round-off must not take an impulse out of its interval.
  for (Eigen::Index r = 0, i = 3 * contacts_; r < rows_; ++r, ++i) {
    row_[i] = std::min(std::max(row_[i], problem_.lower[r]), problem_.upper[r]);
  }
  std::copy_n(row_.data(), row_.size(), gamma);
  system_->to_bodies(row_, column_);
  system_->solve(column_);
  column_ += Eigen::Map<const contact::Vector>(problem_.v_free, n_);
  std::copy_n(column_.data(), n_, v);
  system_->to_contacts(column_, u_);
  for (int i = 0; i < impulses_.size(); ++i) {
    u[i] = u_[i] + problem_.b[i];
    if (i >= 3 * contacts_ && problem_.compliance != nullptr) u[i] += problem_.compliance[i - 3 * contacts_] * gamma[i];
    u_[i] = u[i] / (weight_[impulses_.owner(i)] * unit_);
  }
  return impulses_.residual(h, u_.data());
}

double ImpulseProblem::effect(const double* h) {
  for (int i = 0; i < impulses_.size(); ++i) row_[i] = h[i] / weight_[impulses_.owner(i)];
  system_->to_bodies(row_, column_);
  const contact::Vector push = column_;
  system_->solve(column_);
  double square = push.dot(column_);
  for (Eigen::Index r = 0; r < rows_; ++r) {
    const double impulse = h[3 * contacts_ + r];
    square += compliance_[r] * impulse * impulse;
  }
  return std::sqrt(std::max(0.0, square));
}

}  // namespace lcp::friction
