#include "rigid/scene.h"

namespace lcp::rigid {

int size_of(Parameter parameter, const Scene& scene) {
  const int links = static_cast<int>(scene.links.size()), joints = static_cast<int>(scene.joints.size());
  switch (parameter) {
    case kMass:
    case kDrag:
      return scene.bodies;
    case kInertia:
      return 9 * scene.bodies;
    case kCenters:
      return 3 * scene.balls;
    case kRadii:
      return scene.balls;
    case kNormals:
      return 3 * scene.planes;
    case kOffsets:
      return scene.planes;
    case kGravity:
      return 3;
    case kMu:
    case kRestitution:
    case kStiffness:
    case kDissipation:
      return scene.contacts();
    case kMassCenter:
    case kPlacement:
      return 3 * links;
    case kPlacementTurn:
      return 4 * links;
    case kAxis:
    case kAnchor:
      return 3 * joints;
    case kLimits:
    case kSprings:
      return 2 * joints;
    case kDamping:
    case kArmature:
    case kFrictionLoss:
      return scene.dofs_of_trees();
    case kGear:
      return static_cast<int>(scene.actuators.size());
    case kActuatorForce:
      return 4 * static_cast<int>(scene.actuators.size());
    case kBoxSizes:
    case kBoxCenters:
      return 3 * scene.boxes;
    case kBoxTurns:
      return 4 * scene.boxes;
    case kCoupling:
      return 5 * static_cast<int>(scene.couplings.size());
    case kClosure:
      return 6 * static_cast<int>(scene.closures.size());
    case kClosureTurn:
      return 4 * static_cast<int>(scene.closures.size());
    case kParameters:
      break;
  }
  return 0;
}

int size_of(StatePart part, const Scene& scene) {
  int positions = scene.free(), orientations = scene.free(), coordinates = 0;
  for (const Joint& joint : scene.joints) {
    positions += joint.kind == Joint::Kind::kFree;
    orientations += joint.kind == Joint::Kind::kFree || joint.kind == Joint::Kind::kBall;
    coordinates += joint.kind == Joint::Kind::kSlide || joint.kind == Joint::Kind::kHinge;
  }
  switch (part) {
    case kPosition:
    case kVelocity:
      return 3 * positions;
    case kOrientation:
      return 4 * orientations;
    case kAngularVelocity:
      return 3 * orientations;
    case kCoordinate:
    case kSpeed:
      return coordinates;
    case kStateParts:
      break;
  }
  return 0;
}

}  // namespace lcp::rigid
