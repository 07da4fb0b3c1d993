#include "rigid/scene.h"

namespace lcp::rigid {

int size_of(Parameter parameter, const Scene& scene) {
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
    default:
      return scene.contacts();
  }
}

}  // namespace lcp::rigid
