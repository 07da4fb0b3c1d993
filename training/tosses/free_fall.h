// The free flight in a recorded motion, found without knowledge of its units, axes and ground.
#pragma once

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <optional>
#include <vector>

namespace lcp::training {

/// A flight: least squares of position + R centre = a + b t + acceleration t^2 / 2, where R turns from the axes of the
/// body to those of the world.
struct FreeFall {
  Eigen::Index first, count;      ///< its samples
  Eigen::Vector3d acceleration;   ///< m/s^2
  double acceleration_error;      ///< its standard error in each direction, if the errors of samples are independent
  double residual;                ///< m, the root mean square
  Eigen::Vector3d center;         ///< m, in the axes of the body, from the tracked point; 0 unless the flight shows it
  Eigen::Matrix3d center_weight;  ///< of the centre in means over flights: one that turns about a fixed axis tells
                                  ///< nothing along it
};

/// Of all pieces of at least 8 samples that a parabola fits to within the noise, the one with the largest
/// |acceleration|^2 count, which rest and sliding do not have, without a tenth of it at each end. A centre other than
/// the tracked point is part of the fit only where it makes the piece half as long again and the residual 5 times
/// smaller.
///   position: [3, T], m. orientation: T. dt: s. with_centre: whether the centre may be elsewhere.
std::optional<FreeFall> find_free_fall(const Eigen::Matrix3Xd& position,
                                       const std::vector<Eigen::Quaterniond>& orientation, double dt,
                                       bool with_center = true);

/// The median of numbers, of which there is at least one.
double median_of(std::vector<double> x);

}  // namespace lcp::training
