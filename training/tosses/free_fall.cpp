#include "tosses/free_fall.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>

namespace lcp::training {
namespace {

using Eigen::Index;
using Eigen::Matrix3d;
using Eigen::MatrixX3d;
using Eigen::Vector3d;

constexpr Index kFewestInFlight = 8;   // samples of a flight
constexpr double kClearly = 5;         // times smaller is the residual with a centre that the flight shows
constexpr double kDeep = 30;           // times the noise: the depth of an arc whose shape is that of no impact
constexpr double kHardlyTurns = 1e-9;  // square of an angle below which a flight says nothing of the centre

class Motion {
 public:
  Motion(const Eigen::Matrix3Xd& position, const std::vector<Eigen::Quaterniond>& orientation, double dt)
      : position_(position.transpose()), dt_(dt), tolerance_(tolerance_of(position_)) {
    for (int axis = 0; axis < 3; ++axis) {
      turned_[axis].resize(count(), 3);
      for (Index k = 0; k < count(); ++k) {
        turned_[axis].row(k) = orientation[static_cast<std::size_t>(k)].toRotationMatrix().row(axis);
      }
    }
  }

  std::optional<FreeFall> find(bool with_center) const {
    std::optional<FreeFall> best;
    double largest = 0;
    const Index stride = 1 + count() / 400;  // which bounds the time for long motions
    for (Index first = 0; first + kFewestInFlight <= count(); first += stride) {
      const auto fits = [&](Index n) { return fit(first, n, with_center).residual <= tolerance_; };
      if (!fits(kFewestInFlight)) continue;
      const Index none = count() - first + 1;
      Index longest = kFewestInFlight, failing = 2 * longest;  // a count that fits, and one that does not
      for (; failing < none && fits(failing); failing *= 2) longest = failing;
      failing = std::min(failing, none);
      while (failing - longest > 1) {
        const Index middle = (longest + failing) / 2;
        (fits(middle) ? longest : failing) = middle;
      }
      // Sliding lasts longer than flights, but is slower; where there is a centre to fit, impacts are faster, but
      // shorter.
      const double fall = fit(first, longest, with_center).acceleration.norm(), n = static_cast<double>(longest);
      if (fall * n * n * dt_ * dt_ / 8 < kDeep * tolerance_) continue;
      const double size = with_center ? fall * n * n : fall * fall * n;
      if (size <= largest) continue;
      largest = size;
      // Samples at the ends may touch the ground by less than the noise.
      const Index cut = longest / 10;
      best = fit(first + cut, longest - 2 * cut, with_center);
    }
    return best;
  }

  // The polynomials are removed first: the centre follows from what they leave of the positions and of R.
  FreeFall fit(Index first, Index n, bool with_center) const {
    const Eigen::VectorXd time = Eigen::VectorXd::LinSpaced(n, -1, 1) * (dt_ * static_cast<double>(n - 1) / 2);
    MatrixX3d powers(n, 3);
    powers << Eigen::VectorXd::Ones(n), time, time.cwiseAbs2() / 2;
    const Eigen::HouseholderQR<MatrixX3d> qr(powers);
    const MatrixX3d basis = qr.householderQ() * MatrixX3d::Identity(n, 3);
    const Eigen::RowVectorXd second = basis.col(2).transpose() / qr.matrixQR()(2, 2);  // the factor of t^2 / 2
    const auto rest = [&](const MatrixX3d& x) -> MatrixX3d { return x - basis * (basis.transpose() * x); };
    const MatrixX3d position = position_.middleRows(first, n);
    FreeFall found{first, n, (second * position).transpose(), 0, 0, Vector3d::Zero(), Matrix3d::Zero()};
    MatrixX3d residual = rest(position);
    Matrix3d covariance = second.squaredNorm() * Matrix3d::Identity();
    if (with_center) {
      std::array<MatrixX3d, 3> turned;
      Matrix3d slope;
      Vector3d right = Vector3d::Zero();
      for (int axis = 0; axis < 3; ++axis) {
        const MatrixX3d rows = turned_[axis].middleRows(first, n);
        slope.row(axis) = second * rows;
        turned[axis] = rest(rows);
        found.center_weight += turned[axis].transpose() * turned[axis];
        right -= turned[axis].transpose() * residual.col(axis);
      }
      const Matrix3d gram = found.center_weight + kHardlyTurns * static_cast<double>(n) * Matrix3d::Identity();
      found.center = gram.ldlt().solve(right);
      found.acceleration += slope * found.center;
      for (int axis = 0; axis < 3; ++axis) residual.col(axis) += turned[axis] * found.center;
      covariance += slope * gram.inverse() * slope.transpose();
    }
    const double variance = residual.squaredNorm() / static_cast<double>(3 * n - (with_center ? 12 : 9));
    found.residual = std::sqrt(variance);
    found.acceleration_error = std::sqrt(variance * covariance.trace() / 3);
    return found;
  }

  double tolerance() const { return tolerance_; }

 private:
  Index count() const { return position_.rows(); }

  // The residual that the noise explains, m: 1.5 times its standard deviation, from the third differences of what
  // moves, which vanish in flight. What is smoothed has less of them: at least 1e-4 of the whole way.
  static double tolerance_of(const MatrixX3d& position) {
    const Index n = position.rows() - 3;
    if (n < 1) return 0;
    const auto at = [&](Index k) { return position.middleRows(k, n); };
    const MatrixX3d third = at(3) - at(0) + 3 * (at(1) - at(2));
    const Eigen::VectorXd speed = (at(2) - at(1)).rowwise().norm();
    std::vector<double> speeds(speed.begin(), speed.end()), noise;
    std::nth_element(speeds.begin(), speeds.end() - 1 - n / 10, speeds.end());
    const double fast = *(speeds.end() - 1 - n / 10);
    for (Index k = 0; k < n; ++k) {
      if (speed[k] < 0.2 * fast) continue;
      for (const double x : third.row(k)) noise.push_back(std::abs(x));
    }
    constexpr double kMedianOfNormal = 0.6745;
    const double sigma = median_of(noise) / kMedianOfNormal / std::sqrt(1 + 9 + 9 + 1);
    return 1.5 * sigma + 1e-4 * (position.colwise().maxCoeff() - position.colwise().minCoeff()).maxCoeff();
  }

  MatrixX3d position_;
  double dt_, tolerance_;
  std::array<MatrixX3d, 3> turned_;  // the rows of R
};

}  // namespace

std::optional<FreeFall> find_free_fall(const Eigen::Matrix3Xd& position,
                                       const std::vector<Eigen::Quaterniond>& orientation, double dt,
                                       bool with_center) {
  const Motion motion(position, orientation, dt);
  std::optional<FreeFall> found = motion.find(false), other = with_center ? motion.find(true) : std::nullopt;
  if (!other) return found;
  if (found) {  // a body that slides and turns has such a point, too
    const bool longer = 2 * other->count >= 3 * found->count;
    if (!longer || 4 * other->acceleration.norm() < found->acceleration.norm()) return found;
  }
  const double without = motion.fit(other->first, other->count, false).residual;
  return without > std::max(motion.tolerance(), kClearly * other->residual) ? other : found;
}

double median_of(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

}  // namespace lcp::training
