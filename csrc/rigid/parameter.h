// The names of the parameters of rigid bodies.
#pragma once

namespace lcp::rigid {

/// The parameters of a trajectory, for each of the bodies, balls, planes and contacts, row-major.
enum Parameter : int {
  kMass,         ///< [b], kg
  kInertia,      ///< [b, 3, 3], kg m^2
  kDrag,         ///< [b], kg/s
  kCenters,      ///< [p, 3], m
  kRadii,        ///< [p], m
  kNormals,      ///< [h, 3]
  kOffsets,      ///< [h], m
  kGravity,      ///< [3], m/s^2
  kMu,           ///< [c]
  kRestitution,  ///< [c], not read for compliant contact
  kStiffness,    ///< [c], N/m, read for compliant contact alone
  kDissipation,  ///< [c], s, as the stiffness
  kParameters
};

}  // namespace lcp::rigid
