// The names of the parameters of rigid bodies, and of the parts of their state.
#pragma once

namespace lcp::rigid {

/// The parameters of a trajectory, for each of the bodies, balls, planes and contacts, row-major. The bodies of trees
/// are l of the b bodies; their joints are j, with d degrees of freedom, and q coordinates, those of slides and hinges,
/// of which k are coupled to another one; o points of bodies are joined with others. e boxes are fixed to bodies.
enum Parameter : int {
  kMass,           ///< [b], kg
  kInertia,        ///< [b, 3, 3], kg m^2, about the centre of mass
  kDrag,           ///< [b], kg/s
  kCenters,        ///< [p, 3], m
  kRadii,          ///< [p], m
  kNormals,        ///< [h, 3]
  kOffsets,        ///< [h], m
  kGravity,        ///< [3], m/s^2
  kMu,             ///< [c]
  kRestitution,    ///< [c], not read for compliant contact
  kStiffness,      ///< [c], N/m, read for compliant contact alone
  kDissipation,    ///< [c], s, as the stiffness
  kMassCenter,     ///< [l, 3], m, in the axes of the body
  kPlacement,      ///< [l, 3], m, of the body in the axes of its parent where its coordinates are 0
  kPlacementTurn,  ///< [l, 4], its orientation there
  kAxis,           ///< [j, 3], of a slide or a hinge, in the axes of the body, of length 1
  kAnchor,         ///< [j, 3], m, of a hinge or a ball joint, in the axes of the body
  kLimits,         ///< [j, 2], m or rad, read where a pair is a limit
  kSprings,        ///< [j, 2], N/m or N m/rad, and the coordinate at rest
  kDamping,        ///< [d], N s/m or N m s/rad
  kArmature,       ///< [d], kg or kg m^2
  kFrictionLoss,   ///< [d], N or N m, read where a pair is the dry friction of a degree of freedom
  kGear,           ///< [a], of the actuators
  kActuatorForce,  ///< [a, 4]: gain, b_0, b_1 and b_2 of Actuator
  kBoxSizes,       ///< [e, 3], m, half the lengths of the edges
  kBoxCenters,     ///< [e, 3], m, in the axes of the body
  kBoxTurns,       ///< [e, 4], its orientation in these
  kCoupling,       ///< [k, 5], the coefficients of the polynomial of a Coupling
  kClosure,        ///< [o, 2, 3], m, the points of a Closure, each in the axes of its body
  kClosureTurn,    ///< [o, 4], of a weld, the orientation of the other body in the axes of the body
  kParameters
};

/// The parts of a state, row-major. Positions and velocities are those of free bodies and of free joints, orientations
/// and angular velocities also of ball joints.
enum StatePart : int {
  kPosition,         ///< [f, 3], m
  kOrientation,      ///< [r, 4]
  kVelocity,         ///< [f, 3], m/s
  kAngularVelocity,  ///< [r, 3], rad/s, in the axes of the body
  kCoordinate,       ///< [q], of slides, m, and of hinges, rad
  kSpeed,            ///< [q], m/s and rad/s
  kStateParts
};

}  // namespace lcp::rigid
