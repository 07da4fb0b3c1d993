#include "run/physics_flags.h"

namespace lcp::training {

void PhysicsFlags::add_to(CommandLine& line) {
  line.add<double>("mass", mass, "Mass, kg", positive);
  line.add<double>("dt", dt, "Time step, s", positive);
  line.add<double>("mu", mu, "Friction coefficient", nonnegative);
  line.add<double>("gravity", gravity, "Gravity, m/s^2", nonnegative);
}

}  // namespace lcp::training
