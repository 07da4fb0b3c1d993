// Whether recorded motion agrees with the conventions by which it is read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/files.h"
#include "tosses/motion_capture.h"

namespace lcp::training {

struct CaptureChecks {
  Table files;                              ///< what each file tells, a row each; NaN: nothing
  nlohmann::json metrics;                   ///< what all tell together
  std::vector<std::string> contradictions;  ///< conventions that cannot be right, and the flags that would be
  std::vector<std::string> notes;           ///< what is odd, and what the files cannot tell
};

/// * Free flight: its acceleration must be `gravity`, downward, to 10 % and 10 degrees. Else the nearest usual units
/// and
///   rate that make it so are named. A centre that moves along the parabola where the tracked point does not is named.
/// * The derivative of the quaternions must be the angular velocity in the reading of rotations, not in another one.
/// * Velocities must be the differences of positions, and the centre must stay above the ground.
/// * Without angular velocities, a cube at rest must stand on a face in this reading where it does in another.
/// All files have one convention, which the medians over files tell; those that differ from it are named.
///   tosses: the files by `converted`. gravity: m/s^2. timed: whether the rates are those of columns of times.
CaptureChecks check_captures(const std::vector<Capture>& captures, const std::vector<Table>& tosses,
                             const Conventions& conventions, double gravity, bool timed);

}  // namespace lcp::training
