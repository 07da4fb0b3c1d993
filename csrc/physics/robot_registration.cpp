// Robots as operators, for Python.
#include <torch/library.h>

#include <optional>
#include <string>
#include <vector>

#include "lcp/physics/robot.h"
#include "ops/composite.h"
#include "physics/rigid_rollout.h"
#include "physics/robot_rollout.h"

namespace lcp::physics {

LCP_MEMBERS(RobotState, qpos, qvel)
LCP_MEMBERS(RobotSolution, next, gamma, status, iterations, joint_friction, coupling, closure)
LCP_MEMBERS(RobotPlaces, position, rotation)
LCP_MEMBERS(RobotLinearization, next, A, B, status)
LCP_MEMBERS(RobotCertificate, unsolved, kinked, residual, margin, gap)

namespace {

using at::Tensor;
using robots::Numbers;

// joints: body, kind and whether it has limits, of each. contacts: the six numbers of each RobotContact. couplings:
// the two of each RobotCoupling. closures: the three of each RobotClosure.
std::string structure_of(const Numbers& parents, const Numbers& joints, const Numbers& actuators,
                         const std::vector<double>& ranges, const Numbers& balls, const Numbers& boxes,
                         const Numbers& contacts, std::int64_t planes, const Tensor& friction_loss,
                         const Tensor& actuator_force, const Numbers& couplings, const Numbers& closures) {
  Robot robot;
  for (std::size_t k = 0; k + 1 < couplings.size(); k += 2) robot.couplings.push_back({couplings[k], couplings[k + 1]});
  for (std::size_t k = 0; k + 2 < closures.size(); k += 3) {
    robot.closures.push_back({closures[k], closures[k + 1], closures[k + 2] != 0});
  }
  robot.friction_loss = friction_loss;
  robot.actuator_force = actuator_force;
  robot.parents = parents;
  robot.balls = balls;
  robot.boxes = boxes;
  robot.offsets = at::empty({planes});
  TORCH_CHECK(joints.size() % 3 == 0, "joints must be three numbers each; got ", joints.size());
  TORCH_CHECK(contacts.size() % 6 == 0, "contacts must be six numbers each; got ", contacts.size());
  TORCH_CHECK(ranges.size() == 4 * actuators.size(), "ranges must be four numbers for each of ", actuators.size(),
              " actuators; got ", ranges.size());
  for (std::size_t k = 0; k < joints.size(); k += 3) {
    robot.joints.push_back({joints[k], static_cast<JointKind>(joints[k + 1]), joints[k + 2] != 0});
  }
  for (std::size_t k = 0; k < actuators.size(); ++k) {
    const double* const range = ranges.data() + 4 * k;
    robot.actuators.push_back({actuators[k], {range[0], range[1]}, {range[2], range[3]}});
  }
  for (std::size_t k = 0; k < contacts.size(); k += 6) {
    const std::int64_t* const x = contacts.data() + k;
    robot.contacts.push_back({x[0], x[1], x[2], x[3], x[4], x[5]});
  }
  return robots::structure_of(robot);
}

// K, qpos_reference, qvel_reference: of a Feedback, or undefined. rows: absent for one step, whose inputs and results
// have no dimension of rows.
RobotSolution roll_out(const Tensor& qpos, const Tensor& qvel, const Tensor& control, const Tensor& forces,
                       const Tensor& K, const Tensor& qpos_reference, const Tensor& qvel_reference,
                       std::optional<std::int64_t> rows, const std::string& structure, const Tensors& numbers,
                       double dt, const RigidOptions& options) {
  std::optional<Feedback<RobotState>> feedback;
  if (K.defined()) feedback = {K, {qpos_reference, qvel_reference}};
  return robots::roll_out({qpos, qvel}, {control, forces}, rows, structure, numbers, dt, options, feedback);
}

RobotLinearization linearize(const Tensor& qpos, const Tensor& qvel, const Tensor& control,
                             const std::string& structure, const Tensors& numbers, double dt,
                             const RigidOptions& options) {
  return robots::linearize({qpos, qvel}, control, structure, numbers, dt, options);
}

RobotCertificate certify(const Tensor& qpos, const Tensor& qvel, const Tensor& control, const Tensor& forces,
                         std::int64_t rows, const std::string& structure, const Tensors& numbers, double dt,
                         const RigidOptions& options, double certificate_tolerance) {
  return robots::certify({qpos, qvel}, {control, forces}, rows, structure, numbers, dt, options, certificate_tolerance);
}

LCP_LIBRARY_FRAGMENT(library) {
  ops::define<structure_of>(library,
                            "_structure_of_robot(parents, joints, actuators, ranges, balls, boxes, contacts, planes, "
                            "friction_loss, actuator_force, couplings, closures)");
  ops::define<roll_out>(
      library,
      "_roll_out_robot(qpos, qvel, control?, forces?, K?, qpos_reference?, qvel_reference?, rows, structure, numbers, "
      "dt, options)");
  ops::define<linearize>(library, "_linearize_robot(qpos, qvel, control?, structure, numbers, dt, options)");
  ops::define<certify>(library,
                       "_certify_robot(qpos, qvel, control?, forces?, rows, structure, numbers, dt, options, "
                       "certificate_tolerance)");
  ops::define<robots::places_of>(library, "_places_of_robot(qpos, structure, numbers)");
}

}  // namespace
}  // namespace lcp::physics
