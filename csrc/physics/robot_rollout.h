// Robots as their structure, a text, and their tensors in the order of Robot's members, as Python passes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lcp/physics/robot.h"
#include "physics/stepping.h"

namespace lcp::physics::robots {

using Numbers = std::vector<std::int64_t>;

/// The structure of a robot. Throws c10::Error where numbers of bodies, balls, joints or planes do not fit.
std::string structure_of(const Robot& robot);
Tensors numbers_of(const Robot& robot);

/// As lcp::physics::simulate, without `rows` as lcp::physics::step, and as linearize and certify_rollout.
RobotSolution roll_out(const RobotState& state, const RobotInput& input, std::optional<std::int64_t> rows,
                       const std::string& structure, const Tensors& numbers, double dt, const RigidOptions& options,
                       const std::optional<Feedback<RobotState>>& feedback);
RobotLinearization linearize(const RobotState& state, const at::Tensor& control, const std::string& structure,
                             const Tensors& numbers, double dt, const RigidOptions& options);

RobotCertificate certify(const RobotState& state, const RobotInput& input, std::int64_t rows,
                         const std::string& structure, const Tensors& numbers, double dt, const RigidOptions& options,
                         double tolerance);

RobotPlaces places_of(const at::Tensor& qpos, const std::string& structure, const Tensors& numbers);

}  // namespace lcp::physics::robots
