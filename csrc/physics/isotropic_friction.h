// One step of a rigid body on three supports with isotropic friction, which no operator of this library can solve:
// lcp::solve needs polygons in place of friction disks, and lcp::solve_contact lets the supports give way. The polygons
// of the tripod are compared with it.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>

namespace lcp::physics {

constexpr std::int64_t kSupports = 3;

/// J_i with v_i = J_i nu, the velocity of support i for the velocity nu = (v_x, v_y, omega) of the body.
using SupportJacobian = Eigen::Matrix<double, 2, 3>;

/// argmin over nu of |nu - nu_free|_M^2 / 2 + sum_i limits_i |J_i nu|.
///   nu_free: the velocity without friction. inertia: the diagonal of M. limits: N s, the largest friction impulse at
///   each support, >= 0.
Eigen::Vector3d isotropic_friction_step(const Eigen::Vector3d& nu_free, const Eigen::Vector3d& inertia,
                                        const std::array<SupportJacobian, kSupports>& J, const Eigen::Vector3d& limits);

}  // namespace lcp::physics
