#include "lcp/physics/robot.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lcp/tensor_number.h"
#include "ops/rollout/rollout.h"
#include "physics/rigid_rollout.h"
#include "physics/rigid_stepper.h"
#include "physics/robot_rollout.h"
#include "rigid/tree.h"

namespace lcp::physics {

namespace robots {
namespace {

using at::Tensor;
using namespace rigid;  // NOLINT(google-build-using-namespace): the names of the parameters

constexpr std::size_t kFirst = kParameters;  // the place of the first part of the state among the inputs
constexpr std::size_t kGamma = kStateParts, kStatus = kGamma + 4, kIterations = kStatus + 1;

// Which numbers of a joint belong to which part of a state.
struct Piece {
  StatePart part;
  std::int64_t count;
};

std::vector<Piece> coordinates_of(JointKind kind) {
  switch (kind) {
    case JointKind::kFree:
      return {{kPosition, 3}, {kOrientation, 4}};
    case JointKind::kBall:
      return {{kOrientation, 4}};
    case JointKind::kSlide:
    case JointKind::kHinge:
      break;
  }
  return {{kCoordinate, 1}};
}

// The pieces of the tangent space of coordinates_of.
std::vector<Piece> turns_of(JointKind kind) {
  std::vector<Piece> all = coordinates_of(kind);
  for (Piece& piece : all) piece.count = piece.part == kOrientation ? 3 : piece.count;
  return all;
}

std::vector<Piece> velocities_of(JointKind kind) {
  std::vector<Piece> all = turns_of(kind);
  for (Piece& piece : all) {
    piece.part = piece.part == kPosition ? kVelocity : piece.part == kOrientation ? kAngularVelocity : kSpeed;
  }
  return all;
}

using Pieces = std::vector<Piece> (*)(JointKind);

// The pieces of all joints, those of one part behind each other as one.
std::vector<Piece> pieces_of(const Numbers& kinds, Pieces pieces) {
  std::vector<Piece> all;
  for (const std::int64_t kind : kinds) {
    for (const Piece& piece : pieces(static_cast<JointKind>(kind))) {
      if (!all.empty() && all.back().part == piece.part) {
        all.back().count += piece.count;
      } else {
        all.push_back(piece);
      }
    }
  }
  return all;
}

std::int64_t size_of(const std::vector<Piece>& pieces) {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.count;
  return sum;
}

Tensor joined(const Tensors& parts, const Tensor& like) {
  if (parts.size() == 1) return parts.front();
  return parts.empty() ? like.narrow(-1, 0, 0) : at::cat(parts, -1);
}

// Numbers `begin` to `begin + count` of x, [..., n].
Tensor part_of(const Tensor& x, std::int64_t begin, std::int64_t count) {
  return count == x.size(-1) ? x : x.narrow(-1, begin, count);
}

// Divides numbers, [..., n], among the parts of a state, and the reverse.
void divide(const std::vector<Piece>& pieces, const Tensor& x, std::array<Tensors, kStateParts>& to) {
  std::int64_t begin = 0;
  for (const Piece& piece : pieces) {
    to[piece.part].push_back(part_of(x, begin, piece.count));
    begin += piece.count;
  }
}

Tensor collect(const std::vector<Piece>& pieces, const Tensors& parts) {
  std::array<std::int64_t, kStateParts> begin = {};
  Tensors all;
  for (const Piece& piece : pieces) {
    all.push_back(part_of(parts[piece.part], begin[piece.part], piece.count));
    begin[piece.part] += piece.count;
  }
  return joined(all, parts[kCoordinate]);
}

// The pieces of the coordinates, or of their tangent space, and of the velocities of all joints.
struct StatePieces {
  std::vector<Piece> coordinates, velocities;

  // The parts of a state.
  Tensors parts_of(const Tensor& qpos, const Tensor& qvel) const {
    std::array<Tensors, kStateParts> parts;
    divide(coordinates, qpos, parts);
    divide(velocities, qvel, parts);
    Tensors all;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      all.push_back(joined(parts[k], k == kVelocity || k == kAngularVelocity || k == kSpeed ? qvel : qpos));
    }
    return all;
  }
  RobotState state_of(const Tensors& parts) const { return {collect(coordinates, parts), collect(velocities, parts)}; }
};

// [..., 4 r] with each quaternion of length 1.
Tensor unit_quaternions(const Tensor& x) {
  const Tensor q = x.unflatten(-1, {-1, 4});
  return (q / q.norm(2, -1, true)).flatten(-2);
}

void check_shape(const char* name, const Tensor& x, std::initializer_list<std::int64_t> core) {
  const auto dims = static_cast<std::int64_t>(core.size());
  TORCH_CHECK(x.defined(), "the robot has no ", name);
  TORCH_CHECK(x.is_floating_point() && x.device().is_cpu(), name, " must be floating-point numbers on the CPU; got ",
              x.scalar_type(), " on ", x.device());
  TORCH_CHECK(x.dim() >= dims && x.sizes().slice(x.dim() - dims) == at::IntArrayRef(core.begin(), core.size()), name,
              " must be [..., ", c10::Join(", ", core), "]; got ", x.sizes());
}

// The names and sizes behind those of the batch of the tensors of a robot, in the order of RobotNumbers.
struct Number {
  const char* name;
  Parameter parameter;
  char letter;
  std::vector<std::int64_t> each;
};
const std::vector<Number>& all_numbers() {
  static const std::vector<Number> all = {{"mass", kMass, 'b', {}},
                                          {"inertia", kInertia, 'b', {3, 3}},
                                          {"center_of_mass", kMassCenter, 'b', {3}},
                                          {"position", kPlacement, 'b', {3}},
                                          {"orientation", kPlacementTurn, 'b', {4}},
                                          {"axis", kAxis, 'j', {3}},
                                          {"anchor", kAnchor, 'j', {3}},
                                          {"range", kLimits, 'j', {2}},
                                          {"spring", kSprings, 'j', {2}},
                                          {"damping", kDamping, 'd', {}},
                                          {"armature", kArmature, 'd', {}},
                                          {"gear", kGear, 'a', {}},
                                          {"actuator_force", kActuatorForce, 'a', {4}},
                                          {"centers", kCenters, 'p', {3}},
                                          {"radii", kRadii, 'p', {}},
                                          {"normals", kNormals, 'h', {3}},
                                          {"offsets", kOffsets, 'h', {}},
                                          {"mu", kMu, 'c', {}},
                                          {"gravity", kGravity, ' ', {3}},
                                          {"box_sizes", kBoxSizes, 'e', {3}},
                                          {"box_centers", kBoxCenters, 'e', {3}},
                                          {"box_orientations", kBoxTurns, 'e', {4}},
                                          {"friction_loss", kFrictionLoss, 'd', {}},
                                          {"coupling", kCoupling, 'k', {5}},
                                          {"closure", kClosure, 'o', {2, 3}},
                                          {"closure_orientation", kClosureTurn, 'o', {4}}};
  return all;
}

std::int64_t planes_of(const Tensors& numbers) { return numbers[16].size(-1); }
std::int64_t boxes_of(const Tensors& numbers) { return numbers[19].dim() > 1 ? numbers[19].size(-2) : 0; }

// The sizes of a robot.
struct Sizes {
  Numbers kinds, resisted, welds;
  StatePieces pieces;
  std::int64_t bodies, coordinates, dofs, actuators, balls, planes, boxes, contacts, limits, servos, couplings,
      closures;

  Sizes(const ops::StepText& structure, const Tensors& numbers) {
    const Numbers joints = structure.counts("joints");
    for (std::size_t k = 1; k < joints.size(); k += 2) kinds.push_back(joints[k]);
    bodies = std::ssize(structure.counts("parents"));
    pieces = {pieces_of(kinds, coordinates_of), pieces_of(kinds, velocities_of)};
    coordinates = size_of(pieces.coordinates);
    dofs = size_of(pieces.velocities);
    actuators = std::ssize(structure.counts("actuators"));
    balls = 0;
    for (const std::int64_t count : structure.counts("balls")) balls += count;
    planes = planes_of(numbers);
    boxes = boxes_of(numbers);
    contacts = std::ssize(structure.counts("pairs")) / 4;
    limits = std::ssize(structure.counts("limits")) / 2;
    resisted = structure.counts_if("resisted");
    servos = std::ssize(structure.counts_if("servos"));
    couplings = std::ssize(structure.counts_if("couplings")) / 2;
    const Numbers closed = structure.counts_if("closures");
    for (std::size_t k = 2; k < closed.size(); k += 3) welds.push_back(closed[k]);
    closures = std::ssize(welds);
  }
  std::int64_t pairs_of_joints() const {
    return limits + std::ssize(resisted) + servos + couplings + rows_of_closures();
  }
  std::int64_t rows_of_closures() const { return 3 * (closures + std::count(welds.begin(), welds.end(), 1)); }
  std::int64_t operator[](char letter) const {
    switch (letter) {
      case 'b':
        return bodies;
      case 'j':
        return std::ssize(kinds);
      case 'd':
        return dofs;
      case 'a':
        return actuators;
      case 'p':
        return balls;
      case 'h':
        return planes;
      case 'e':
        return boxes;
      case 'k':
        return couplings;
      case 'o':
        return closures;
      default:
        return contacts;
    }
  }
};

// x, [..., ...], with its last `dims` dimensions as one, in float64.
Tensor as_vector(const Tensor& x, std::int64_t dims) {
  const Tensor number = x.to(at::kDouble);
  return dims > 1 ? number.flatten(-dims) : number;
}

// A robot without its tensors, and these as parameters of the operator. Single steps have the same robot again and
// again, so that copies of the tensors that are constants are kept.
class PreparedRobot {
 public:
  PreparedRobot(const std::string& structure, const Tensors& numbers)
      : structure_(structure), sizes_(ops::StepText(structure), numbers) {
    const std::vector<Number>& all = all_numbers();
    TORCH_CHECK(numbers.size() == all.size(), "a robot has ", all.size(), " tensors; got ", numbers.size());
    const auto zeros = [](std::int64_t size) { return at::zeros({size}, at::kDouble); };
    rest_[kDrag] = zeros(sizes_.bodies);
    rest_[kRestitution] = rest_[kStiffness] = rest_[kDissipation] = zeros(sizes_.contacts + sizes_.pairs_of_joints());
    no_forces_ = zeros(6 * sizes_.bodies);
    no_control_ = zeros(sizes_.actuators);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const bool is_fixed = is_constant(numbers[k], core_dims(k));
      Tensor copy = is_fixed ? numbers[k].clone(at::MemoryFormat::Contiguous) : Tensor();
      const bool is_kept = is_fixed && can_read(copy) && !copy.is_inference();
      copies_.push_back(is_kept ? std::move(copy) : Tensor());
      parameters_.push_back(is_kept ? parameter(k, copies_[k]) : Tensor());
    }
  }

  const Sizes& sizes() const { return sizes_; }
  std::string_view structure() const { return structure_; }
  const Tensor& no_forces() const { return no_forces_; }
  const Tensor& no_control() const { return no_control_; }

  // Whether a robot has this structure and these constants.
  bool is_of(const std::string& structure, const Tensors& numbers) const {
    if (structure != structure_ || numbers.size() != copies_.size()) return false;
    if (planes_of(numbers) != sizes_.planes || boxes_of(numbers) != sizes_.boxes) return false;
    for (std::size_t k = 0; k < copies_.size(); ++k) {
      if (copies_[k].defined() != is_constant(numbers[k], core_dims(k))) return false;
      if (copies_[k].defined() && !has_same_bits(copies_[k], numbers[k])) return false;
    }
    return true;
  }
  // Whether it can be used once more: torch.func, FakeTensorMode and inference mode make tensors of their own.
  bool can_be_kept() const { return can_read(no_forces_) && !no_forces_.is_inference(); }

  // The inputs of the operator before the state, [..., k]. Throws c10::Error where a tensor does not fit the structure.
  Tensors parameters(const Tensors& numbers) const {
    Tensors x(rest_.begin(), rest_.end());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      x[all_numbers()[k].parameter] = parameters_[k].defined() ? parameters_[k] : parameter(k, numbers[k]);
    }
    return x;
  }

 private:
  static bool is_constant(const Tensor& x, std::int64_t dims) {
    return x.dim() == dims && can_read(x) && x.device().is_cpu() && x.scalar_type() == at::kDouble &&
           x.is_contiguous() && !x.requires_grad() && !x._fw_grad(/*level=*/0).defined();
  }
  static bool has_same_bits(const Tensor& x, const Tensor& y) {
    return x.sizes() == y.sizes() &&
           (x.numel() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
  }
  // How many dimensions tensor k has behind those of the batch.
  static std::int64_t core_dims(std::size_t k) {
    const Number& number = all_numbers()[k];
    return std::ssize(number.each) + (number.letter == ' ' ? 0 : 1);
  }
  Tensor parameter(std::size_t k, const Tensor& x) const {
    const Number& number = all_numbers()[k];
    Numbers core;
    if (number.letter != ' ') core.push_back(sizes_[number.letter]);
    core.insert(core.end(), number.each.begin(), number.each.end());
    const auto dims = std::ssize(core);
    TORCH_CHECK(x.is_floating_point() && x.dim() >= dims && x.sizes().slice(x.dim() - dims) == core, number.name,
                " must be floating-point numbers [..., ", c10::Join(", ", core), "]; got ", x.scalar_type(), " ",
                x.sizes());
    const std::int64_t of_joints = sizes_.pairs_of_joints();
    const Tensor vector = as_vector(x, dims);
    return number.parameter == kMu && of_joints > 0 ? at::constant_pad_nd(vector, {0, of_joints}) : vector;
  }

  std::string structure_;
  Sizes sizes_;
  Tensors copies_, parameters_;           // of each tensor; undefined where it is not kept
  std::array<Tensor, kParameters> rest_;  // those that no tensor of a robot is
  Tensor no_forces_, no_control_;
};

std::shared_ptr<const PreparedRobot> prepared(const std::string& structure, const Tensors& numbers) {
  thread_local std::shared_ptr<const PreparedRobot> last;
  if (last && last->is_of(structure, numbers)) return last;
  auto robot = std::make_shared<const PreparedRobot>(structure, numbers);
  last = robot->can_be_kept() ? robot : nullptr;
  return robot;
}

// With the options of a step, which has no rows of servos where impacts are solved one after another, or derivatives
// smoothed.
std::shared_ptr<const PreparedRobot> prepared(const std::string& structure, const Tensors& numbers,
                                              const RigidOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::max();
  const std::size_t begin = structure.find(" servos=");
  const bool has_rows = options.kappa == 0 && options.bounce_threshold.value_or(kNone) == kNone;
  if (has_rows || begin == std::string::npos) return prepared(structure, numbers);
  const std::size_t end = std::min(structure.find(' ', begin + 1), structure.size());
  return prepared(structure.substr(0, begin) + structure.substr(end), numbers);
}

// The inputs of the operator, [..., k] and for u [..., T, k], in float64. Without `rows`, those of one row, for which
// the control and the forces have no dimension.
Tensors packed(const RobotState& state, const RobotInput& input, std::optional<std::int64_t> rows,
               const PreparedRobot& robot, const Tensors& numbers, std::int64_t substeps) {
  const Sizes& sizes = robot.sizes();
  Tensors x = robot.parameters(numbers);
  check_shape("qpos", state.qpos, {sizes.coordinates});
  check_shape("qvel", state.qvel, {sizes.dofs});
  const Tensors parts = sizes.pieces.parts_of(as_vector(state.qpos, 1), as_vector(state.qvel, 1));
  x.insert(x.end(), parts.begin(), parts.end());
  const auto of_rows = [&](const char* name, const Tensor& given, std::initializer_list<std::int64_t> core,
                           const Tensor& zeros) {
    const auto dims = static_cast<std::int64_t>(core.size());
    if (!given.defined()) return rows ? zeros.expand({*rows, -1}) : zeros;
    check_shape(name, given, core);
    const Tensor flat = as_vector(given, dims);
    if (!rows) return flat;
    TORCH_CHECK(given.dim() > dims && given.size(0) == *rows, name, " must be [", *rows, ", ..., ",
                c10::Join(", ", core), "]; got ", given.sizes());
    return flat.dim() == 2 ? flat : flat.movedim(0, -2);
  };
  const Tensor forces = of_rows("forces", input.forces, {sizes.bodies, 6}, robot.no_forces()),
               control = of_rows("control", input.control, {sizes.actuators}, robot.no_control());
  const auto batch = at::infer_size(leading(forces), leading(control));
  const auto wide = [&](const Tensor& each) {
    std::vector<std::int64_t> shape = batch;
    shape.push_back(each.size(-1));
    return each.sizes() == shape ? each : each.expand(shape);
  };
  const Tensor all = at::cat({wide(forces), wide(control)}, -1), u = rows ? all : all.unsqueeze(-2);
  x.push_back(substeps == 1 ? u : u.repeat_interleave(substeps, -2));
  return x;
}

// What a closed loop has behind the other inputs, see ops::roll_out.
Tensors packed(const Feedback<RobotState>& feedback, const Sizes& sizes, std::int64_t rows, std::int64_t substeps) {
  const auto of_steps = [&](const char* name, const Tensor& x, c10::SymIntArrayRef size) {
    const Tensor of_rows = ops::of_all_steps(name, x.to(at::kDouble), size, rows, /*steps_first=*/true);
    return substeps == 1 ? of_rows : of_rows.repeat_interleave(substeps, 0);
  };
  const std::int64_t nv = sizes.dofs;
  const StatePieces turns = {pieces_of(sizes.kinds, turns_of), sizes.pieces.velocities};
  const Tensor K = of_steps("K", feedback.K, {sizes.actuators, 2 * nv});
  const Tensor columns =
      joined(turns.parts_of(K.narrow(-1, 0, nv), K.narrow(-1, nv, nv)), K);  // as the parts of a state
  const Tensor all = at::constant_pad_nd(columns, {0, 0, 6 * sizes.bodies, 0});
  Tensors parts = sizes.pieces.parts_of(of_steps("qpos of the reference", feedback.reference.qpos, {sizes.coordinates}),
                                        of_steps("qvel of the reference", feedback.reference.qvel, {nv}));
  parts[kOrientation] = unit_quaternions(parts[kOrientation]);
  std::vector<std::int64_t> batch;
  for (const Tensor& x : parts) batch = at::infer_size(batch, leading(x));
  for (Tensor& x : parts) {
    std::vector<std::int64_t> shape = batch;
    shape.push_back(x.size(-1));
    x = x.expand(shape);
  }
  return {all.flatten(-2).movedim(0, -2), at::cat(parts, -1).movedim(0, -2)};
}

std::string step_text(std::string_view structure, double dt, const RigidOptions& options) {
  TORCH_CHECK(dt > 0 && std::isfinite(dt), "dt must be > 0; got ", dt);
  TORCH_CHECK(options.formulation != RigidFormulation::kCompliant,
              "formulation must be exact_cone or polyhedral for robots; got compliant");
  check_options(options);
  RigidOptions all = options;
  if (!all.bounce_threshold) all.bounce_threshold = std::numeric_limits<double>::max();
  ops::StepWriter writer("rigid");
  add_options(dt, all, writer);
  return writer.text() + std::string(structure.substr(structure.find(' ')));
}

// The degrees of freedom with dry friction: those of which a number is not 0, or all where the numbers have derivatives
// or cannot be read.
Numbers resisted_by(const Tensor& friction_loss, std::int64_t dofs) {
  Numbers resisted;
  if (!friction_loss.defined()) return resisted;
  TORCH_CHECK(friction_loss.dim() > 0 && friction_loss.size(-1) == dofs, "friction_loss must be [..., ", dofs,
              "]; got ", friction_loss.sizes());
  const bool varies =
      !can_read(friction_loss) || friction_loss.requires_grad() || friction_loss._fw_grad(/*level=*/0).defined();
  const Tensor is_used = varies ? Tensor() : (friction_loss != 0).reshape({-1, dofs}).any(0).cpu();
  for (std::int64_t dof = 0; dof < dofs; ++dof) {
    if (varies || is_used[dof].item<bool>()) resisted.push_back(dof);
  }
  return resisted;
}

// The actuators with a range of their forces that depend on length or speed, or may.
Numbers servos_in(const Robot& robot) {
  Numbers servos;
  for (std::size_t k = 0; k < robot.actuators.size(); ++k) {
    if (robot.actuators[k].force_range != RobotActuator::kUnlimited) servos.push_back(static_cast<std::int64_t>(k));
  }
  const Tensor& force = robot.actuator_force;
  if (servos.empty() || !force.defined()) return servos;
  const auto actuators = std::ssize(robot.actuators);
  TORCH_CHECK(force.dim() >= 2 && force.size(-2) == actuators && force.size(-1) == 4, "actuator_force must be [..., ",
              actuators, ", 4]; got ", force.sizes());
  if (!can_read(force) || force.requires_grad() || force._fw_grad(/*level=*/0).defined()) return servos;
  const Tensor is_servo = (force.narrow(-1, 2, 2) != 0).any(-1).reshape({-1, actuators}).any(0).cpu();
  std::erase_if(servos, [&](std::int64_t k) { return !is_servo[k].item<bool>(); });
  return servos;
}

// Those of `rows` rows behind `first` other pairs, [..., rows], of the impulses of all pairs, [..., 3 c].
Tensor row_impulses(const Tensor& gamma, std::int64_t first, std::int64_t rows) {
  if (rows == 0) return gamma.narrow(-1, 0, 0);
  return gamma.narrow(-1, 3 * first, 3 * rows).unflatten(-1, {rows, 3}).select(-1, 2);
}

// Numbers of x, [..., n], at these places, which are n for 0. Not empty.
Tensor at_places(const Tensor& x, const Numbers& places) {
  const Tensor all = at::constant_pad_nd(x, {0, 1});
  Tensors found;
  for (const std::int64_t place : places) found.push_back(all.select(-1, place));
  return at::stack(found, -1);
}

// The impulses of dry friction along all degrees of freedom, [..., d], of those of all pairs.
Tensor joint_friction(const Tensor& gamma, const Sizes& sizes) {
  const auto rows = std::ssize(sizes.resisted);
  if (rows == 0) {
    std::vector<std::int64_t> shape = leading(gamma).vec();
    shape.push_back(sizes.dofs);
    return at::zeros(shape, gamma.options());
  }
  const Tensor of_rows = row_impulses(gamma, sizes.contacts + sizes.limits, rows);
  if (rows == sizes.dofs) return of_rows;
  Numbers place(sizes.dofs, rows);
  for (std::int64_t r = 0; r < rows; ++r) place[sizes.resisted[r]] = r;
  return at_places(of_rows, place);
}

// The impulses of closures, [..., o, 6], of those of all pairs.
Tensor closure_impulses(const Tensor& gamma, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows_of_closures();
  const Tensor of_rows = row_impulses(gamma, gamma.size(-1) / 3 - rows, rows);
  Numbers place;
  std::int64_t next = 0;
  for (const std::int64_t is_weld : sizes.welds) {
    for (std::int64_t axis = 0; axis < 6; ++axis) place.push_back(axis < 3 || is_weld != 0 ? next++ : rows);
  }
  return (place.empty() ? of_rows : at_places(of_rows, place)).unflatten(-1, {sizes.closures, 6});
}

}  // namespace

std::string structure_of(const Robot& robot) {
  Numbers joints, actuators, pairs, capsules, limits, first_ball = {0}, body_of_ball;
  std::vector<double> control_ranges, force_ranges;
  const std::int64_t bodies = std::ssize(robot.parents), planes = robot.offsets.defined() ? robot.offsets.size(-1) : 0;
  TORCH_CHECK(std::ssize(robot.balls) == bodies, "balls must be ", bodies, " numbers, one for each body; got ",
              robot.balls.size());
  for (std::int64_t body = 0; body < bodies; ++body) {
    TORCH_CHECK(robot.balls[body] >= 0, "balls must be >= 0; got ", robot.balls[body]);
    body_of_ball.insert(body_of_ball.end(), robot.balls[body], body);
  }
  for (std::size_t k = 0; k < robot.joints.size(); ++k) {
    const RobotJoint& joint = robot.joints[k];
    joints.insert(joints.end(), {joint.body, static_cast<std::int64_t>(joint.kind)});
    if (!joint.has_limits) continue;
    for (const std::int64_t upper : {0, 1}) limits.insert(limits.end(), {static_cast<std::int64_t>(k), upper});
  }
  for (const RobotActuator& actuator : robot.actuators) {
    actuators.push_back(actuator.joint);
    control_ranges.insert(control_ranges.end(), actuator.control_range.begin(), actuator.control_range.end());
    force_ranges.insert(force_ranges.end(), actuator.force_range.begin(), actuator.force_range.end());
  }
  const auto body_of = [&](std::int64_t ball) {
    TORCH_CHECK(ball >= 0 && ball < std::ssize(body_of_ball), "a contact must name balls from 0 to ",
                std::ssize(body_of_ball) - 1, "; got ", ball);
    return body_of_ball[ball];
  };
  for (std::size_t k = 0; k < robot.contacts.size(); ++k) {
    const RobotContact& contact = robot.contacts[k];
    const bool is_plane = contact.plane != RobotContact::kNone;
    TORCH_CHECK(!is_plane || (contact.plane >= 0 && contact.plane < planes), "a contact must name planes from 0 to ",
                planes - 1, "; got ", contact.plane);
    if (contact.box != RobotContact::kNone) {
      TORCH_CHECK(contact.box >= 0 && contact.box < std::ssize(robot.boxes), "a contact must name boxes from 0 to ",
                  std::ssize(robot.boxes) - 1, "; got ", contact.box);
      const std::int64_t body = robot.boxes[contact.box];
      TORCH_CHECK(body >= 0 && body < bodies, "boxes must be of bodies from 0 to ", bodies - 1, "; got ", body);
      pairs.insert(pairs.end(),
                   {body_of(contact.ball), contact.ball, body, planes + std::ssize(body_of_ball) + contact.box});
      continue;
    }
    pairs.insert(pairs.end(), {body_of(contact.ball), contact.ball, is_plane ? -1 : body_of(contact.other),
                               is_plane ? contact.plane : planes + contact.other});
    if (contact.end != RobotContact::kNone || contact.other_end != RobotContact::kNone) {
      capsules.insert(capsules.end(), {static_cast<std::int64_t>(k), contact.end, contact.other_end});
    }
  }
  const Numbers world(planes, -1), none(planes, 0);
  Numbers kinds;
  for (const RobotJoint& joint : robot.joints) kinds.push_back(static_cast<std::int64_t>(joint.kind));
  const Numbers resisted = resisted_by(robot.friction_loss, size_of(pieces_of(kinds, velocities_of)));
  ops::StepWriter writer("rigid");
  if (!resisted.empty()) writer.add("resisted", resisted);
  if (const Numbers servos = servos_in(robot); !servos.empty()) writer.add("servos", servos);
  Numbers couplings;
  for (const RobotCoupling& coupling : robot.couplings) {
    couplings.insert(couplings.end(), {coupling.joint, coupling.other});
  }
  if (!couplings.empty()) writer.add("couplings", couplings);
  Numbers closures;
  for (const RobotClosure& closure : robot.closures) {
    closures.insert(closures.end(), {closure.body, closure.other, closure.is_weld});
  }
  if (!closures.empty()) writer.add("closures", closures);
  return writer.add("balls", robot.balls)
      .add("plane_bodies", world)
      .add("touch_counts", none)
      .add("touches", Numbers())
      .add("pairs", pairs)
      .add("parents", robot.parents)
      .add("joints", joints)
      .add("limits", limits)
      .add("capsules", capsules)
      .add("actuators", actuators)
      .add("control_ranges", control_ranges)
      .add("force_ranges", force_ranges)
      .text();
}

RobotSolution roll_out(const RobotState& state, const RobotInput& input, std::optional<std::int64_t> rows,
                       const std::string& structure, const Tensors& numbers, double dt, const RigidOptions& options,
                       const std::optional<Feedback<RobotState>>& feedback) {
  TORCH_CHECK(rows.value_or(1) >= 1, "a rollout must have at least one row; got ", *rows);
  const auto robot = prepared(structure, numbers, options);
  const Sizes& sizes = robot->sizes();
  const std::int64_t substeps = options.substeps;
  Tensors x = packed(state, input, rows, *robot, numbers, substeps), closed;
  if (feedback) {
    x[kFirst + kOrientation] = unit_quaternions(x[kFirst + kOrientation]);
    closed = packed(*feedback, sizes, rows.value_or(1), substeps);
  }
  const Tensors results = ops::roll_out(step_text(robot->structure(), dt, options), x, closed);
  // Steps, [batch..., T, ...] with `dims` dimensions from T on, as [rows, batch..., ...]: `one` of those of a row.
  const auto of_rows = [&](const Tensor& given, std::int64_t dims, const auto& one) {
    if (substeps == 1 && !rows) return given.select(-dims, 0);
    const Tensor steps = given.dim() == dims ? given : given.movedim(-dims, 0);
    if (substeps == 1) return steps;
    const Tensor found = one(steps.unflatten(0, {-1, substeps}));
    return rows ? found : found.select(0, 0);
  };
  const at::ScalarType dtype = state.qvel.scalar_type();
  const auto last = [&](const Tensor& given) {
    return of_rows(given.to(dtype), 2, [&](const Tensor& steps) { return steps.select(1, substeps - 1); });
  };
  const auto sum = [](const Tensor& steps) { return steps.sum(1); };
  const auto first_failure = [](const Tensor& steps) {
    return steps.gather(1, (steps != 0).to(at::kByte).argmax(1, true)).squeeze(1);
  };
  const RobotState next = sizes.pieces.state_of(results);
  const Tensor all = of_rows(results[kGamma].to(dtype), 2, sum);
  const std::int64_t first_closed = all.size(-1) / 3 - sizes.rows_of_closures();
  return {{last(next.qpos), last(next.qvel)},
          part_of(all, 0, 3 * (sizes.contacts + sizes.limits)),
          of_rows(results[kStatus], 1, first_failure),
          of_rows(results[kIterations], 1, sum),
          joint_friction(all, sizes),
          row_impulses(all, first_closed - sizes.couplings, sizes.couplings),
          closure_impulses(all, sizes)};
}

RobotLinearization linearize(const RobotState& state, const Tensor& control, const std::string& structure,
                             const Tensors& numbers, double dt, const RigidOptions& options) {
  const c10::NoGradGuard no_grad;
  const auto robot = prepared(structure, numbers, options);
  const Sizes& sizes = robot->sizes();
  Tensors x = packed(state, {control, {}}, std::nullopt, *robot, numbers, options.substeps);
  if (x[kFirst + kOrientation].size(-1) > 0) x[kFirst + kOrientation] = unit_quaternions(x[kFirst + kOrientation]);
  const auto [path, A, B] = ops::linearize_rollout(step_text(robot->structure(), dt, options), x);
  Tensors ends;
  for (std::size_t part = 0; part < kStateParts; ++part) ends.push_back(path[part].select(-2, options.substeps - 1));
  const RobotState next = sizes.pieces.state_of(ends);
  const at::ScalarType dtype = state.qvel.scalar_type();
  const Tensor& statuses = path[kStatus];
  const Tensor status = options.substeps == 1
                            ? statuses.select(-1, 0)
                            : statuses.gather(-1, (statuses != 0).to(at::kByte).argmax(-1, true)).squeeze(-1);
  return {{next.qpos.to(dtype), next.qvel.to(dtype)}, A.to(dtype), B.to(dtype), status};
}

RobotCertificate certify(const RobotState& state, const RobotInput& input, std::int64_t rows,
                         const std::string& structure, const Tensors& numbers, double dt, const RigidOptions& options,
                         double tolerance) {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(rows >= 1, "a rollout must have at least one row; got ", rows);
  const auto robot = prepared(structure, numbers, options);
  const Tensors x = packed(state, input, rows, *robot, numbers, options.substeps);
  const auto found = ops::certify_rollout(step_text(robot->structure(), dt, options), x);
  const auto of_rows = [&](const Tensor& of_steps) {
    return of_steps.movedim(-1, 0).unflatten(0, {rows, options.substeps});
  };
  const Tensor margin = of_rows(found.margin).amin(1);
  return {(of_rows(found.path[kStatus]) != 0).any(1).sum(0), (margin <= tolerance).sum(0),
          of_rows(found.residual).amax(1), margin, of_rows(found.gap).amin(1)};
}

namespace {

// Reads the numbers of a robot for the formulas of rigid/tree.h, each a tensor [...].
struct TensorReader {
  const Tensors& numbers;
  const Tensors& parts;
  const std::vector<Joint>& joints;

  TensorNumber at(const Tensor& x, std::int64_t i) const { return x.select(-1, i); }
  Vector<TensorNumber> vector(const Tensor& x, std::int64_t i) const {
    return {at(x, 3 * i), at(x, 3 * i + 1), at(x, 3 * i + 2)};
  }
  Quaternion<TensorNumber> quaternion(const Tensor& x, std::int64_t i) const {
    return {at(x, 4 * i), at(x, 4 * i + 1), at(x, 4 * i + 2), at(x, 4 * i + 3)};
  }
  Vector<TensorNumber> placement(int body) const { return vector(numbers[3].flatten(-2), body); }
  Quaternion<TensorNumber> turn_of_placement(int body) const { return quaternion(numbers[4].flatten(-2), body); }
  Vector<TensorNumber> axis(int joint) const { return vector(numbers[5].flatten(-2), joint); }
  Vector<TensorNumber> anchor(int joint) const { return vector(numbers[6].flatten(-2), joint); }
  Vector<TensorNumber> origin(int joint) const { return vector(parts[kPosition], joints[joint].position); }
  Quaternion<TensorNumber> turn(int joint) const { return quaternion(parts[kOrientation], joints[joint].orientation); }
  TensorNumber coordinate(int joint) const { return at(parts[kCoordinate], joints[joint].coordinate); }
};

}  // namespace

RobotPlaces places_of(const Tensor& qpos, const std::string& structure, const Tensors& numbers) {
  const ops::StepText text(structure);
  const Sizes sizes(text, numbers);
  check_shape("qpos", qpos, {sizes.coordinates});
  rigid::Scene scene = {static_cast<int>(sizes.bodies), static_cast<int>(sizes.balls), 0, {}, {}, 0, {}, 0};
  scene.pairs.resize(sizes.contacts);
  ops::add_trees(text, scene);
  const Tensors parts = sizes.pieces.parts_of(qpos, qpos.new_zeros({sizes.dofs}));
  const TensorReader read = {numbers, parts, scene.joints};
  Places<TensorNumber> found(scene);
  place(scene, read, found);
  std::vector<std::int64_t> batch = leading(qpos).vec();
  for (const std::size_t k : {3, 4, 5, 6}) batch = at::infer_size(batch, leading(numbers[k], 2));
  const auto stacked = [&](const std::vector<TensorNumber>& all) {
    Tensors wide;
    for (const TensorNumber& x : all) wide.push_back(x.tensor(qpos.options()).to(qpos.scalar_type()).expand(batch));
    return at::stack(wide, -1);
  };
  std::vector<TensorNumber> positions, rotations;
  for (std::int64_t body = 0; body < sizes.bodies; ++body) {
    for (std::size_t i = 0; i < 3; ++i) {
      positions.push_back(found.positions[body][i]);
      for (std::size_t j = 0; j < 3; ++j) rotations.push_back(found.rotations[body][i][j]);
    }
  }
  return {stacked(positions).unflatten(-1, {sizes.bodies, 3}), stacked(rotations).unflatten(-1, {sizes.bodies, 3, 3})};
}

Tensors numbers_of(const Robot& robot) {
  Tensors all = {
      robot.mass,           robot.inertia,   robot.center_of_mass, robot.position,        robot.orientation, robot.axis,
      robot.anchor,         robot.range,     robot.spring,         robot.damping,         robot.armature,    robot.gear,
      robot.actuator_force, robot.centers,   robot.radii,          robot.normals,         robot.offsets,     robot.mu,
      robot.gravity,        robot.box_sizes, robot.box_centers,    robot.box_orientations};
  for (std::size_t k = 0; k < all.size(); ++k) {
    TORCH_CHECK(all[k].defined(), "the robot has no ", all_numbers()[k].name);
  }
  all.push_back(robot.friction_loss.defined() ? robot.friction_loss : at::zeros_like(robot.damping));
  all.push_back(robot.coupling.defined() ? robot.coupling : at::zeros({0, 5}, robot.damping.options()));
  all.push_back(robot.closure.defined() ? robot.closure : at::zeros({0, 2, 3}, robot.damping.options()));
  all.push_back(robot.closure_orientation.defined()
                    ? robot.closure_orientation
                    : at::zeros({std::ssize(robot.closures), 4}, robot.damping.options()));
  return all;
}

}  // namespace robots

RobotSolution simulate(const RobotState& state, const RobotInput& input, std::int64_t rows, const Robot& robot,
                       const RigidOptions& options, const std::optional<Feedback<RobotState>>& feedback) {
  return robots::roll_out(state, input, rows, robots::structure_of(robot), robots::numbers_of(robot), robot.dt, options,
                          feedback);
}

RobotSolution step(const RobotState& state, const RobotInput& input, const Robot& robot, const RigidOptions& options) {
  return robots::roll_out(state, input, std::nullopt, robots::structure_of(robot), robots::numbers_of(robot), robot.dt,
                          options, std::nullopt);
}

RobotLinearization linearize(const RobotState& state, const at::Tensor& control, const Robot& robot,
                             const RigidOptions& options) {
  return robots::linearize(state, control, robots::structure_of(robot), robots::numbers_of(robot), robot.dt, options);
}

RobotCertificate certify_rollout(const RobotState& state, const RobotInput& input, std::int64_t rows,
                                 const Robot& robot, const RigidOptions& options, double tolerance) {
  return robots::certify(state, input, rows, robots::structure_of(robot), robots::numbers_of(robot), robot.dt, options,
                         tolerance);
}

RobotPlaces places(const at::Tensor& qpos, const Robot& robot) {
  return robots::places_of(qpos, robots::structure_of(robot), robots::numbers_of(robot));
}

RobotState default_state(const Robot& robot) {
  std::vector<at::Tensor> qpos;
  std::int64_t dofs = 0;
  const at::Tensor zero = at::zeros({1}, robot.position.options());
  for (const RobotJoint& joint : robot.joints) {
    const auto of_body = [&](const at::Tensor& x) { return x.detach().select(-2, joint.body); };
    if (joint.kind == JointKind::kFree) qpos.push_back(of_body(robot.position));
    if (joint.kind == JointKind::kFree) qpos.push_back(of_body(robot.orientation));
    if (joint.kind == JointKind::kBall) qpos.push_back(at::constant_pad_nd(zero + 1, {0, 3}));
    if (joint.kind == JointKind::kSlide || joint.kind == JointKind::kHinge) qpos.push_back(zero);
    dofs += joint.kind == JointKind::kFree ? 6 : joint.kind == JointKind::kBall ? 3 : 1;
  }
  const at::Tensor rest = at::zeros({dofs}, robot.position.options());
  if (robot.qpos0.defined()) return {robot.qpos0.detach(), rest};
  return {qpos.empty() ? zero.narrow(-1, 0, 0) : at::cat(qpos, -1), rest};
}

}  // namespace lcp::physics
