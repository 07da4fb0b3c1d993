// The system robot: a file that torchlcp.physics.Robot.save wrote, or python -m torchlcp.convert_robot.
#include "lcp/physics/robot.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "lcp/physics/robot_file.h"
#include "run/program.h"
#include "simulation/system.h"

namespace lcp::training {
namespace {

using namespace lcp::physics;
using torch::Tensor;

constexpr double kStill = 1e-6;  // m/s and rad/s, below which a robot counts as resting

const std::vector<std::string> kPosition = {"x", "y", "z"};
const std::vector<std::string> kTurn = {"q_w", "q_x", "q_y", "q_z"};
const std::vector<std::string> kSpeed = {"v_x", "v_y", "v_z"};
const std::vector<std::string> kSpin = {"omega_x", "omega_y", "omega_z"};

// The name, or kind_number where it is not the only one of its text, or cannot be a column.
template <class Item>
std::vector<std::string> labels_of(const std::vector<Item>& items, const std::string& kind) {
  std::vector<std::string> labels;
  for (const Item& item : items) {
    const bool is_column = !item.name.empty() && item.name.find_first_of(",\"\r\n") == std::string::npos;
    const bool is_only =
        1 == std::count_if(items.begin(), items.end(), [&](const Item& x) { return x.name == item.name; });
    labels.push_back(is_column && is_only ? item.name : kind + "_" + std::to_string(labels.size()));
  }
  return labels;
}

// The columns of qpos and qvel.
struct StateColumns {
  std::vector<std::string> qpos, qvel;

  explicit StateColumns(const Robot& robot) {
    const std::vector<std::string> labels = labels_of(robot.joints, "joint");
    const auto add = [](std::vector<std::string>& to, const std::string& label, const std::vector<std::string>& parts) {
      for (const std::string& part : parts) to.push_back(label + "_" + part);
    };
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const JointKind kind = robot.joints[k].kind;
      if (kind == JointKind::kFree) add(qpos, labels[k], kPosition);
      if (kind == JointKind::kFree) add(qvel, labels[k], kSpeed);
      if (kind == JointKind::kFree || kind == JointKind::kBall) {
        add(qpos, labels[k], kTurn);
        add(qvel, labels[k], kSpin);
      } else {
        qpos.push_back(labels[k]);
        qvel.push_back(labels[k] + "_v");
      }
    }
  }
};

std::vector<std::string> control_columns(const Robot& robot) {
  std::vector<std::string> columns = labels_of(robot.actuators, "actuator");
  for (std::string& column : columns) column += "_control";
  return columns;
}

// What its contacts know of a robot without shapes: balls and boxes.
std::vector<RobotShape> shapes_of(const Robot& robot) {
  if (!robot.shapes.empty()) return robot.shapes;
  std::vector<RobotShape> shapes;
  const auto numbers = [](const Tensor& x, std::int64_t k, auto& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = x[k][static_cast<std::int64_t>(i)].template item<double>();
  };
  std::int64_t ball = 0;
  for (std::size_t body = 0; body < robot.balls.size(); ++body) {
    for (std::int64_t k = 0; k < robot.balls[body]; ++k, ++ball) {
      const double radius = robot.radii[ball].item<double>();
      if (radius == 0) continue;
      RobotShape& shape = shapes.emplace_back();
      shape = {static_cast<std::int64_t>(body), RobotShapeKind::kBall, {radius}};
      numbers(robot.centers, ball, shape.center);
    }
  }
  for (std::size_t k = 0; k < robot.boxes.size(); ++k) {
    RobotShape& shape = shapes.emplace_back();
    shape = {robot.boxes[k], RobotShapeKind::kBox, {}};
    numbers(robot.box_sizes, static_cast<std::int64_t>(k), shape.size);
    numbers(robot.box_centers, static_cast<std::int64_t>(k), shape.center);
    numbers(robot.box_orientations, static_cast<std::int64_t>(k), shape.orientation);
  }
  return shapes;
}

class RobotSystem : public System {
 public:
  RobotSystem()
      : System({.formulations = {"exact_cone"},
                .default_steps = 1000,
                .example = "--robot robot.json --keyframe home --control random",
                .inputs = {},
                .rollout_flags = {},
                .has_positions = false}) {}

  void add_physics(CommandLine& line) override {
    line.add("dt", dt_, "Time step, s; 0: that of the file", nonnegative);
  }

  void add_to(CommandLine& line) override {
    line.add("robot", file_, "File of a robot, by Robot.save or by python -m torchlcp.convert_robot ROBOT.xml", nullptr,
             Role::kFile);
    line.add("keyframe", keyframe_, "Name of the keyframe of the file that is the start");
    line.add(
        "control", control_,
        "zero, keyframe: that of --keyframe, random: within the ranges, or from -1 to 1 without one, another one "
        "in each step; or a CSV file with a column ACTUATOR_control for each, and a row for each step, or one for all",
        [](const std::string& x) {
          return x == "zero" || x == "keyframe" || x == "random" || names_file(x)
                     ? ""
                     : "zero, keyframe, random or a file, whose name has a . or /";
        },
        Role::kFileOrWord);
    line.add("spread", spread_,
             "Standard deviation of what is added to the velocities before the first step, m/s and rad/s; not of the "
             "first trajectory",
             nonnegative);
    line.add("substeps", options_.substeps, "Steps in each --dt", at_least_one);
    line.add("stabilization", options_.stabilization, "Share of a penetration that a step removes", from_zero_to_one);
  }

  void check_flags(const Request& request) const override {
    const Robot robot = loaded();
    start(robot, request);
    controls(robot, request);
    if (request.trajectories > 1 && spread_ == 0 && control_ != "random") {
      throw UsageError("--trajectories must be 1, since all would be the same with --spread 0; got " +
                       std::to_string(request.trajectories));
    }
  }

  Motion run(const Request& request) const override {
    const Robot robot = loaded();
    const RobotState first = start(robot, request);
    const Tensor control = controls(robot, request);
    const double row = robot.dt;  // a row of the table
    Robot stepped = robot;
    stepped.dt = row / static_cast<double>(options_.substeps);
    const RobotSolution solution = simulate(first, {control, {}}, request.steps, stepped, options_);
    const RobotCertificate certificate = certify_rollout(first, {control, {}}, request.steps, stepped, options_);
    const std::int64_t contacts = std::ssize(robot.contacts);
    const Tensor normal = solution.gamma.narrow(-1, 0, 3 * contacts).unflatten(-1, {contacts, 3}).select(-1, 2) / row;
    const Tensor nothing =
        torch::full({request.steps, request.trajectories}, std::numeric_limits<double>::quiet_NaN(), torch::kDouble);

    const StateColumns columns(robot);
    Motion motion;
    motion.data = motion_table(request.steps, request.trajectories)
                      .add(columns.qpos, solution.next.qpos)
                      .add(columns.qvel, request.with_velocity_noise(solution.next.qvel))
                      .add(control_columns(robot), control)
                      .add("normal_force", normal.sum(-1))
                      .add("touching", (normal > 0).sum(-1))
                      .add("gap_before", certificate.gap)
                      .add("residual", certificate.residual)
                      .add("margin", certificate.margin)
                      .add("status", solution.status)
                      .take();
    motion.residual = certificate.residual;
    motion.status = solution.status;
    motion.sticking = (solution.next.qvel.abs() <= kStill).all(-1) & (normal > 0).any(-1);
    motion.certificate = {certificate.unsolved, {}, certificate.kinked};
    motion.error = nothing;
    const auto largest = [](const Tensor& x) { return x.nan_to_num(0, 0, 0).max().item<double>(); };
    motion.metrics["max_penetration"] = std::max(0.0, largest(-certificate.gap));
    motion.metrics["contact_fraction"] = (normal > 0).any(-1).to(torch::kDouble).mean().item<double>();
    motion.metrics["mean_iterations"] = solution.iterations.to(torch::kDouble).mean().item<double>();
    motion.metrics["row"] = row;
    motion.metrics["weight"] = robot.mass.sum().item<double>() * robot.gravity.norm().item<double>();
    motion.metrics["joints"] = joints_of(robot);
    const double overlap = -certificate.gap[0][0].item<double>();
    constexpr double kRounding = 1e-9;  // m
    if (overlap > kRounding) {
      motion.remarks.push_back("the robot starts " + short_number(overlap, 3) +
                               " m within what it touches; --keyframe may name a better start");
    }
    motion.tables.emplace_back("places.csv", places_table(robot, first.qpos, solution.next.qpos));
    motion.tables.emplace_back("shapes.csv", shapes_table(robot));
    motion.tables.emplace_back("planes.csv", planes_table(robot));
    return motion;
  }

 private:
  Robot loaded() const {
    if (file_.empty()) throw UsageError("--system robot needs --robot FILE");
    const std::string ending = file_.extension().string();
    if (ending == ".xml" || ending == ".mjcf" || ending == ".urdf") {
      throw UsageError(
          "--robot must be a file of Robot.save; this makes one, with the ending .json: "
          "python -m torchlcp.convert_robot " +
          file_.string());
    }
    try {
      Robot robot = load_robot(file_.string());
      if (dt_ > 0) robot.dt = dt_;
      return robot;
    } catch (const c10::Error& error) {
      throw UsageError(std::string("--robot ") + error.what_without_backtrace());
    }
  }

  const RobotKeyframe& keyframe_of(const Robot& robot) const {
    try {
      return keyframe(robot, keyframe_);
    } catch (const c10::Error& error) {
      throw UsageError(std::string("--keyframe: ") + error.what_without_backtrace());
    }
  }

  // [trajectories, ...]
  RobotState start(const Robot& robot, const Request& request) const {
    const RobotState one = keyframe_.empty() ? default_state(robot) : keyframe_of(robot).state;
    const auto all = [&](const Tensor& x) { return x.to(request.dtype).expand({request.trajectories, -1}); };
    Tensor spread = torch::randn({request.trajectories, one.qvel.size(0)}, generator(request.seed, Stream::kStarts),
                                 torch::kDouble);
    spread[0] = 0;
    return {all(one.qpos), all(one.qvel) + spread_ * spread.to(request.dtype)};
  }

  // [steps, trajectories, actuators]
  Tensor controls(const Robot& robot, const Request& request) const {
    const std::int64_t count = std::ssize(robot.actuators);
    Tensor control = torch::zeros({1, 1, count}, torch::kDouble);
    if (control_ == "keyframe") {
      if (keyframe_.empty()) throw UsageError("--control keyframe needs --keyframe NAME");
      control = keyframe_of(robot).control.view({1, 1, count});
    } else if (control_ == "random") {
      const Tensor share = torch::rand({request.steps, request.trajectories, count},
                                       generator(request.seed, Stream::kForces), torch::kDouble);
      std::vector<Tensor> columns;
      for (std::int64_t k = 0; k < count; ++k) {
        auto [low, high] = robot.actuators[k].control_range;
        if (!std::isfinite(high - low)) low = -1, high = 1;
        columns.push_back(low + (high - low) * share.select(-1, k));
      }
      if (count > 0) control = torch::stack(columns, -1);
    } else if (control_ != "zero") {
      const std::vector<std::string> names = control_columns(robot);
      control = columns_of(read_csv(control_, names), names).unsqueeze(1);
      if (control.size(0) != 1 && control.size(0) < request.steps) {
        throw UsageError("--control must have a row for each of " + std::to_string(request.steps) +
                         " steps, or one for all; " + control_ + " has " + std::to_string(control.size(0)));
      }
      if (control.size(0) > 1) control = control.narrow(0, 0, request.steps);
    }
    return control.to(request.dtype).expand({request.steps, request.trajectories, count});
  }

  // The columns of slides and hinges, and the free joints, for the figure.
  static nlohmann::json joints_of(const Robot& robot) {
    const std::vector<std::string> labels = labels_of(robot.joints, "joint");
    nlohmann::json joints = nlohmann::json::array();
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const JointKind kind = robot.joints[k].kind;
      joints.push_back({{"name", labels[k]},
                        {"body", robot.joints[k].body},
                        {"kind", kind == JointKind::kFree    ? "free"
                                 : kind == JointKind::kBall  ? "ball"
                                 : kind == JointKind::kSlide ? "slide"
                                                             : "hinge"}});
    }
    return joints;
  }

  // Of the first trajectory, before the first step and after each: of each body the origin and the rotation matrix.
  static Table places_table(const Robot& robot, const Tensor& first, const Tensor& next) {
    Table table{{"step", "body"}, {}};
    for (const std::string& name : kPosition) table.names.push_back(name);
    for (const std::string& row : kPosition) {
      for (const std::string& column : kPosition) table.names.push_back("r_" + row + column);
    }
    const RobotPlaces found = places(with_start(first, next).select(1, 0).to(torch::kDouble), robot);
    const std::int64_t states = next.size(0) + 1, bodies = found.position.size(-2);
    const Tensor of_steps = torch::arange(states, torch::kDouble).view({-1, 1, 1}).expand({-1, bodies, 1});
    const Tensor of_bodies = torch::arange(bodies, torch::kDouble).view({1, -1, 1}).expand({states, -1, 1});
    const Tensor all = torch::cat({of_steps, of_bodies, found.position, found.rotation.flatten(-2)}, -1).flatten(0, 1);
    for (std::int64_t k = 0; k < all.size(1); ++k) table.columns.push_back(entries_of(all.select(1, k)));
    return table;
  }

  // kind: the number of RobotShapeKind.
  static Table shapes_table(const Robot& robot) {
    Table table{{"body", "kind", "size_x", "size_y", "size_z", "x", "y", "z", "q_w", "q_x", "q_y", "q_z"}, {}};
    table.columns.resize(table.names.size());
    for (const RobotShape& shape : shapes_of(robot)) {
      std::vector<double> numbers = {static_cast<double>(shape.body), static_cast<double>(shape.kind)};
      for (const auto& three : {shape.size, shape.center}) numbers.insert(numbers.end(), three.begin(), three.end());
      numbers.insert(numbers.end(), shape.orientation.begin(), shape.orientation.end());
      table.add_row(numbers);
    }
    return table;
  }

  static Table planes_table(const Robot& robot) {
    Table table{{"normal_x", "normal_y", "normal_z", "offset"}, {}};
    table.columns.resize(table.names.size());
    for (std::int64_t k = 0; k < robot.offsets.size(-1); ++k) {
      const Tensor& normal = robot.normals[k];
      table.add_row({normal[0].item<double>(), normal[1].item<double>(), normal[2].item<double>(),
                     robot.offsets[k].item<double>()});
    }
    return table;
  }

  std::filesystem::path file_;
  std::string keyframe_, control_ = "zero";
  double dt_ = 0, spread_ = 0.1;
  RigidOptions options_;
};

}  // namespace

std::unique_ptr<System> make_robot() { return std::make_unique<RobotSystem>(); }

}  // namespace lcp::training
