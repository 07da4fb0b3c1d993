#include "tosses/cube_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run/error.h"
#include "support/cube_throw.h"
#include "support/finite_differences.h"

namespace lcp::training::cube_model_test {

using torch::Tensor;

constexpr double kRate = 148;
constexpr std::int64_t kSteps = 10;

Cube some_cube() {
  CubeFlags flags;
  flags.restitution = 0.3;
  flags.rounding = 0.004;
  flags.center = {0.002, -0.001, 0.004};
  flags.height = 0.001;
  flags.tilt_x = 0.01;
  flags.dissipation = 0.05;
  return flags.cube();
}

std::string refusal(const std::vector<std::string>& learned, const std::string& contact = "exact_cone") {
  try {
    CubeModel(CubeFlags().cube(), {.name = contact}, kRate, learned);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CubeModelTest, BeginsAtTheStartAndTakesOtherValues) {
  const Cube start = some_cube();
  for (const auto& [contact, learned] :
       {std::pair<std::string, std::vector<std::string>>(
            "exact_cone", {"mu", "restitution", "side", "center", "rounding", "inertia_axes", "height", "tilt"}),
        {"exact_cone", {"corners", "inertia"}},
        {"compliant", {"stiffness", "dissipation"}}}) {
    CubeModel model(start, {.name = contact}, kRate, learned);
    const Cube same = model.cube();
    EXPECT_TRUE(at::allclose(same.corners, start.corners, 1e-14, 1e-16));
    EXPECT_TRUE(at::allclose(same.inertia, start.inertia, 1e-14));
    EXPECT_TRUE(at::allclose(same.mu, start.mu, 1e-14) && at::allclose(same.restitution, start.restitution, 1e-14));
    EXPECT_TRUE(at::equal(same.center, start.center) && at::equal(same.tilt, start.tilt));
    EXPECT_TRUE(at::equal(same.height, start.height) && at::equal(same.rounding, start.rounding));
    EXPECT_TRUE(at::equal(same.stiffness, start.stiffness) && at::equal(same.dissipation, start.dissipation));
    const Tensor numbers = 0.3 * at::arange(model.raw.numel(), at::kDouble).cos(), other = model.values_at(numbers);
    EXPECT_GT((other - model.values()).abs().min().item<double>(), 0);
    EXPECT_TRUE(at::allclose(model.motion().numbers_of(other), numbers, 1e-10, 1e-10)) << contact;
  }
}

TEST(CubeModelTest, NamesSayWhatIsLearned) {
  const CubeModel model(CubeFlags().cube(), {}, kRate, {"tilt", "corners", "mu"});
  ASSERT_EQ(model.names().size(), 27u);
  EXPECT_EQ(model.names().front(), "mu");
  EXPECT_EQ(model.names()[6], "corner_1_z");
  EXPECT_EQ(model.names().back(), "tilt_y");
  EXPECT_EQ(refusal({"side", "corners"}), "--learn: either side or corners, not both");
  EXPECT_EQ(refusal({"inertia", "inertia_axes"}), "--learn: either inertia or inertia_axes, not both");
  EXPECT_EQ(refusal({"dissipation"}), "--learn: dissipation is of --contact compliant");
  EXPECT_EQ(refusal({"restitution"}, "compliant"), "--learn: compliant contact has no restitution");
  EXPECT_EQ(refusal({"rounding"}), "--learn: rounding must begin with a value > 0");
}

TEST(CubeModelTest, CornersAreNoRounderThanABall) {
  CubeFlags flags;
  flags.rounding = 0.0525;
  EXPECT_THROW(flags.cube(), UsageError);
  flags.rounding = flags.side / 2;
  EXPECT_EQ(flags.cube().rounding.item<double>(), flags.side / 2);
}

// Every parameter that can be learned has the derivative of the motion that differences find, and most have an effect.
TEST(CubeModelTest, GradientsAreThoseOfDifferences) {
  using Names = std::vector<std::string>;
  const Names axes = {"mu", "restitution", "side", "center", "rounding", "inertia_axes", "height", "tilt"};
  const Names corners = {"corners", "inertia"};
  const Names compliant = {"mu", "side", "rounding", "inertia", "height", "tilt", "stiffness", "dissipation"};
  for (const auto& [contact, learned, blind] : {std::tuple("exact_cone", axes, 0),
                                                {"exact_cone", corners, 20},
                                                {"polyhedral", axes, 0},
                                                {"compliant", compliant, 0}}) {
    CubeModel model(some_cube(), {.name = contact, .substeps = 1}, kRate, learned);
    const Tensor at = 0.1 * at::arange(model.raw.numel(), at::kDouble).sin();
    const testing::Function motion = [&](const testing::Inputs& raw) {
      model.raw = raw[0];
      const physics::RigidSolution found = model.roll_out(low_throws(), kSteps);
      EXPECT_TRUE((found.status == 0).all().item<bool>()) << contact;
      return 100 * at::cat({found.next.position[-1], found.next.velocity[-1], found.next.orientation[-1]}, -1);
    };
    EXPECT_LT(testing::gradient_error(motion, {at}), 2e-5) << contact;
    const Tensor leaf = at.clone().requires_grad_();
    const Tensor gradient = torch::autograd::grad({motion({leaf}).sum()}, {leaf})[0];
    EXPECT_LE((gradient == 0).sum().item<std::int64_t>(), blind) << contact;
  }
}

}  // namespace lcp::training::cube_model_test
