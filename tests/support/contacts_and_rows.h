// Problems of rigid bodies in contact with rows beside the contacts, with storage for their data.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/rigid_contacts.h"

namespace lcp::testing {

struct ContactsAndRows {
  RigidContacts contacts;  // J and b have the rows behind the contacts
  VectorXd lower, upper;
  VectorXd compliance = {};  // none: 0

  Eigen::Index rows() const { return lower.size(); }
  Eigen::Index size() const { return contacts.b.size(); }
  friction::Problem problem() const {
    friction::Problem all = contacts.problem();
    all.lower = lower.data();
    all.upper = upper.data();
    all.compliance = compliance.size() > 0 ? compliance.data() : nullptr;
    return all;
  }

  /// The same problem without compliance: each row also moves a mass of 1 / compliance that nothing else touches.
  ContactsAndRows with_masses() const {
    const Eigen::Index n = contacts.n(), first = 3 * contacts.contacts();
    ContactsAndRows all = {contacts, lower, upper};
    all.contacts.A = RigidContacts::Matrix::Zero(n + rows(), n + rows());
    all.contacts.A.topLeftCorner(n, n) = contacts.A;
    all.contacts.A.diagonal().tail(rows()) = compliance.cwiseInverse();
    all.contacts.J.conservativeResize(Eigen::NoChange, n + rows());
    all.contacts.J.rightCols(rows()).setZero();
    all.contacts.J.block(first, n, rows(), rows()).setIdentity();
    all.contacts.v_free.conservativeResize(n + rows());
    all.contacts.v_free.tail(rows()).setZero();
    return all;
  }

  /// The contacts alone.
  RigidContacts without_rows() const {
    RigidContacts alone = contacts;
    alone.J = contacts.J.topRows(3 * contacts.contacts());
    alone.b = contacts.b.head(3 * contacts.contacts());
    return alone;
  }

  /// The largest violation of the laws of the rows, each multiplied by |J A^-1 J'|^-1/2 of its row: of s = 0, or of the
  /// sign of s at a bound. It is written down apart from the library's.
  double row_violation(const VectorXd& v, const VectorXd& gamma) const {
    double worst = 0;
    for (Eigen::Index r = 0, i = 3 * contacts.contacts(); r < rows(); ++r, ++i) {
      const VectorXd row = contacts.J.row(i);
      const double d = row.dot(contacts.A.ldlt().solve(row)), unit = d > 0 ? std::sqrt(d) : 1;
      const double s = (row.dot(v) + contacts.b[i]) / unit, h = gamma[i] * unit;
      const double below = h - lower[r] * unit, above = upper[r] * unit - h;
      double error = std::max({0.0, -below, -above});
      if (s > 0) error = std::max(error, std::min(s, below));
      if (s < 0) error = std::max(error, std::min(-s, above));
      worst = std::max(worst, error);
    }
    return worst;
  }
};

/// Adds rows of all kinds to rigid bodies, in units from 1e-3 to 1e3. No velocity is needed to keep them, so that a
/// solution exists.
class RowMaker {
 public:
  explicit RowMaker(unsigned seed) : make_(seed) {}

  RigidContactMaker& contacts() { return make_; }

  ContactsAndRows with_rows(const RigidContacts& bodies, int count, bool only_intervals = false) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Eigen::Index n = bodies.n(), first = 3 * bodies.contacts();
    ContactsAndRows all = {bodies, VectorXd(count), VectorXd(count)};
    all.contacts.J.conservativeResize(first + count, n);
    all.contacts.b.conservativeResize(first + count);
    for (int r = 0; r < count; ++r) {
      const double unit = std::pow(10.0, 6 * make_.uniform() - 3);
      VectorXd row = VectorXd::Zero(n);
      if (make_.uniform() < 0.5) {
        row[static_cast<Eigen::Index>(static_cast<double>(n) * make_.uniform())] = unit;
      } else {
        for (Eigen::Index j = 0; j < n; ++j) row[j] = unit * (2 * make_.uniform() - 1);
      }
      const double impulse = std::pow(10.0, 3 * make_.uniform() - 2) / unit,
                   kind = only_intervals ? 0 : make_.uniform();
      const double offset = make_.uniform() < 0.5 ? 0 : 0.2 * unit * make_.uniform();
      double lower = -impulse, upper = impulse, b = make_.uniform() < 0.5 ? offset : -offset;
      if (kind > 0.8) {
        lower = -kInfinity;
        upper = kInfinity;
        b = 0;
      } else if (kind > 0.6) {
        lower = make_.uniform() < 0.5 ? 0 : impulse / 2;
        upper = kInfinity;
        b = offset;
      } else if (kind > 0.5) {
        lower = -kInfinity;
        b = -offset;
      } else if (kind > 0.4) {
        lower = upper;
      } else if (kind > 0.3) {
        lower = impulse / 3;
      }
      all.contacts.J.row(first + r) = row;
      all.contacts.b[first + r] = b;
      all.lower[r] = lower;
      all.upper[r] = upper;
    }
    return all;
  }

 private:
  RigidContactMaker make_;
};

}  // namespace lcp::testing
