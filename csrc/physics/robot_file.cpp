#include "lcp/physics/robot_file.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "ops/composite.h"
#include "physics/json_reader.h"
#include "physics/robot_rollout.h"

namespace lcp::physics {

LCP_ENUMERATORS(JointKind, "free", "ball", "slide", "hinge")
LCP_ENUMERATORS(RobotShapeKind, "ball", "capsule", "cylinder", "box", "ellipsoid")

namespace {

constexpr std::int64_t kFileVersion = 1;

// The tensors of a file by their names, which are those of the members.
struct TensorMember {
  std::string_view name;
  at::Tensor Robot::*member;
};
constexpr TensorMember kTensorMembers[] = {
    {"mass", &Robot::mass},
    {"inertia", &Robot::inertia},
    {"axis", &Robot::axis},
    {"center_of_mass", &Robot::center_of_mass},
    {"anchor", &Robot::anchor},
    {"position", &Robot::position},
    {"range", &Robot::range},
    {"orientation", &Robot::orientation},
    {"spring", &Robot::spring},
    {"damping", &Robot::damping},
    {"armature", &Robot::armature},
    {"actuator_force", &Robot::actuator_force},
    {"gear", &Robot::gear},
    {"centers", &Robot::centers},
    {"radii", &Robot::radii},
    {"normals", &Robot::normals},
    {"offsets", &Robot::offsets},
    {"gravity", &Robot::gravity},
    {"mu", &Robot::mu},
    {"qpos0", &Robot::qpos0},
    {"friction_loss", &Robot::friction_loss},
    {"coupling", &Robot::coupling},
    {"closure", &Robot::closure},
    {"closure_orientation", &Robot::closure_orientation},
    {"box_sizes", &Robot::box_sizes},
    {"box_centers", &Robot::box_centers},
    {"box_orientations", &Robot::box_orientations},
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file && !std::filesystem::is_directory(path), path, " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<double> read_numbers(JsonReader& reader) {
  std::vector<double> all;
  reader.array([&] { all.push_back(reader.number()); });
  return all;
}

at::Tensor read_tensor(JsonReader& reader) {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  reader.object({"dtype", "shape", "values"}, [&](const std::string& key) {
    if (key == "dtype") {
      dtype = reader.string();
      if (dtype != "float32" && dtype != "float64") reader.fail("dtype must be float32 or float64; got ", dtype);
    } else if (key == "shape") {
      reader.array([&] {
        shape.push_back(reader.integer());
        if (shape.back() < 0) reader.fail("sizes must be >= 0; got ", shape.back());
      });
    } else {
      values = read_numbers(reader);
    }
  });
  // Floating-point numbers do not overflow, and the limit keeps the sizes of a tensor without numbers from doing so.
  double count = 1, extent = 1;
  for (const std::int64_t size : shape) {
    count *= static_cast<double>(size);
    extent *= static_cast<double>(std::max<std::int64_t>(size, 1));
  }
  if (count != static_cast<double>(values.size()) || extent > 1e15) {
    reader.fail("the shape [", c10::Join(", ", shape), "] does not fit ", values.size(), " values");
  }
  return at::tensor(values, at::kDouble).view(shape).to(dtype == "float32" ? at::kFloat : at::kDouble);
}

template <class Kind>
Kind read_kind(JsonReader& reader) {
  const std::string kind = reader.string();
  const auto& kinds = ops::kInSchema<Kind>;
  const auto* const found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end()) reader.fail("kind must be ", c10::Join(", ", kinds), "; got ", kind);
  return static_cast<Kind>(found - kinds.begin());
}

template <std::size_t size>
std::array<double, size> read_array(JsonReader& reader, const char* what) {
  const std::vector<double> found = read_numbers(reader);
  if (found.size() != size) reader.fail(what, " must be ", size, " numbers; got ", found.size());
  std::array<double, size> all = {};
  std::copy(found.begin(), found.end(), all.begin());
  return all;
}

RobotJoint read_joint(JsonReader& reader) {
  RobotJoint joint = {};
  reader.object({"name", "body", "kind", "has_limits"}, [&](const std::string& key) {
    if (key == "name") {
      joint.name = reader.string();
    } else if (key == "body") {
      joint.body = reader.integer();
    } else if (key == "kind") {
      joint.kind = read_kind<JointKind>(reader);
    } else {
      joint.has_limits = reader.boolean();
    }
  });
  return joint;
}

RobotActuator read_actuator(JsonReader& reader) {
  RobotActuator actuator = {};
  reader.object({"name", "joint", "control_range", "force_range"}, [&](const std::string& key) {
    if (key == "name") {
      actuator.name = reader.string();
    } else if (key == "joint") {
      actuator.joint = reader.integer();
    } else {
      (key == "control_range" ? actuator.control_range : actuator.force_range) = read_array<2>(reader, "a range");
    }
  });
  return actuator;
}

RobotContact read_contact(JsonReader& reader) {
  RobotContact contact = {};
  reader.object({"ball", "plane", "other", "end", "other_end", "box"}, [&](const std::string& key) {
    (key == "ball"        ? contact.ball
     : key == "plane"     ? contact.plane
     : key == "other"     ? contact.other
     : key == "end"       ? contact.end
     : key == "other_end" ? contact.other_end
                          : contact.box) = reader.integer();
  });
  return contact;
}

RobotCoupling read_coupling(JsonReader& reader) {
  RobotCoupling coupling = {};
  reader.object({"joint", "other"},
                [&](const std::string& key) { (key == "joint" ? coupling.joint : coupling.other) = reader.integer(); });
  return coupling;
}

RobotClosure read_closure(JsonReader& reader) {
  RobotClosure closure = {};
  reader.object({"body", "other", "is_weld"}, [&](const std::string& key) {
    if (key == "is_weld") {
      closure.is_weld = reader.boolean();
    } else {
      (key == "body" ? closure.body : closure.other) = reader.integer();
    }
  });
  return closure;
}

RobotKeyframe read_keyframe(JsonReader& reader) {
  RobotKeyframe keyframe;
  reader.object({"name", "qpos", "qvel", "control"}, [&](const std::string& key) {
    if (key == "name") {
      keyframe.name = reader.string();
    } else {
      (key == "qpos"   ? keyframe.state.qpos
       : key == "qvel" ? keyframe.state.qvel
                       : keyframe.control) = at::tensor(read_numbers(reader), at::kDouble);
    }
  });
  return keyframe;
}

RobotShape read_shape(JsonReader& reader) {
  RobotShape shape = {};
  reader.object({"body", "kind", "size", "center", "orientation"}, [&](const std::string& key) {
    if (key == "body") {
      shape.body = reader.integer();
    } else if (key == "kind") {
      shape.kind = read_kind<RobotShapeKind>(reader);
    } else if (key == "orientation") {
      shape.orientation = read_array<4>(reader, "orientation");
    } else {
      (key == "size" ? shape.size : shape.center) = read_array<3>(reader, key.c_str());
    }
  });
  return shape;
}

Robot read_robot(JsonReader& reader) {
  Robot robot;
  const auto read = [&](const std::string& key) {
    if (key == "format") {
      const std::string format = reader.string();
      if (format != "torchlcp robot") reader.fail("format must be torchlcp robot; got ", format);
    } else if (key == "version") {
      const std::int64_t version = reader.integer();
      if (version != kFileVersion) reader.fail("version must be ", kFileVersion, "; got ", version);
    } else if (key == "dt") {
      robot.dt = reader.number();
    } else if (key == "bodies") {
      reader.array([&] {
        reader.object({"name", "parent", "balls"}, [&](const std::string& of_body) {
          if (of_body == "name") {
            robot.body_names.push_back(reader.string());
          } else {
            (of_body == "parent" ? robot.parents : robot.balls).push_back(reader.integer());
          }
        });
      });
    } else if (key == "joints") {
      reader.array([&] { robot.joints.push_back(read_joint(reader)); });
    } else if (key == "actuators") {
      reader.array([&] { robot.actuators.push_back(read_actuator(reader)); });
    } else if (key == "contacts") {
      reader.array([&] { robot.contacts.push_back(read_contact(reader)); });
    } else if (key == "couplings") {
      reader.array([&] { robot.couplings.push_back(read_coupling(reader)); });
    } else if (key == "closures") {
      reader.array([&] { robot.closures.push_back(read_closure(reader)); });
    } else if (key == "keyframes") {
      reader.array([&] { robot.keyframes.push_back(read_keyframe(reader)); });
    } else if (key == "shapes") {
      reader.array([&] { robot.shapes.push_back(read_shape(reader)); });
    } else if (key == "boxes") {
      reader.array([&] { robot.boxes.push_back(reader.integer()); });
    } else {
      std::vector<std::string_view> names;
      for (const TensorMember& tensor : kTensorMembers) names.push_back(tensor.name);
      reader.object(names, [&](const std::string& name) {
        const auto k = std::find(names.begin(), names.end(), name) - names.begin();
        robot.*kTensorMembers[k].member = read_tensor(reader);
      });
    }
  };
  reader.object({"format", "version", "dt", "bodies", "joints", "actuators", "contacts", "couplings", "closures",
                 "boxes", "keyframes", "shapes", "tensors"},
                read);
  reader.end();
  return robot;
}

std::int64_t coordinates(JointKind kind) { return kind == JointKind::kFree ? 7 : kind == JointKind::kBall ? 4 : 1; }
std::int64_t velocities(JointKind kind) { return kind == JointKind::kFree ? 6 : kind == JointKind::kBall ? 3 : 1; }

// Throws where numbers or shapes do not fit each other, as a step of the robot does.
void check_by_a_step(const Robot& robot) {
  // A count that the tensors do not have could be larger than the memory.
  const std::int64_t balls = robot.radii.numel();
  for (const std::int64_t count : robot.balls) {
    TORCH_CHECK(count <= balls, "balls must be at most ", balls, ", the numbers of radii; got ", count);
  }
  std::int64_t nv = 0;
  for (const RobotJoint& joint : robot.joints) nv += velocities(joint.kind);
  simulate({robot.qpos0, at::zeros({nv}, at::kDouble)}, {}, 1, robot);
  for (const RobotKeyframe& keyframe : robot.keyframes) {
    simulate(keyframe.state, {keyframe.control.unsqueeze(0), {}}, 1, robot);
  }
  const auto bodies = std::ssize(robot.parents);
  for (const RobotShape& shape : robot.shapes) {
    TORCH_CHECK(shape.body >= -1 && shape.body < bodies, "shapes must be of bodies from -1 to ", bodies - 1, "; got ",
                shape.body);
  }
}

template <class Items, class NameOf>
std::int64_t index_of(const char* kind, const Items& items, std::string_view name, const NameOf& name_of) {
  std::vector<std::string_view> names;
  for (const auto& item : items) names.emplace_back(std::invoke(name_of, item));
  const auto found = std::find(names.begin(), names.end(), name);
  TORCH_CHECK(found != names.end(), "the robot has no ", kind, " ", name, "; it has ", c10::Join(", ", names));
  return found - names.begin();
}

}  // namespace

Robot load_robot(const std::string& path) {
  const std::string text = contents_of(path);
  JsonReader reader(text, path);
  Robot robot = read_robot(reader);
  try {
    check_by_a_step(robot);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, path, ": ", error.what_without_backtrace());
  }
  return robot;
}

RobotJointPlace joint(const Robot& robot, std::string_view name) {
  const std::int64_t number = index_of("joint", robot.joints, name, &RobotJoint::name);
  RobotJointPlace place = {number, 0, 0, coordinates(robot.joints[number].kind), velocities(robot.joints[number].kind)};
  for (std::int64_t k = 0; k < number; ++k) {
    place.qpos += coordinates(robot.joints[k].kind);
    place.qvel += velocities(robot.joints[k].kind);
  }
  return place;
}

std::int64_t body(const Robot& robot, std::string_view name) {
  return index_of("body", robot.body_names, name, std::identity());
}

std::int64_t actuator(const Robot& robot, std::string_view name) {
  return index_of("actuator", robot.actuators, name, &RobotActuator::name);
}

const RobotKeyframe& keyframe(const Robot& robot, std::string_view name) {
  return robot.keyframes[index_of("keyframe", robot.keyframes, name, &RobotKeyframe::name)];
}

namespace {

// A robot as Python takes it apart for _structure_of_robot, and its names.
struct RobotParts {
  robots::Numbers parents, joints, actuators;
  std::vector<double> ranges;
  robots::Numbers balls, boxes, contacts, couplings, closures;
  std::vector<std::string> body_names, joint_names, actuator_names;
  Tensors numbers;
  at::Tensor qpos0;
  double dt;
  std::vector<std::string> keyframe_names;
  Tensors keyframes;                  // qpos, qvel and control of each
  robots::Numbers shapes;             // body and kind of each
  std::vector<double> shape_numbers;  // size, center and orientation of each
};
LCP_MEMBERS(RobotParts, parents, joints, actuators, ranges, balls, boxes, contacts, couplings, closures, body_names,
            joint_names, actuator_names, numbers, qpos0, dt, keyframe_names, keyframes, shapes, shape_numbers)

RobotParts parts_of_file(const std::string& path) {
  const Robot robot = load_robot(path);
  RobotParts parts = {};
  parts.parents = robot.parents;
  parts.balls = robot.balls;
  parts.boxes = robot.boxes;
  parts.body_names = robot.body_names;
  parts.numbers = robots::numbers_of(robot);
  parts.qpos0 = robot.qpos0;
  parts.dt = robot.dt;
  for (const RobotJoint& joint : robot.joints) {
    parts.joints.insert(parts.joints.end(), {joint.body, static_cast<std::int64_t>(joint.kind), joint.has_limits});
    parts.joint_names.push_back(joint.name);
  }
  for (const RobotActuator& actuator : robot.actuators) {
    parts.actuators.push_back(actuator.joint);
    for (const RobotActuator::Range& range : {actuator.control_range, actuator.force_range}) {
      parts.ranges.insert(parts.ranges.end(), range.begin(), range.end());
    }
    parts.actuator_names.push_back(actuator.name);
  }
  for (const RobotContact& contact : robot.contacts) {
    parts.contacts.insert(parts.contacts.end(),
                          {contact.ball, contact.plane, contact.other, contact.end, contact.other_end, contact.box});
  }
  for (const RobotCoupling& coupling : robot.couplings) {
    parts.couplings.insert(parts.couplings.end(), {coupling.joint, coupling.other});
  }
  for (const RobotClosure& closure : robot.closures) {
    parts.closures.insert(parts.closures.end(), {closure.body, closure.other, closure.is_weld});
  }
  for (const RobotKeyframe& keyframe : robot.keyframes) {
    parts.keyframe_names.push_back(keyframe.name);
    parts.keyframes.insert(parts.keyframes.end(), {keyframe.state.qpos, keyframe.state.qvel, keyframe.control});
  }
  for (const RobotShape& shape : robot.shapes) {
    parts.shapes.insert(parts.shapes.end(), {shape.body, static_cast<std::int64_t>(shape.kind)});
    std::vector<double>& all = parts.shape_numbers;
    for (const auto& three : {shape.size, shape.center}) all.insert(all.end(), three.begin(), three.end());
    all.insert(all.end(), shape.orientation.begin(), shape.orientation.end());
  }
  return parts;
}

LCP_LIBRARY_FRAGMENT(library) { ops::define_plain<parts_of_file>(library, "_load_robot(path)"); }

}  // namespace
}  // namespace lcp::physics
