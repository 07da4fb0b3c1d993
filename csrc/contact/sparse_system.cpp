#include "contact/sparse_system.h"

#include <algorithm>
#include <cstdint>

namespace lcp::contact {
namespace {

using Eigen::Index;

// The number of velocities below which the dense factorisation is faster for every pattern (measured): where H is
// factored again and again, so that its pattern is analysed once for many K, and where it is factored once.
constexpr Index kMinVelocities = 24, kMinVelocitiesOnce = 400;

// The share of the entries of H that may differ from 0 above which the dense factorisation is faster (measured).
constexpr double kMaxDensity = 0.5;

// Whether velocity j moves the contact.
bool moves(const double* J, Eigen::Index n, Eigen::Index contact, Eigen::Index j) {
  const double* column = J + 3 * contact * n + j;
  return column[0] != 0 || column[n] != 0 || column[2 * n] != 0;
}

}  // namespace

bool sparse_pays(const double* A, const double* J, Eigen::Index n, Eigen::Index contacts, Factors factors) {
  if (n < (factors == Factors::kOnce ? kMinVelocitiesOnce : kMinVelocities)) return false;
  const double limit = kMaxDensity * static_cast<double>(n * n);
  std::int64_t entries = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) entries += A[i * n + j] != 0;
    if (static_cast<double>(entries) > limit) return false;
  }
  for (Eigen::Index k = 0; k < contacts; ++k) {
    std::int64_t moved = 0;
    for (Eigen::Index j = 0; j < n; ++j) moved += moves(J, n, k, j);
    entries += moved * moved;
    if (static_cast<double>(entries) > limit) return false;
  }
  return true;
}

SparseSystem::SparseSystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows)
    : n_(n), contacts_(contacts), A_(n, n), J_t_(n, 3 * contacts + rows), H_(n, n) {}

void SparseSystem::set(const double* A, const double* J) {
  std::vector<Eigen::Triplet<double>> both, lower, rows;
  for (Eigen::Index i = 0; i < n_; ++i) {
    for (Eigen::Index j = 0; j < n_; ++j) {
      const double mean = (A[i * n_ + j] + A[j * n_ + i]) / 2;
      if (mean == 0) continue;
      both.emplace_back(i, j, mean);
      if (j <= i) lower.emplace_back(i, j, mean);
    }
  }
  std::vector<Eigen::Index> columns;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    columns.clear();
    for (Eigen::Index j = 0; j < n_; ++j) {
      if (moves(J, n_, k, j)) columns.push_back(j);
    }
    for (const Eigen::Index j : columns) {
      for (Eigen::Index r = 0; r < 3; ++r) rows.emplace_back(j, 3 * k + r, J[(3 * k + r) * n_ + j]);
      for (const Eigen::Index i : columns) {
        if (i >= j) lower.emplace_back(i, j, 0.0);
      }
    }
  }
  for (Eigen::Index i = 3 * contacts_; i < J_t_.cols(); ++i) {
    for (Eigen::Index j = 0; j < n_; ++j) {
      if (J[i * n_ + j] != 0) rows.emplace_back(j, i, J[i * n_ + j]);
    }
  }
  A_.setFromTriplets(both.begin(), both.end());
  J_t_.setFromTriplets(rows.begin(), rows.end());
  H_.setFromTriplets(lower.begin(), lower.end());
  base_.assign(H_.valuePtr(), H_.valuePtr() + H_.nonZeros());

  places_.clear();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const int* const first = J_t_.innerIndexPtr() + J_t_.outerIndexPtr()[3 * k];
    const int* const last = J_t_.innerIndexPtr() + J_t_.outerIndexPtr()[3 * k + 1];
    for (const int* j = first; j != last; ++j) {
      const int* const begin = H_.innerIndexPtr() + H_.outerIndexPtr()[*j];
      const int* const end = H_.innerIndexPtr() + H_.outerIndexPtr()[*j + 1];
      for (const int* i = j; i != last; ++i) places_.push_back(std::lower_bound(begin, end, *i) - H_.innerIndexPtr());
    }
  }
  factor_.analyzePattern(H_);
}

void SparseSystem::multiply(const Vector& x, Vector& result) const { result.noalias() = A_ * x; }
void SparseSystem::to_contacts(const Vector& v, Vector& result) const { result.noalias() = J_t_.transpose() * v; }
void SparseSystem::to_bodies(const Vector& gamma, Vector& result) const { result.noalias() = J_t_ * gamma; }
void SparseSystem::multiply_abs(const Vector& x, Vector& result) const { result.noalias() = A_.cwiseAbs() * x; }
void SparseSystem::to_contacts_abs(const Vector& v, Vector& result) const {
  result.noalias() = J_t_.cwiseAbs().transpose() * v;
}
void SparseSystem::to_bodies_abs(const Vector& gamma, Vector& result) const {
  result.noalias() = J_t_.cwiseAbs() * gamma;
}
void SparseSystem::diagonal(Vector& result) const { result = A_.diagonal(); }
void SparseSystem::row_squares(const Vector& weights, Vector& result) const {
  result.noalias() = J_t_.cwiseAbs2().transpose() * weights;
}

bool SparseSystem::factor(const std::vector<Eigen::Matrix3d>& K) {
  double* const values = H_.valuePtr();
  std::copy(base_.begin(), base_.end(), values);
  const Index* place = places_.data();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Index first = J_t_.outerIndexPtr()[3 * k], count = J_t_.outerIndexPtr()[3 * k + 1] - first;
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, 3>> rows(J_t_.valuePtr() + first, count, 3);
    for (Index j = 0; j < count; ++j) {
      const Eigen::Vector3d pull = K[static_cast<std::size_t>(k)] * rows.row(j).transpose();
      for (Index i = j; i < count; ++i) values[*place++] += rows.row(i).dot(pull);
    }
  }
  factor_.factorize(H_);
  return factor_.info() == Eigen::Success;
}

void SparseSystem::solve(Vector& x) const { x = factor_.solve(x); }

void SparseSystem::inverse(Eigen::MatrixXd& to) const { to = factor_.solve(Eigen::MatrixXd::Identity(n_, n_)); }

void SparseSystem::compliance(double* W) {
  const Eigen::Index count = J_t_.cols();
  Vector column(n_), row(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    column = J_t_.col(i);
    solve(column);
    to_contacts(column, row);
    for (Eigen::Index j = 0; j <= i; ++j) W[i * count + j] = W[j * count + i] = row[j];
  }
}

}  // namespace lcp::contact
