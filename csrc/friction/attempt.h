// The methods that come first in the ladder, on the CPU and on GPUs.
#pragma once

#include "friction/newton.h"

namespace lcp::friction {

/// The settings of one attempt: sweeps of the Gauss-Seidel method, then Newton's method.
struct Attempt {
  const char* method;  ///< its name in docs/rigid_contact.md
  int sweeps;
  NewtonSettings newton;
};

/// The first attempt is enough for a single contact. Each of the others fails on problems that another one solves. A
/// run that has not converged in few steps seldom does in many.
inline constexpr Attempt kAttempts[] = {{"one sweep", 1, {false, 1e-9, 0}},
                                        {"Newton", 0, {false, 1e-9, 12, true}},
                                        {"Newton again", 0, {true, 1e-4, 20}},
                                        {"Newton again", 10, {false, 1e-9, 20}}};

/// The methods aim at this part of the tolerance, since the residual is measured again at the velocities of the bodies.
inline constexpr double kGoal = 0.1;

}  // namespace lcp::friction
