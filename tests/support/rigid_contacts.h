// Problems of rigid bodies in contact with friction, with storage for their data.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "friction/problem.h"

namespace lcp::testing {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

struct RigidContacts {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Matrix A, J;
  VectorXd v_free, b, mu;

  Eigen::Index n() const { return A.rows(); }
  Eigen::Index contacts() const { return mu.size(); }
  friction::Problem problem() const { return {A.data(), v_free.data(), J.data(), b.data(), mu.data()}; }

  /// The largest violation of Coulomb's law: of penetration, a negative normal impulse, an impulse outside the cone, a
  /// normal impulse on a contact that opens, and of a slip with friction that is not against it or not at its limit.
  /// Each is a velocity relative to the largest |J v_free + b|, and of two explanations the better one counts. It is
  /// written down apart from the library's.
  double residual(const VectorXd& v, const VectorXd& gamma) const {
    if (contacts() == 0) return 0;
    const MatrixXd W = J * A.inverse() * J.transpose();
    const VectorXd u_all = J * v + b;
    double worst = 0;
    for (Eigen::Index k = 0; k < contacts(); ++k) {
      const double d = W.block<3, 3>(3 * k, 3 * k).trace() / 3, m = mu[k];
      const Vector3d h = d * gamma.segment<3>(3 * k), u = u_all.segment<3>(3 * k);
      const double friction = h.head<2>().norm(), slip = u.head<2>().norm();
      const double outside = std::isinf(m) ? -h.z() : m > 1 ? friction / m - h.z() : friction - m * h.z();
      double sliding = 0;
      if (slip > 0 && h.norm() > 0) {
        const Eigen::Vector2d t = u.head<2>() / slip;
        const Vector3d against = std::isinf(m) ? Vector3d(-t.x(), -t.y(), 0) : Vector3d(-m * t.x(), -m * t.y(), 1);
        const Vector3d ray = against.normalized();
        sliding = std::min(slip, (h - std::max(0.0, h.dot(ray)) * ray).norm());
        if (friction > 0 && h.head<2>().dot(t) < 0) {
          const double across = std::abs(h.x() * u.y() - h.y() * u.x()) / friction;
          sliding = std::min(sliding, std::max(across, std::abs(outside)));
        }
      }
      const double touches = std::max({std::abs(u.z()), -h.z(), outside, sliding});
      worst = std::max({worst, -u.z(), -h.z(), outside, std::min(touches, std::max(h.norm(), -u.z()))});
    }
    return worst / (J * v_free + b).cwiseAbs().maxCoeff();
  }
  /// |A (v - v_free) - J' gamma| relative to the size of its terms, each component in the unit of its mass.
  double imbalance(const VectorXd& v, const VectorXd& gamma) const {
    const VectorXd scale = A.diagonal().cwiseSqrt().cwiseInverse();
    const VectorXd change = A * (v - v_free), push = J.transpose() * gamma;
    const double size = std::max(scale.cwiseProduct(A * v_free).norm(), scale.cwiseProduct(push).norm());
    return size > 0 ? scale.cwiseProduct(change - push).norm() / size : 0;
  }
};

/// Makes rigid bodies with random contacts: v = 0 keeps them from penetrating, so that a solution exists.
class RigidContactMaker {
 public:
  explicit RigidContactMaker(unsigned seed) : numbers_(seed) {}

  /// One box, or a thin rod, with 1 to 8 contacts at its corners or elsewhere, often more than three at one plane.
  RigidContacts one_body() {
    start(1, 0);
    if (uniform() < 0.3) sizes_[0] = {0.5, 0.02, 0.02};
    set_masses();
    const int count = 1 + static_cast<int>(8 * uniform());
    for (int k = 0; k < count; ++k) {
      if (uniform() < 0.6) {
        add(0, -1, corner(k % 4).cwiseProduct(sizes_[0]), Vector3d::Zero(), Vector3d::UnitZ());
      } else {
        add(0, -1, random_point(1).cwiseProduct(sizes_[0]), Vector3d::Zero(), random_normal());
      }
    }
    return finish(false);
  }

  /// Two to four bodies with masses from .01 to 100 that touch each other and the ground at up to 8 points.
  RigidContacts bodies() {
    const int count = 2 + static_cast<int>(3 * uniform());
    start(count, 2);
    set_masses();
    const int contacts = count + static_cast<int>((9 - count) * uniform());
    for (int k = 0; k < contacts; ++k) {
      const int body = static_cast<int>(count * uniform());
      add(body, uniform() < 0.5 ? -1 : (body + 1) % count, random_point(0.3), random_point(0.3), random_normal());
    }
    return finish(false);
  }

  /// Boxes on one another, four contacts each, with masses from .01 to 100.
  RigidContacts stack(int boxes) {
    start(boxes, 2);
    set_masses();
    for (int body = 0; body < boxes; ++body) {
      const Vector3d& above = sizes_[body];
      const Vector3d below = body > 0 ? sizes_[body - 1] : above, shared = above.cwiseMin(below);
      for (int k = 0; k < 4; ++k) {
        const Vector3d at = corner(k).cwiseProduct(shared);
        add(body, body - 1, {at.x(), at.y(), -above.z()}, {at.x(), at.y(), below.z()}, Vector3d::UnitZ());
      }
    }
    return finish(uniform() < 0.5);
  }

  /// Such a stack with gaps at all corners, which close at up to `gap` m/s. If that is far less than the velocities of
  /// the boxes, it is of no effect but on which corners carry them.
  RigidContacts stack_with_gaps(int boxes, double gap) {
    RigidContacts stack = this->stack(boxes);
    for (Eigen::Index k = 0; k < stack.contacts(); ++k) stack.b.segment<3>(3 * k) << 0, 0, gap * uniform();
    return stack;
  }

  double uniform() { return std::uniform_real_distribution<double>()(numbers_); }

 private:
  double normal() { return std::normal_distribution<double>()(numbers_); }
  Vector3d random_point(double size) {
    const double x = uniform(), y = uniform(), z = uniform();
    return size * Vector3d(2 * x - 1, 2 * y - 1, 2 * z - 1);
  }
  Vector3d random_normal() {
    const double x = normal(), y = normal(), z = normal();
    return Vector3d(x, y, std::abs(z) + 0.4).normalized();
  }
  static Vector3d corner(int k) { return {k < 2 ? -1. : 1., k % 2 == 0 ? -1. : 1., -1.}; }

  // decades: masses are 10 to a power between -decades and decades.
  void start(int bodies, double decades) {
    sizes_.clear();
    masses_.clear();
    rows_.clear();
    for (int k = 0; k < bodies; ++k) {
      sizes_.emplace_back(Vector3d::Constant(0.3) + random_point(0.2));
      masses_.push_back(std::pow(10.0, decades * (2 * uniform() - 1)));
    }
  }
  void set_masses() {
    const auto n = static_cast<Eigen::Index>(6 * sizes_.size());
    made_ = {};
    made_.A = MatrixXd::Zero(n, n);
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      const Vector3d squares = sizes_[k].cwiseAbs2();
      const auto first = static_cast<Eigen::Index>(6 * k);
      made_.A.diagonal().segment<3>(first).setConstant(masses_[k]);
      made_.A.diagonal().segment<3>(first + 3) = masses_[k] / 3 * (Vector3d::Constant(squares.sum()) - squares);
    }
  }
  // A contact of `body` with `other`, or with the ground for -1, at these points from their centres.
  void add(int body, int other, const Vector3d& at, const Vector3d& at_other, const Vector3d& n) {
    const Vector3d t1 = n.cross(random_point(1)).normalized(), t2 = n.cross(t1);
    for (const Vector3d& direction : {t1, t2, n}) {
      VectorXd row = VectorXd::Zero(made_.A.rows());
      row.segment<3>(6 * body) = direction;
      row.segment<3>(6 * body + 3) = at.cross(direction);
      if (other >= 0) {
        row.segment<3>(6 * other) = -direction;
        row.segment<3>(6 * other + 3) = -at_other.cross(direction);
      }
      rows_.push_back(row);
    }
  }
  RigidContacts finish(bool resting) {
    const Eigen::Index n = made_.A.rows(), contacts = static_cast<Eigen::Index>(rows_.size() / 3);
    made_.J.resize(3 * contacts, n);
    for (Eigen::Index i = 0; i < 3 * contacts; ++i) made_.J.row(i) = rows_[static_cast<std::size_t>(i)].transpose();
    constexpr double kSpeeds[] = {0.02, 0.3, 1}, kPushes[] = {0, 0.05, 1}, kFriction[] = {0, 0.3, 0.7, 1, 3};
    const auto one_of = [&](const auto& values) {
      return values[static_cast<std::size_t>(static_cast<double>(std::size(values)) * uniform())];
    };
    const double speed = resting ? 0 : one_of(kSpeeds);
    made_.v_free = VectorXd::NullaryExpr(n, [&] { return speed * normal(); });
    const double fall = uniform() < 0.7 || resting ? 0.0981 : 0.981;
    for (Eigen::Index k = 2; k < n; k += 6) made_.v_free[k] -= fall;
    if (resting) made_.v_free[0] += one_of(kPushes);
    made_.b = VectorXd::Zero(3 * contacts);
    if (uniform() < 0.3) {
      for (Eigen::Index k = 0; k < contacts; ++k) made_.b[3 * k + 2] = 0.2 * uniform();
    }
    const double kind = uniform(), common = kind < 0.1 ? 0 : kind < 0.6 ? 0.1 + 0.9 * uniform() : 3;
    made_.mu = VectorXd::NullaryExpr(contacts, [&] { return kind < 0.7 ? common : one_of(kFriction); });
    return made_;
  }

  std::mt19937_64 numbers_;
  std::vector<Vector3d> sizes_;
  std::vector<double> masses_;
  std::vector<VectorXd> rows_;
  RigidContacts made_;
};

}  // namespace lcp::testing
