// Recorded motion with conventions of its own, and its conversion to those of tosses.h.
#pragma once

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <array>
#include <bitset>
#include <filesystem>
#include <string>
#include <vector>

#include "run/files.h"

namespace lcp::training {

/// The names of the columns. Those of velocities may be missing; "none": there are none.
struct CaptureColumns {
  std::string time = "time";
  std::vector<std::string> position = {"x", "y", "z"}, quaternion = {"q_w", "q_x", "q_y", "q_z"},
                           velocity = {"v_x", "v_y", "v_z"}, angular_velocity = {"omega_x", "omega_y", "omega_z"};
};

/// One recorded motion of T samples, in the units and axes of its file.
struct Capture {
  std::string name;                             ///< of the file, without extension
  double rate;                                  ///< samples per unit of time
  Eigen::Matrix3Xd position;                    ///< [3, T]
  Eigen::Matrix4Xd quaternion;                  ///< [4, T], of length 1
  Eigen::Matrix3Xd velocity, angular_velocity;  ///< [3, T], or [3, 0] where the file has none
};

/// Reads a CSV file. The rate is that of the column of times unless it is given. Throws a UsageError that names the
/// file, and the row where samples are missing or unevenly spaced, or a quaternion's length is not about 1.
///   rate: samples per unit of time; 0: from the times.
Capture read_capture(const std::filesystem::path& path, const CaptureColumns& columns, double rate);

/// Ways to read the rotations of a file: a bit for each of these flags, set where the flag has the second value.
enum ReadingBit : std::size_t { kScalarLast, kWorldToBody, kInWorld, kDegrees, kReadingBits };
using Reading = std::bitset<kReadingBits>;
struct ReadingFlag {
  const char *name, *values[2], *help;
};
inline constexpr std::array<ReadingFlag, kReadingBits> kReadingFlags = {{
    {"quaternion-order", {"wxyz", "xyzw"}, "Order of --quaternion"},
    {"quaternion-direction", {"body_to_world", "world_to_body"}, "What quaternions turn vectors from and to"},
    {"angular-velocity-frame", {"body", "world"}, "Axes of angular velocities"},
    {"angular-velocity-unit", {"rad/s", "deg/s"}, "Unit of angular velocities"},
}};

/// Units by the names that flags give them.
struct Unit {
  const char* name;
  double value;  ///< m or s
};
inline constexpr std::array<Unit, 3> kLengthUnits = {{{"m", 1}, {"cm", 1e-2}, {"mm", 1e-3}}};
inline constexpr std::array<Unit, 3> kTimeUnits = {{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}};

/// What the numbers of a file mean.
struct Conventions {
  double length = 1;                                 ///< m in a unit of length
  double time = 1;                                   ///< s in a unit of time
  Reading reading;                                   ///< of rotations
  Eigen::Vector3d center = Eigen::Vector3d::Zero();  ///< units of length from the tracked point, in the body's axes
  std::string up = "z";                              ///< one of kUpAxes
  double ground = 0;                                 ///< units of length, the height of the ground
};

inline constexpr std::array kUpAxes = {"x", "y", "z", "-x", "-y", "-z"};
Eigen::Vector3d axis_of(const std::string& up);

/// The unit of angular velocities of a reading, rad/s.
double angular_unit(const Reading& reading);

/// The orientations, from the axes of the body to those of the file's world.
std::vector<Eigen::Quaterniond> orientations_of(const Capture& capture, const Reading& reading);

/// The derivatives of x, per unit of time: central differences, at the ends one-sided ones of second order.
Eigen::Matrix3Xd differences(const Eigen::Matrix3Xd& x, double rate);

/// The angular velocities in the axes of the body, rad per unit of time: the rotation from the sample before to the one
/// after.
Eigen::Matrix3Xd turning(const std::vector<Eigen::Quaterniond>& orientation, double rate);

/// Each component's median over 5 samples, at the ends over the 3 or the one that are centred there.
Eigen::Matrix3Xd running_median(const Eigen::Matrix3Xd& x);

/// The columns kTossColumns in m, s and rad, with z upward from the ground. Missing velocities are the running medians
/// of `differences` and `turning`.
Table converted(const Capture& capture, const Conventions& conventions);

}  // namespace lcp::training
