#include "rigid/linearization.h"

#include <limits>

namespace lcp::rigid {
namespace {

// How a turn in the axes of a body changes the rotation vector after a further turn by phi, and how phi changes it.
struct Turning {
  Matrix<double> of_turn, of_phi;

  explicit Turning(const Vector<double>& phi) : of_turn(rotation_matrix(rotation_by(-phi))) {
    const double square = dot(phi, phi), half = Trigonometric(square / 4).sine_ratio;
    const double first = half * half / 2, second = square > 0 ? (1 - Trigonometric(square).sine_ratio) / square : 0;
    for (std::size_t i = 0; i < 3; ++i) {
      Vector<double> axis = {0, 0, 0};
      axis[i] = 1;
      const Vector<double> across = cross(phi, axis), column = axis - first * across + second * cross(phi, across);
      for (std::size_t j = 0; j < 3; ++j) of_phi[j][i] = column[j];
    }
  }
};

}  // namespace

Linearization::Linearization(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene),
      step_(scene, tolerance, rank_tolerance, ties),
      tangent_(state_buffer<double>(scene)),
      dofs_(2 * scene.dofs_of_trees()),
      du_(inputs_of(scene)),
      dgamma_(3 * scene.contacts()) {}

void Linearization::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                        double* A, double* B) {
  const Eigen::Index dofs = scene_.dofs_of_trees(), actuators = static_cast<Eigen::Index>(scene_.actuators.size());
  step_.begin(parameters, {}, true);
  all_.setIdentity(2 * dofs, 2 * dofs + actuators);
  for (std::int64_t s = 0; s < steps; ++s) {
    if (*walked.status[s] != 0) {
      all_.setConstant(std::numeric_limits<double>::quiet_NaN());
      break;
    }
    step_.record(s, walked);
    own_.setIdentity(2 * dofs, 2 * dofs + actuators);
    if (step_.has_jacobian()) {
      step_.set_jacobian(velocities_);
      own_.bottomRows(dofs) = velocities_;
      set_end(walked.path.state(s), own_);
    } else {
      set_by_directions(walked.before(s), walked.path.state(s), own_);
    }
    if (s == 0) {
      all_.swap(own_);
      continue;
    }
    const Jacobian before = all_;
    all_.noalias() = own_.leftCols(2 * dofs) * before;
    all_.rightCols(actuators) += own_.rightCols(actuators);
  }
  Eigen::Map<Jacobian>(A, 2 * dofs, 2 * dofs) = all_.leftCols(2 * dofs);
  Eigen::Map<Jacobian>(B, 2 * dofs, actuators) = all_.rightCols(actuators);
}

// The displacements after a step, whose first rows are those before and whose last rows are the velocities after.
void Linearization::set_end(const State<const double>& end, Jacobian& to) const {
  const Eigen::Index dofs = scene_.dofs_of_trees();
  for (const Joint& joint : scene_.joints) {
    const Eigen::Index turns = joint.dof + joint.slides();
    if (joint.orientation == Pair::kNone) {
      to.row(joint.dof) += scene_.dt * to.row(dofs + joint.dof);
      continue;
    }
    for (Eigen::Index k = joint.dof; k < turns; ++k) to.row(k) += scene_.dt * to.row(dofs + k);
    const Turning turning(scene_.dt * vector_at(end[kAngularVelocity], joint.orientation));
    for (std::size_t i = 0; i < 3; ++i) {
      auto row = to.row(turns + static_cast<Eigen::Index>(i));
      row.setZero();
      for (std::size_t j = 0; j < 3; ++j) {
        row[turns + static_cast<Eigen::Index>(j)] = turning.of_turn[i][j];
      }
      for (std::size_t j = 0; j < 3; ++j) {
        row += scene_.dt * turning.of_phi[i][j] * to.row(dofs + turns + static_cast<Eigen::Index>(j));
      }
    }
  }
}

// One direction after another.
void Linearization::set_by_directions(const State<const double>& begin, const State<const double>& end, Jacobian& to) {
  const int dofs = scene_.dofs_of_trees();
  const auto half_product = [](const Quaternion<double>& q, const Vector<double>& turn) {
    return product(q, {0, turn[0] / 2, turn[1] / 2, turn[2] / 2});
  };
  for (Eigen::Index column = 0; column < to.cols(); ++column) {
    std::fill(dofs_.begin(), dofs_.end(), 0.0);
    std::fill(du_.begin(), du_.end(), 0.0);
    const bool is_control = column >= 2 * dofs;
    (is_control ? du_[6 * scene_.bodies + column - 2 * dofs] : dofs_[column]) = 1;
    for_each_velocity(scene_, [&](int k, StatePart part, int i) { tangent_[part][i] = dofs_[dofs + k]; });
    for_each_coordinate(
        scene_, dofs_.data(), [&](StatePart part, int i, double change) { tangent_[part][i] = change; },
        [&](int i, const Vector<double>& turn) {
          const Quaternion<double> change = half_product(quaternion_at(begin[kOrientation], i), turn);
          std::copy_n(&change.w, 4, tangent_[kOrientation].data() + 4 * i);
        });
    step_.forward(tangent_, {}, du_.data(), dgamma_.data());
    for_each_velocity(scene_, [&](int k, StatePart part, int i) { to(dofs + k, column) = tangent_[part][i]; });
    Eigen::Index row = 0;
    for_each_coordinate(
        scene_, dofs_.data(), [&](StatePart part, int i, double) { to(row++, column) = tangent_[part][i]; },
        [&](int i, const Vector<double>&) {
          const Quaternion<double> q = quaternion_at(end[kOrientation], i), inverse = {q.w, -q.x, -q.y, -q.z},
                                   change = product(inverse, quaternion_at(tangent_[kOrientation].data(), i));
          for (const double part : {change.x, change.y, change.z}) to(row++, column) = 2 * part;
        });
  }
}

}  // namespace lcp::rigid
