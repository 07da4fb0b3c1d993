#include "lcp/physics/robot_file.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace lcp::physics {
namespace {

// A ball of 1 kg on a slide above the ground, and a rod on a hinge, as Python writes them.
constexpr std::string_view kText = R"({"format": "torchlcp robot",
 "version": 1,
 "dt": 0.01,
 "bodies": [
  {"name": "ball", "parent": -1, "balls": 1},
  {"name": "rod", "parent": 0, "balls": 0}],
 "joints": [
  {"name": "rail", "body": 0, "kind": "slide", "has_limits": false},
  {"name": "pivot", "body": 1, "kind": "hinge", "has_limits": true}],
 "actuators": [
  {"name": "motor", "joint": 1, "control_range": [-Infinity, Infinity], "force_range": [-2.0, 3e0]}],
 "contacts": [
  {"ball": 0, "plane": 0, "other": -1, "end": -1, "other_end": -1, "box": -1},
  {"ball": 0, "plane": -1, "other": -1, "end": -1, "other_end": -1, "box": 0}],
 "couplings": [], "closures": [],
 "boxes": [1],
 "tensors": {
  "mass": {"dtype": "float64", "shape": [2], "values": [1.0, 0.5]},
  "inertia": {"dtype": "float64", "shape": [2, 3, 3], "values": [1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 2, 0, 0, 0, 2]},
  "center_of_mass": {"dtype": "float64", "shape": [2, 3], "values": [0.0, 0.0, 0.0, 0.0, 0.0, -0.5]},
  "position": {"dtype": "float32", "shape": [2, 3], "values": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]},
  "orientation": {"dtype": "float64", "shape": [2, 4], "values": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]},
  "axis": {"dtype": "float64", "shape": [2, 3], "values": [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]},
  "anchor": {"dtype": "float64", "shape": [2, 3], "values": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]},
  "range": {"dtype": "float64", "shape": [2, 2], "values": [0.0, 0.0, -1.0, 1.0]},
  "spring": {"dtype": "float64", "shape": [2, 2], "values": [0.0, 0.0, 0.0, 0.0]},
  "damping": {"dtype": "float64", "shape": [2], "values": [0.0, 0.0]},
  "armature": {"dtype": "float64", "shape": [2], "values": [0.0, 0.0]},
  "gear": {"dtype": "float64", "shape": [1], "values": [1.0]},
  "actuator_force": {"dtype": "float64", "shape": [1, 4], "values": [1.0, 0.0, 0.0, 0.0]},
  "centers": {"dtype": "float64", "shape": [1, 3], "values": [0.0, 0.0, 0.0]},
  "radii": {"dtype": "float64", "shape": [1], "values": [0.5]},
  "normals": {"dtype": "float64", "shape": [1, 3], "values": [0.0, 0.0, 1.0]},
  "offsets": {"dtype": "float64", "shape": [1], "values": [0.0]},
  "mu": {"dtype": "float64", "shape": [2], "values": [Infinity, 0.5]},
  "gravity": {"dtype": "float64", "shape": [3], "values": [0.0, 0.0, -9.81]},
  "qpos0": {"dtype": "float64", "shape": [2], "values": [-0.25, 0.5]},
  "friction_loss": {"dtype": "float64", "shape": [2], "values": [0.0, 0.1]},
  "coupling": {"dtype": "float64", "shape": [0, 5], "values": []},
  "closure": {"dtype": "float64", "shape": [0, 2, 3], "values": []},
  "closure_orientation": {"dtype": "float64", "shape": [0, 4], "values": []},
  "box_sizes": {"dtype": "float64", "shape": [1, 3], "values": [0.1, 0.1, 0.1]},
  "box_centers": {"dtype": "float64", "shape": [1, 3], "values": [9.0, 0.0, 0.0]},
  "box_orientations": {"dtype": "float64", "shape": [1, 4], "values": [1.0, 0.0, 0.0, 0.0]}},
 "keyframes": [{"name": "up", "qpos": [0.5, 1], "qvel": [0, 2.0], "control": [3]}],
 "shapes": [{"body": -1, "kind": "capsule", "size": [0.1, 0.5, 0], "center": [1, 2, 3],
  "orientation": [0, 0, 1, 0]}]}
)";

class RobotFileTest : public testing::Test {
 protected:
  ~RobotFileTest() override { std::filesystem::remove(path_); }

  Robot load(std::string_view text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return load_robot(path_);
  }

  static std::string with(std::string_view part, std::string_view other) {
    std::string text(kText);
    const std::size_t place = text.find(part);
    EXPECT_NE(place, std::string::npos) << part;
    return text.replace(place, part.size(), other);
  }

  // What the error says behind the path of the file.
  std::string message_of(const std::string& text) const {
    try {
      load(text);
    } catch (const c10::Error& error) {
      const std::string message = error.what_without_backtrace();
      EXPECT_TRUE(message.starts_with(path_)) << message;
      return message.substr(std::min(message.size(), path_.size()));
    }
    return "no error";
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("torchlcp_robot_file_test_" + std::to_string(::getpid()));
};

TEST_F(RobotFileTest, ReadsWhatIsThere) {
  const Robot robot = load(kText);
  EXPECT_EQ(robot.parents, (std::vector<std::int64_t>{-1, 0}));
  EXPECT_EQ(robot.balls, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(robot.body_names, (std::vector<std::string>{"ball", "rod"}));
  ASSERT_EQ(robot.joints.size(), 2);
  EXPECT_EQ(robot.joints[1].body, 1);
  EXPECT_EQ(robot.joints[1].kind, JointKind::kHinge);
  EXPECT_TRUE(robot.joints[1].has_limits && !robot.joints[0].has_limits);
  ASSERT_EQ(robot.actuators.size(), 1);
  EXPECT_EQ(robot.actuators[0].joint, 1);
  EXPECT_EQ(robot.actuators[0].control_range, RobotActuator::kUnlimited);
  EXPECT_EQ(robot.actuators[0].force_range, (RobotActuator::Range{-2, 3}));
  ASSERT_EQ(robot.contacts.size(), 2);
  EXPECT_EQ(robot.contacts[0].plane, 0);
  EXPECT_EQ(robot.contacts[0].other, RobotContact::kNone);
  EXPECT_EQ(robot.contacts[1].box, 0);
  EXPECT_EQ(robot.boxes, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(robot.friction_loss[1].item<double>(), 0.1);
  EXPECT_EQ(keyframe(robot, "up").state.qvel[1].item<double>(), 2);
  EXPECT_EQ(keyframe(robot, "up").control.item<double>(), 3);
  EXPECT_THROW(keyframe(robot, "down"), c10::Error);
  ASSERT_EQ(robot.shapes.size(), 1);
  EXPECT_EQ(robot.shapes[0].kind, RobotShapeKind::kCapsule);
  EXPECT_EQ(robot.shapes[0].size[1], 0.5);
  EXPECT_EQ(robot.shapes[0].center[2], 3);
  EXPECT_EQ(robot.shapes[0].orientation[2], 1);
  EXPECT_EQ(robot.dt, 0.01);
  EXPECT_EQ(robot.position.scalar_type(), at::kFloat);
  EXPECT_EQ(robot.inertia[1][2][2].item<double>(), 2);
  EXPECT_EQ(robot.mu[0].item<double>(), std::numeric_limits<double>::infinity());

  const RobotJointPlace pivot = joint(robot, "pivot");
  EXPECT_EQ(pivot.number, 1);
  EXPECT_EQ(pivot.qpos, 1);
  EXPECT_EQ(pivot.nv, 1);
  EXPECT_EQ(body(robot, "rod"), 1);
  EXPECT_EQ(actuator(robot, "motor"), 0);
  EXPECT_THROW(joint(robot, "elbow"), c10::Error);

  const RobotState start = default_state(robot);
  EXPECT_TRUE(start.qpos.equal(torch::tensor({-0.25, 0.5}, at::kDouble)) && start.qvel.numel() == 2) << start.qpos;
  const RobotSolution rollout = simulate(start, {}, 100, robot);
  EXPECT_TRUE(rollout.status.eq(0).all().item<bool>());
  EXPECT_NEAR(rollout.next.qpos[-1][0].item<double>(), -0.5, 1e-12);  // the ball lies on the ground
}

TEST_F(RobotFileTest, NamesAreAnyText) {
  const auto name_in = [&](std::string_view quoted) { return load(with("\"rod\"", quoted)).body_names[1]; };
  EXPECT_EQ(name_in("\"Fu\xC3\x9F \xE2\x82\xAC \xF0\x9D\x84\x9E\""), "Fu\xC3\x9F \xE2\x82\xAC \xF0\x9D\x84\x9E");
  EXPECT_EQ(name_in(R"("\"\\\/\b\f\n\r\t\u0041\u00df\u20AC")"), "\"\\/\b\f\n\r\tA\xC3\x9F\xE2\x82\xAC");
  for (const char* wrong : {"\"\xFF\"", "\"\xC0\x80\"", "\"\xE0\x80\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"",
                            "\"\xF0\x80\x80\x80\"", "\"\xC3\""}) {
    EXPECT_EQ(message_of(with("\"rod\"", wrong)), " line 6: a string must be UTF-8");
  }
  EXPECT_EQ(message_of(with("\"rod\"", R"("\ud834")")),
            " line 6: characters beyond U+FFFF must be UTF-8, without escapes");
  EXPECT_EQ(message_of(with("\"rod\"", R"("\u12g4")")), " line 6: expected u and four digits");
  EXPECT_EQ(message_of(with("\"rod\"", R"("\x")")), " line 6: expected an escape of JSON; got x");
  EXPECT_EQ(message_of(with("\"rod\"", "\"rod\n\"")), " line 6: a string must end on its line");
}

TEST_F(RobotFileTest, WhatIsWrongIsNamedWithItsLine) {
  struct Fault {
    std::string_view part, other, message;
  };
  for (const Fault& fault : {
           Fault{"torchlcp robot", "robot", " line 1: format must be torchlcp robot; got robot"},
           Fault{"\"version\": 1", "\"version\": 2", " line 2: version must be 1; got 2"},
           Fault{"\"version\": 1", "\"version\": 1.5", " line 2: expected an integer; got 1.5"},
           Fault{"0.01", "-inf", " line 3: expected a number; got -inf"},
           Fault{"0.01", "1e999", " line 3: expected a number; got 1e999"},
           Fault{"0.01", "-", " line 3: expected a number; got -"},
           Fault{"0.01", "-0.01", ": dt must be > 0; got -0.01"},
           Fault{"\"dt\"", "\"step\"",
                 " line 3: unexpected step; what may follow is dt, bodies, joints, actuators, contacts, "
                 "couplings, closures, boxes, keyframes, shapes, tensors"},
           Fault{"\"parent\": -1", "\"parent\": -1, \"parent\": 0",
                 " line 5: unexpected parent; what may follow is balls"},
           Fault{", \"balls\": 1", "", " line 5: balls is missing"},
           Fault{"\"balls\": 1", "\"balls\": 1000000000000",
                 ": balls must be at most 1, the numbers of radii; got "
                 "1000000000000"},
           Fault{"slide", "screw", " line 8: kind must be free, ball, slide, hinge; got screw"},
           Fault{"false", "0", " line 8: expected true or false; got 0"},
           Fault{"[-2.0, 3e0]", "[-2.0]", " line 11: a range must be 2 numbers; got 1"},
           Fault{"float64", "int64", " line 18: dtype must be float32 or float64; got int64"},
           Fault{"[2]", "[3]", " line 18: the shape [3] does not fit 2 values"},
           Fault{"[2]", "[-2]", " line 18: sizes must be >= 0; got -2"},
           Fault{"[1.0, 0.5]", "[[1.0], 0.5]", " line 18: expected a number or a word; got ["},
           Fault{"[2], \"values\": [1.0, 0.5]", "[0, 9000000000000000000, 9000000000000000000], \"values\": []",
                 " line 18: the shape [0, 9000000000000000000, 9000000000000000000] does not fit 0 values"},
           Fault{"{\"format\"", "[\"format\"", " line 1: expected {; got ["},
           Fault{"1, 0]}]}", "1, 0]}]} {", " line 47: expected the end of the file; got {"},
           Fault{"[0, 0, 1, 0]", "[0, 0, 1]", " line 47: orientation must be 4 numbers; got 3"},
           Fault{"capsule", "cone", " line 46: kind must be ball, capsule, cylinder, box, ellipsoid; got cone"},
           Fault{"\"body\": -1", "\"body\": 2", ": shapes must be of bodies from -1 to 1; got 2"},
           Fault{"[0.5, 1]", "[0.5]", ": qpos must be [..., 2]; got [1]"},
       }) {
    EXPECT_EQ(message_of(with(fault.part, fault.other)), fault.message);
  }
  EXPECT_EQ(message_of(""), " line 1: expected {; the file ends");
  const std::string shape = message_of(with("\"gear\": {\"dtype\": \"float64\", \"shape\": [1], \"values\": [1.0]}",
                                            "\"gear\": {\"dtype\": \"float64\", \"shape\": [0], \"values\": []}"));
  EXPECT_NE(shape.find(": gear must be floating-point numbers [..., 1]; got"), std::string::npos) << shape;
  const std::string position =
      message_of(with("\"float32\", \"shape\": [2, 3], \"values\": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]",
                      "\"float32\", \"shape\": [], \"values\": [1.0]"));
  EXPECT_EQ(position, ": position must be floating-point numbers [..., 2, 3]; got Float []");
  std::filesystem::remove(path_);
  EXPECT_THROW(load_robot(path_), c10::Error);
  EXPECT_THROW(load_robot(std::filesystem::temp_directory_path()), c10::Error);
}

// Neither a file that ends early nor one with a wrong byte does more than throw.
TEST_F(RobotFileTest, DamagedFilesAreErrorsAtMost) {
  constexpr std::string_view kWrong("9-\",]\0\xFF", 7);
  std::size_t errors = 0;
  for (std::size_t k = 0; k + 2 < kText.size(); k += 3) {
    EXPECT_NE(message_of(std::string(kText.substr(0, k))), "no error") << k;
    std::string text(kText);
    text[k] = kWrong[k % kWrong.size()];
    errors += message_of(text) != "no error" ? 1 : 0;
  }
  EXPECT_GT(errors, kText.size() / 6);
}

}  // namespace
}  // namespace lcp::physics
