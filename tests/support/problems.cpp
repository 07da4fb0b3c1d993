#include "support/problems.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace lcp::testing {
namespace {

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

}  // namespace

double natural_residual(const Problem& problem, const Eigen::VectorXd& z) {
  const Eigen::VectorXd w = problem.M * z + problem.q;
  double residual = 0;
  for (int i = 0; i < problem.n(); ++i) {
    const double r = std::abs(std::min(z[i], w[i]));
    if (std::isnan(z[i]) || std::isnan(w[i])) return std::nan("");
    residual = std::max(residual, r);
  }
  return residual;
}

Problem friction_block(std::mt19937_64& random, int contacts, int directions) {
  const double mass = uniform(random, 0.2, 5);
  const Eigen::Vector3d half(uniform(random, 0.05, 0.5), uniform(random, 0.05, 0.5), uniform(random, 0.05, 0.5));
  const double dt = std::pow(10, uniform(random, -3, -1));
  const double mu = uniform(random, 0.05, 1.2);
  Eigen::Matrix<double, 6, 6> inverse_mass = Eigen::Matrix<double, 6, 6>::Zero();
  for (int i = 0; i < 3; ++i) {
    inverse_mass(i, i) = 1 / mass;
    const double inertia = mass / 3 * (half.squaredNorm() - half[i] * half[i]);
    inverse_mass(3 + i, 3 + i) = 1 / inertia;
  }
  Eigen::Matrix<double, 6, 1> velocity;
  for (int i = 0; i < 6; ++i) velocity[i] = normal(random);
  velocity[2] = -std::abs(velocity[2]) * uniform(random, 0, 1);
  velocity[2] -= dt * 9.81;
  if (uniform(random, 0, 1) < 0.2) velocity.setZero(), velocity[2] = -dt * 9.81;  // at rest: heavily degenerate

  const int n = contacts * (directions + 2);
  Eigen::MatrixXd normals(contacts, 6);
  Eigen::MatrixXd tangents(contacts * directions, 6);
  const double yaw = uniform(random, 0, 2 * std::numbers::pi);
  const Eigen::Matrix3d turn = Eigen::AngleAxisd(yaw, Eigen::Vector3d::UnitZ()).toRotationMatrix();
  const auto row = [](const Eigen::Vector3d& point, const Eigen::Vector3d& direction) {
    Eigen::Matrix<double, 1, 6> result;
    result << direction.transpose(), point.cross(direction).transpose();
    return result;
  };
  constexpr int kCorner[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
  for (int c = 0; c < contacts; ++c) {
    const Eigen::Vector3d point = turn * Eigen::Vector3d(kCorner[c][0] * half[0], kCorner[c][1] * half[1], -half[2]);
    normals.row(c) = row(point, Eigen::Vector3d::UnitZ());
    for (int k = 0; k < directions; ++k) {
      const double angle = 2 * std::numbers::pi * k / directions;
      tangents.row(c * directions + k) = row(point, Eigen::Vector3d(std::cos(angle), std::sin(angle), 0));
    }
  }

  Eigen::MatrixXd jacobian(contacts * (directions + 1), 6);
  jacobian << normals, tangents;
  const int impulses = contacts * (directions + 1);
  Problem problem{RowMatrix::Zero(n, n), Eigen::VectorXd::Zero(n)};
  problem.M.topLeftCorner(impulses, impulses) = jacobian * inverse_mass * jacobian.transpose();
  problem.q.head(impulses) = jacobian * velocity;
  for (int c = 0; c < contacts; ++c) {
    problem.M(impulses + c, c) = mu;
    for (int k = 0; k < directions; ++k) {
      const int i = contacts + c * directions + k;
      problem.M(i, impulses + c) = 1;
      problem.M(impulses + c, i) = -1;
    }
  }
  return problem;
}

Problem friction_block(std::mt19937_64& random) {
  const int contacts = std::uniform_int_distribution<int>(1, 4)(random);
  const int directions = std::uniform_int_distribution<int>(0, 1)(random) ? 8 : 4;
  return friction_block(random, contacts, directions);
}

Problem positive_definite(std::mt19937_64& random, int n) {
  const RowMatrix A = RowMatrix::NullaryExpr(n, n, [&] { return normal(random); });
  return {A.transpose() * A + 0.1 * RowMatrix::Identity(n, n),
          Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
}

Problem murty(int n) {
  Problem problem{RowMatrix::Identity(n, n), Eigen::VectorXd::Zero(n)};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) problem.M(i, j) = 2;
    problem.q[i] = -std::ldexp(1.0, n + 1) + std::ldexp(1.0, n - i);  // the path through all bases needs this q
  }
  return problem;
}

Problem fathi(int n) {
  const RowMatrix L = murty(n).M;
  return {L * L.transpose(), -Eigen::VectorXd::Ones(n)};
}

Problem linear_program(const Eigen::VectorXd& c, const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  const Eigen::Index variables = c.size();
  const Eigen::Index rows = b.size();
  Problem problem{RowMatrix::Zero(variables + rows, variables + rows), Eigen::VectorXd(variables + rows)};
  problem.M.topRightCorner(variables, rows) = -A.transpose();
  problem.M.bottomLeftCorner(rows, variables) = A;
  problem.q << c, -b;
  return problem;
}

}  // namespace lcp::testing
