// Robots from files that Python writes: Robot.save of torchlcp.physics, or python -m torchlcp.convert_robot, which
// reads MJCF and URDF. A file is JSON; numbers may also be Infinity, -Infinity and NaN, as Python writes them:
//
//   {"format": "torchlcp robot", "version": 1, "dt": 0.005,
//    "bodies": [{"name": "rod", "parent": -1, "balls": 0}],
//    "joints": [{"name": "pivot", "body": 0, "kind": "hinge", "has_limits": false}],
//    "actuators": [{"name": "motor", "joint": 0, "control_range": [-1.0, 1.0], "force_range": [-Infinity, Infinity]}],
//    "contacts": [{"ball": 0, "plane": 0, "other": -1, "end": -1, "other_end": -1, "box": -1}],
//    "couplings": [{"joint": 1, "other": 0}], "closures": [{"body": 1, "other": -1, "is_weld": false}],
//    "boxes": [0],
//    "keyframes": [{"name": "up", "qpos": [3.14], "qvel": [0.0], "control": [0.0]}],
//    "shapes": [{"body": 0, "kind": "capsule", "size": [0.1, 0.5, 0.0], "center": [0.0, 0.0, -0.5],
//                "orientation": [1.0, 0.0, 0.0, 0.0]}],
//    "tensors": {"mass": {"dtype": "float64", "shape": [1], "values": [1.0]}, ...}}
//
// The tensors are all those of a Robot, qpos0 among them, by the names of its members, with their numbers in the order
// of memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lcp/export.h"
#include "lcp/physics/robot.h"

namespace lcp::physics {

/// The robot of a file. Throws c10::Error where the file cannot be read, is not as above, or has numbers, or shapes of
/// tensors, that do not fit each other; the message has the path and, where the text is wrong, the line.
LCP_API Robot load_robot(const std::string& path);

/// Where the numbers of a joint stand.
struct RobotJointPlace {
  std::int64_t number;      ///< in Robot::joints
  std::int64_t qpos, qvel;  ///< the first of its numbers there
  std::int64_t nq, nv;      ///< how many it has
};

/// The joint, body, actuator or keyframe of this name. Throws c10::Error, with the names that there are, where there is
/// none.
LCP_API RobotJointPlace joint(const Robot& robot, std::string_view name);
LCP_API std::int64_t body(const Robot& robot, std::string_view name);
LCP_API std::int64_t actuator(const Robot& robot, std::string_view name);
LCP_API const RobotKeyframe& keyframe(const Robot& robot, std::string_view name);

}  // namespace lcp::physics
