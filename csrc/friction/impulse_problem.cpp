#include "friction/impulse_problem.h"

#include <algorithm>
#include <cmath>

#include "contact/cone.h"

namespace lcp::friction {

using Eigen::Vector3d;

void Impulses::velocities(const double* h, double* u) const {
  const int count = size();
  for (int i = 0; i < count; ++i) {
    const double* row = W + static_cast<std::size_t>(i) * count;
    double sum = 0;
    for (int j = 0; j < count; ++j) sum += row[j] * h[j];
    u[i] = sum + q[i];
  }
}

double Impulses::residual(const double* h, const double* u) const {
  double worst = 0;
  for (int k = 0; k < contacts; ++k) {
    const Eigen::Map<const Vector3d> h_k(h + 3 * k), u_k(u + 3 * k);
    Vector3d s = u_k;
    s.z() += mu[k] * u_k.head<2>().norm();
    const double here = weight[k] * (h_k - contact::project(h_k - s, {mu[k], 1, 1}).gamma).lpNorm<Eigen::Infinity>();
    if (!(here <= worst)) worst = here;  // also where it is NaN
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
      none_(contacts, Eigen::Matrix3d::Zero()),
      column_(n),
      row_(3 * contacts),
      u_(3 * contacts) {}

bool ImpulseProblem::set(const Problem& problem) {
  problem_ = problem;
  system_ = &systems_.set(problem.A, problem.J);
  if (!system_->factor(none_)) return false;
  const Eigen::Index rows = 3 * contacts_;
  for (Eigen::Index i = 0; i < rows; ++i) {
    column_ = Eigen::Map<const contact::Vector>(problem.J + i * n_, n_);
    system_->solve(column_);
    system_->to_contacts(column_, row_);
    std::copy_n(row_.data(), rows, W_.data() + i * rows);
  }
  column_ = Eigen::Map<const contact::Vector>(problem.v_free, n_);
  system_->to_contacts(column_, row_);
  row_ += Eigen::Map<const contact::Vector>(problem.b, rows);
  unit_ = rows > 0 ? row_.lpNorm<Eigen::Infinity>() : 0;
  if (unit_ == 0) unit_ = 1;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    double trace = 0;
    for (Eigen::Index i = 3 * k; i < 3 * k + 3; ++i) trace += W_[i * rows + i];
    weight_[k] = trace > 0 ? std::sqrt(trace / 3) : 1;  // a contact that moves nothing has W_kk = 0
  }
  for (Eigen::Index i = 0; i < rows; ++i) {
    q_[i] = row_[i] / (weight_[i / 3] * unit_);
    for (Eigen::Index j = 0; j <= i; ++j) {
      const double mean = (W_[i * rows + j] + W_[j * rows + i]) / (2 * weight_[i / 3] * weight_[j / 3]);
      W_[i * rows + j] = W_[j * rows + i] = mean;
    }
  }
  impulses_ = {static_cast<int>(contacts_), W_.data(), q_.data(), problem.mu, weight_.data()};
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

}  // namespace lcp::friction
