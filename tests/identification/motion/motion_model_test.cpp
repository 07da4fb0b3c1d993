#include "lcp/identification/motion_model.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "lcp/physics/rotation.h"
#include "support/errors.h"
#include "support/finite_differences.h"

namespace lcp::identification::motion_model_test {

using physics::Plane;
using physics::RigidBody;
using physics::RigidFormulation;
using physics::RigidOptions;
using physics::RigidScene;
using physics::RigidState;
using torch::Tensor;

const auto kDouble = torch::kDouble;

RigidScene box_scene() {
  RigidBody box = RigidBody::box(0.5, {0.1, 0.12, 0.08});
  box.drag = torch::tensor(0.02, kDouble);
  box.radii = box.radii + 0.002;
  RigidScene scene{{box},
                   {Plane::inclined()},
                   0.01,
                   torch::tensor({0., 0., -9.8}, kDouble),
                   torch::tensor({0.3}, kDouble),
                   torch::tensor({0.2}, kDouble)};
  scene.stiffness = torch::tensor({2000.}, kDouble);
  scene.dissipation = torch::tensor({0.05}, kDouble);
  return scene;
}

const std::vector<std::string> kAll = {"mu",
                                       "restitution",
                                       "stiffness",
                                       "dissipation",
                                       "gravity",
                                       "length",
                                       "bodies[0].mass",
                                       "bodies[0].inertia",
                                       "bodies[0].drag",
                                       "bodies[0].centers",
                                       "bodies[0].radii",
                                       "bodies[0].size",
                                       "bodies[0].point",
                                       "planes[0].height",
                                       "planes[0].tilt"};

// Just above the plane, turned, and fast enough to hit it within some steps.
RigidState low_throws() {
  return {torch::tensor({{{0., 0., 0.08}}, {{0.1, 0., 0.09}}}, kDouble),
          torch::tensor({{{0.95, 0.2, 0.1, 0.2}}, {{0.9, -0.1, 0.3, 0.3}}}, kDouble),
          torch::tensor({{{0.8, 0.3, -1.2}}, {{-0.5, 0.6, -1.}}}, kDouble),
          torch::tensor({{{3., -2., 1.}}, {{-1., 4., 2.}}}, kDouble)};
}

Tensor some_numbers(const MotionModel& model) { return 0.1 * torch::arange(model.numbers(), kDouble).sin(); }

std::string refusal(const std::vector<std::string>& names, RigidScene scene = box_scene()) {
  return testing::error_of([&] { motion_model(scene, names); });
}

TEST(MotionModelTest, BeginsAtTheScene) {
  const RigidScene scene = box_scene();
  const MotionModel model = motion_model(scene, kAll, {.substeps = 2});
  const MotionScene at = model.scene_of(model.values_at(torch::zeros({model.numbers()}, kDouble)));
  const RigidBody &body = at.scene.bodies[0], &given = scene.bodies[0];
  for (const auto& [found, expected] : {std::pair(body.mass, given.mass),
                                        {body.inertia, given.inertia},
                                        {body.centers, given.centers},
                                        {body.radii, given.radii},
                                        {body.drag, given.drag},
                                        {at.scene.mu, scene.mu},
                                        {at.scene.restitution, scene.restitution},
                                        {at.scene.stiffness, scene.stiffness},
                                        {at.scene.dissipation, scene.dissipation},
                                        {at.scene.gravity, scene.gravity},
                                        {at.scene.planes[0].normal, scene.planes[0].normal},
                                        {at.scene.planes[0].offset, scene.planes[0].offset}}) {
    EXPECT_TRUE(at::allclose(found, expected, 1e-13, 1e-15));
  }
  EXPECT_EQ(at.points.abs().max().item<double>(), 0);
  EXPECT_EQ(at.length.item<double>(), 1);
  EXPECT_EQ(at.scene.dt, 0.005);
  EXPECT_EQ(model.finer().scene_of(model.values_at(torch::zeros({model.numbers()}, kDouble))).scene.dt, 0.0025);
}

TEST(MotionModelTest, NumbersAndValuesAreInverse) {
  const MotionModel model = motion_model(box_scene(), kAll);
  const Tensor numbers = 3 * some_numbers(model), values = model.values_at(numbers);
  EXPECT_EQ(values.size(0), static_cast<std::int64_t>(model.value_names().size()));
  EXPECT_EQ(values.size(0), model.numbers() + 3);  // a symmetric matrix has 6 numbers and 9 values
  EXPECT_TRUE(at::allclose(model.numbers_of(values), numbers, 1e-10, 1e-10));
  const Tensor inertia = model.scene_of(values).scene.bodies[0].inertia;
  EXPECT_TRUE(at::allclose(inertia, inertia.t(), 1e-12, 0));
  EXPECT_GT(std::get<0>(at::linalg_eigh(inertia)).min().item<double>(), 0);
  // Rows of numbers are rows of values.
  const Tensor rows = at::stack({numbers, -numbers});
  EXPECT_TRUE(at::allclose(model.values_at(rows)[1], model.values_at(-numbers), 1e-13, 0));
}

TEST(MotionModelTest, NamesSayWhichValue) {
  const MotionModel model = motion_model(box_scene(), {"planes[0].tilt", "mu", "bodies[0].inertia", "gravity"});
  const std::vector<std::string> names = model.value_names();
  EXPECT_EQ(names[1], "planes[0].tilt[1]");
  EXPECT_EQ(names[2], "mu[0]");
  EXPECT_EQ(names[8], "bodies[0].inertia[1][2]");
  EXPECT_EQ(names.back(), "gravity");
}

TEST(MotionModelTest, ParametersHaveTheirMeaning) {
  const MotionModel model =
      motion_model(box_scene(), {"bodies[0].size", "bodies[0].radius", "bodies[0].point", "bodies[0].moments",
                                 "planes[0].tilt", "planes[0].height", "gravity"});
  const Tensor values = torch::tensor({1.1, 0.004, 0.01, 0., -0.02, 1e-3, 2e-3, 3e-3, 0.1, -0.05, 0.003, 9.6}, kDouble);
  const MotionScene at = model.scene_of(values);
  const RigidBody& body = at.scene.bodies[0];
  const Tensor point = torch::tensor({0.01, 0., -0.02}, kDouble);
  EXPECT_TRUE(at::allclose(body.centers, 1.1 * box_scene().bodies[0].centers + point, 1e-13, 1e-16));
  EXPECT_TRUE(at::allclose(body.radii, torch::full({8}, 0.004, kDouble)));
  EXPECT_TRUE(at::allclose(body.inertia, at::diag(torch::tensor({1e-3, 2e-3, 3e-3}, kDouble))));
  EXPECT_TRUE(at::allclose(at.points, point.unsqueeze(0)));
  EXPECT_TRUE(at::allclose(at.scene.gravity, torch::tensor({0., 0., -9.6}, kDouble)));
  // The plane is z = .003 + .1 x - .05 y.
  const Tensor place = torch::tensor({0.3, -0.2, 0.003 + 0.03 + 0.01}, kDouble);
  const Plane& plane = at.scene.planes[0];
  EXPECT_NEAR((plane.normal * place).sum().item<double>(), plane.offset.item<double>(), 1e-15);
  EXPECT_NEAR(plane.normal.norm().item<double>(), 1, 1e-15);

  // The axes of the moments are those of the scene's inertia.
  RigidScene turned = box_scene();
  const Tensor R = at::linalg_matrix_exp(torch::tensor({{0., -0.3, 0.2}, {0.3, 0., -0.1}, {-0.2, 0.1, 0.}}, kDouble));
  turned.bodies[0].inertia = R.matmul(at::diag(torch::tensor({1e-3, 2e-3, 3e-3}, kDouble))).matmul(R.t());
  const MotionModel moments = motion_model(turned, {"bodies[0].moments"});
  const Tensor inertia = moments.scene_of(torch::tensor({1e-3, 4e-3, 3e-3}, kDouble)).scene.bodies[0].inertia;
  EXPECT_TRUE(at::allclose(inertia, R.matmul(at::diag(torch::tensor({1e-3, 4e-3, 3e-3}, kDouble))).matmul(R.t()), 1e-10,
                           1e-16));
}

TEST(MotionModelTest, RecordedPointsAndUnitsOfLength) {
  const MotionModel model = motion_model(box_scene(), {"bodies[0].point", "length"});
  const Tensor point = torch::tensor({{0.02, -0.01, 0.03}}, kDouble);
  const Tensor values = at::cat({point[0], torch::tensor({2.}, kDouble)});
  RigidScene scene = box_scene();
  scene.bodies[0].centers = scene.bodies[0].centers + point;
  const RigidState first = low_throws();
  const auto expected = physics::simulate(first, torch::zeros({15, 1, 6}, kDouble), scene).next;
  // Recorded are the points, in units of 2 m.
  RigidState start = motion_of_points(first, point);
  start.position = start.position / 2;
  start.velocity = start.velocity / 2;
  const auto found = model.roll_out(values, start, 15).next;
  const RigidState seen = motion_of_points(expected, point);
  EXPECT_TRUE(at::allclose(found.position, seen.position / 2, 1e-9, 1e-12));
  EXPECT_TRUE(at::allclose(found.velocity, seen.velocity / 2, 1e-9, 1e-9));
  EXPECT_TRUE(at::allclose(found.orientation, seen.orientation, 1e-9, 1e-10));

  // The velocity of a point is the derivative of its position.
  const double h = 1e-6;
  RigidState later = first;
  later.position = first.position + h * first.velocity;
  later.orientation = physics::turned(first.orientation, h * first.angular_velocity);
  const Tensor moved = (motion_of_points(later, point).position - motion_of_points(first, point).position) / h;
  EXPECT_TRUE(at::allclose(moved, motion_of_points(first, point).velocity, 0, 1e-6));
}

// Every parameter has the derivatives of the motion that differences find, for each formulation.
TEST(MotionModelTest, DerivativesAreThoseOfDifferences) {
  for (const RigidFormulation formulation :
       {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral, RigidFormulation::kCompliant}) {
    RigidOptions options;
    options.formulation = formulation;
    options.directions.count = 8;
    const MotionModel model = motion_model(box_scene(), kAll, options);
    const testing::Function motion = [&](const testing::Inputs& x) {
      const auto found = model.roll_out(model.values_at(x[0]), low_throws(), 10);
      EXPECT_TRUE((found.status == 0).all().item<bool>());
      return 100 * at::cat({found.next.position[-1], found.next.velocity[-1], found.next.orientation[-1]}, -1);
    };
    EXPECT_LT(testing::gradient_error(motion, {some_numbers(model)}), 3e-5);
  }
}

TEST(MotionModelTest, SecondDerivativesAreThoseOfDifferences) {
  const MotionModel model =
      motion_model(box_scene(), {"mu", "restitution", "bodies[0].inertia", "bodies[0].point", "planes[0].tilt"});
  const testing::Function motion = [&](const testing::Inputs& x) {
    return model.roll_out(model.values_at(x[0]), low_throws(), 6).next.position[-1];
  };
  EXPECT_LT(testing::second_gradient_error(motion, {some_numbers(model)}), 1e-4);
}

TEST(MotionModelTest, MistakesAreNamed) {
  const auto names = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  names(refusal({"mass"}), "parameters must name mu, restitution");
  names(refusal({"mass"}), "got mass");
  names(refusal({"bodies[1].mass"}), "one of the 1 bodies of the scene; got bodies[1].mass");
  names(refusal({"bodies[x].mass"}), "got bodies[x].mass");
  names(refusal({"bodies[0].weight"}), "got bodies[0].weight");
  names(refusal({"planes[0].mu"}), "got planes[0].mu");
  names(refusal({"mu", "mu"}), "once; got mu twice");
  names(refusal({"bodies[0].inertia", "bodies[0].moments"}), "bodies[0].inertia or .moments, not both");
  names(refusal({"bodies[0].radii", "bodies[0].radius"}), "bodies[0].radii or .radius, not both");
  RigidScene scene = box_scene();
  scene.mu = torch::zeros({1}, kDouble);
  scene.stiffness = Tensor();
  names(refusal({"mu"}, scene), "mu must begin with a value > 0");
  names(refusal({"stiffness"}, scene), "stiffness must be [c] or [1] in the scene; got none");
  scene.bodies[0].drag = Tensor();
  names(refusal({"bodies[0].drag"}, scene), "bodies[0].drag must have 0 dimensions in the scene; got none");
  const auto with = [](const Tensor& start, MotionRange range) {
    return testing::error_of([&] { MotionModel({{"x", start, range}}, nullptr); });
  };
  names(with(torch::tensor({1.5}, kDouble), MotionRange::kShare), "x must begin from 0 to 1");
  names(with(torch::tensor({{1., 2.}, {2., 1.}}, kDouble), MotionRange::kPositiveDefinite),
        "x must begin with a positive definite matrix");
  names(with(torch::tensor({{1., 2.}, {0., 1.}}, kDouble), MotionRange::kPositiveDefinite),
        "x must begin with a symmetric matrix");
  names(with(torch::tensor({NAN}, kDouble), MotionRange::kAny), "x must begin with finite numbers");
}

}  // namespace lcp::identification::motion_model_test
