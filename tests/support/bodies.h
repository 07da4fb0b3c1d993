// Compliant-contact problems with storage for their data, random ones and chains of bodies.
#pragma once

#include <Eigen/Dense>
#include <numbers>
#include <random>

#include "contact/cone.h"
#include "contact/problem.h"

namespace lcp::testing {

using contact::Law;
using contact::Projection;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The generators below choose the compliance R_t = 1e-3 w and R_n = w / (4 pi^2), where w is the norm of the contact's
// diagonal Delassus block divided by 3.
struct Bodies {
  int n, contacts;
  Matrix A, J;
  VectorXd v_free, v_hat, R, mu;

  contact::Problem problem() const { return {A.data(), v_free.data(), J.data(), v_hat.data(), R.data(), mu.data()}; }
  MatrixXd delassus() const { return J * A.inverse() * J.transpose(); }

  VectorXd impulses(const VectorXd& v) const {
    VectorXd gamma(3 * contacts);
    for (int k = 0; k < contacts; ++k) gamma.segment<3>(3 * k) = at(v, k).gamma;
    return gamma;
  }
  Law law(int k) const { return {mu[k], R[3 * k], R[3 * k + 2]}; }
  Vector3d y(const VectorXd& v, int k) const { return (v_hat - J * v).cwiseQuotient(R).segment<3>(3 * k); }
  Projection at(const VectorXd& v, int k) const { return contact::project(y(v, k), law(k)); }

  double value(const VectorXd& v) const {
    const VectorXd gamma = impulses(v), off = v - v_free;
    return (off.dot(A * off) + gamma.dot(R.cwiseProduct(gamma))) / 2;
  }
  VectorXd gradient(const VectorXd& v) const { return A * (v - v_free) - J.transpose() * impulses(v); }
  MatrixXd hessian(const VectorXd& v) const {
    MatrixXd H = A;
    for (int k = 0; k < contacts; ++k) {
      const auto rows = J.middleRows<3>(3 * k);
      H += rows.transpose() * contact::projected_compliance(y(v, k), at(v, k), law(k)) * rows;
    }
    return H;
  }
};

inline Bodies random_bodies(int n, int contacts, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 1);
  const auto filled = [&](int rows, int columns) {
    Matrix m(rows, columns);
    for (double& x : m.reshaped()) x = normal(random);
    return m;
  };
  const Matrix B = filled(n, n);
  Bodies bodies{n,
                contacts,
                B * B.transpose() / n + Matrix::Identity(n, n),
                filled(3 * contacts, n),
                filled(n, 1),
                VectorXd::Zero(3 * contacts),
                VectorXd(3 * contacts),
                VectorXd(contacts)};
  const MatrixXd W = bodies.delassus();
  for (int k = 0; k < contacts; ++k) {
    const double w = W.block<3, 3>(3 * k, 3 * k).norm() / 3;
    bodies.R.segment<3>(3 * k) << 1e-3 * w, 1e-3 * w, w / (4 * std::numbers::pi * std::numbers::pi);
    bodies.mu[k] = 0.2 + 0.8 * share(random);
    bodies.v_hat[3 * k + 2] = 0.1 * normal(random);
  }
  return bodies;
}

// A chain of bodies with three velocities each. The first touches the ground, every other one its predecessor.
inline Bodies chain(int count, unsigned seed) {
  const int n = 3 * count;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Bodies bodies{n,
                count,
                Matrix::Zero(n, n),
                Matrix::Zero(n, n),
                VectorXd(n),
                VectorXd::Zero(n),
                VectorXd(n),
                VectorXd::Constant(count, 0.5)};
  for (int b = 0; b < count; ++b) {
    const double mass = 0.5 + std::abs(normal(random));
    bodies.A.diagonal().segment<3>(3 * b).setConstant(mass);
    bodies.v_free.segment<3>(3 * b) << 0.05 * normal(random), 0.05 * normal(random), -0.1;
    for (int r = 0; r < 3; ++r) {
      bodies.J(3 * b + r, 3 * b + r) = 1;
      if (b > 0) bodies.J(3 * b + r, 3 * (b - 1) + r) = -1;
    }
    const double w = 2 / mass;
    bodies.R.segment<3>(3 * b) << 1e-3 * w, 1e-3 * w, w / (4 * std::numbers::pi * std::numbers::pi);
  }
  return bodies;
}

}  // namespace lcp::testing
