// Problems of balls that fall into a tray and pile up, one for each time step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

#include "support/rigid_contacts.h"

namespace lcp::testing {

/// Balls of one density, whose radii differ by up to 30 %, in layers of four above a tray with four slanted walls.
class BallPile {
 public:
  BallPile(int balls, unsigned seed) {
    std::mt19937_64 numbers(seed);
    const auto random = [&] { return std::uniform_real_distribution<double>(-1, 1)(numbers); };
    for (int k = 0; k < balls; ++k) {
      const int layer = k / 4;
      const double angle = M_PI / 2 * (k % 4) + 0.4 * layer;
      const double x = 0.1 * std::cos(angle) + 0.005 * random(), y = 0.1 * std::sin(angle) + 0.005 * random();
      positions_.emplace_back(x, y, 0.2 + 0.14 * layer);
      radii_.push_back(0.05 * (1 + 0.3 * random()));
    }
    velocities_ = VectorXd::Zero(6 * balls);
  }

  /// One step of 5 ms with plastic impacts and mu = .4. `solve` gets the problem of the contacts that would close their
  /// gaps, then that of those, too, which its solution closes, until there are none. It returns v, or nothing, which
  /// ends the step: then false is returned.
  template <class Solve>
  bool step(const Solve& solve) {
    find_contacts();
    VectorXd v = velocities_;
    for (Eigen::Index k = 2; k < v.size(); k += 6) v[k] -= kStep * 9.81;
    const VectorXd v_free = v;
    std::vector<bool> is_chosen(contacts_.size());
    for (bool grows = true; grows;) {
      grows = false;
      for (std::size_t k = 0; k < contacts_.size(); ++k) {
        const Contact& contact = contacts_[k];
        if (is_chosen[k] || !(contact.rows.row(2) * v + contact.closing < -1e-12)) continue;
        is_chosen[k] = grows = true;
      }
      if (!grows) break;
      const std::optional<VectorXd> found = solve(problem(is_chosen, v_free));
      if (!found) return false;
      v = *found;
    }
    velocities_ = v;
    for (std::size_t k = 0; k < positions_.size(); ++k) {
      positions_[k] += kStep * v.segment<3>(6 * static_cast<Eigen::Index>(k));
    }
    return true;
  }

 private:
  static constexpr double kStep = 0.005;  // s
  struct Contact {
    Eigen::Matrix<double, 3, Eigen::Dynamic> rows;
    double closing;  // the velocity at which its gap is open still at the end of the step
  };

  void find_contacts() {
    contacts_.clear();
    const auto balls = static_cast<int>(positions_.size());
    for (int k = 0; k < balls; ++k) {
      touch(k, -1, Vector3d::UnitZ(), positions_[k].z() - radii_[k]);
      for (int wall = 0; wall < 4; ++wall) {
        const double angle = M_PI / 2 * wall, slant = 1.1;  // rad
        const Vector3d normal(-std::sin(slant) * std::cos(angle), -std::sin(slant) * std::sin(angle), std::cos(slant));
        touch(k, -1, normal, normal.dot(positions_[k]) + 0.175 * std::sin(slant) - radii_[k]);
      }
      for (int other = 0; other < k; ++other) {
        const Vector3d apart = positions_[k] - positions_[other];
        touch(k, other, apart.normalized(), apart.norm() - radii_[k] - radii_[other]);
      }
    }
  }
  void touch(int ball, int other, const Vector3d& normal, double gap) {
    if (gap > 0.1) return;
    const Vector3d t1 = (std::abs(normal.z()) < 0.9 ? Vector3d::UnitZ() : Vector3d::UnitX()).cross(normal).normalized();
    const Vector3d directions[] = {t1, normal.cross(t1), normal};
    Contact contact{Eigen::Matrix<double, 3, Eigen::Dynamic>::Zero(3, velocities_.size()),
                    (gap > 0 ? 1 : 0.2) * gap / kStep};
    for (int i = 0; i < 3; ++i) {
      const Vector3d turn = normal.cross(directions[i]);
      contact.rows.block<1, 3>(i, 6 * ball) = directions[i].transpose();
      contact.rows.block<1, 3>(i, 6 * ball + 3) = -radii_[ball] * turn.transpose();
      if (other < 0) continue;
      contact.rows.block<1, 3>(i, 6 * other) = -directions[i].transpose();
      contact.rows.block<1, 3>(i, 6 * other + 3) = -radii_[other] * turn.transpose();
    }
    contacts_.push_back(contact);
  }

  RigidContacts problem(const std::vector<bool>& is_chosen, const VectorXd& v_free) const {
    RigidContacts bodies;
    bodies.v_free = v_free;
    bodies.A = RigidContacts::Matrix::Zero(v_free.size(), v_free.size());
    for (std::size_t k = 0; k < radii_.size(); ++k) {
      const double mass = std::pow(radii_[k] / 0.05, 3);
      const auto first = static_cast<Eigen::Index>(6 * k);
      bodies.A.diagonal().segment<3>(first).setConstant(mass);
      bodies.A.diagonal().segment<3>(first + 3).setConstant(0.4 * mass * radii_[k] * radii_[k]);
    }
    const auto count = std::count(is_chosen.begin(), is_chosen.end(), true);
    bodies.J.resize(3 * count, v_free.size());
    bodies.b = VectorXd::Zero(3 * count);
    bodies.mu = VectorXd::Constant(count, 0.4);
    Eigen::Index row = 0;
    for (std::size_t k = 0; k < contacts_.size(); ++k) {
      if (!is_chosen[k]) continue;
      bodies.J.middleRows<3>(row) = contacts_[k].rows;
      bodies.b[row + 2] = contacts_[k].closing;
      row += 3;
    }
    return bodies;
  }

  std::vector<Vector3d> positions_;
  std::vector<double> radii_;
  VectorXd velocities_;
  std::vector<Contact> contacts_;
};

}  // namespace lcp::testing
