#include "tosses/protocols.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lcp/physics/rotation.h"

namespace lcp::training::protocols_test {

using torch::Tensor;

constexpr double kSide = 0.1, kRate = 100, kGravity = 9.6;

// A toss that stands still; its positions are (sample, 0, 1).
Toss still(std::int64_t count) {
  Toss toss;
  toss.position = at::zeros({count, 3}, at::kDouble);
  toss.position.select(1, 0).copy_(at::arange(count));
  toss.position.select(1, 2).fill_(1);
  toss.orientation = at::zeros({count, 4}, at::kDouble);
  toss.orientation.select(1, 0).fill_(1);
  toss.velocity = at::zeros({count, 3}, at::kDouble);
  toss.angular_velocity = at::zeros({count, 3}, at::kDouble);
  return toss;
}

TEST(ProtocolsTest, LowestCornerOfACubeOnAFaceAnEdgeAndACorner) {
  const Tensor at_rest = torch::tensor({0., 0., kSide}, at::kDouble);
  const double to_corner = std::acos(1 / std::numbers::sqrt3);
  const double edge = std::numbers::pi / 4, axis = 1 / std::numbers::sqrt2;
  const Tensor turn = torch::tensor({{0., 0., 0.}, {edge, 0., 0.}, {axis * to_corner, -axis * to_corner, 0.}});
  const Tensor found = BodyForm(kSide).lowest_point(at_rest, physics::rotation_by(turn.to(at::kDouble)));
  const Tensor below = kSide / 2 * torch::tensor({1., std::numbers::sqrt2, std::numbers::sqrt3}, at::kDouble);
  EXPECT_TRUE(at::allclose(found, kSide - below, 1e-6, 1e-8)) << found;
}

TEST(ProtocolsTest, WholeTossesBeginAtTheirFirstSample) {
  EXPECT_TRUE(at::equal(whole_tosses({still(10), still(6)}).steps, torch::tensor({9, 5})));
}

TEST(ProtocolsTest, WindowsBeginEveryStrideSamples) {
  const auto found = windows({still(10), still(4), still(5)}, 4, 3);
  ASSERT_TRUE(found);
  EXPECT_TRUE(at::equal(found->start.position.select(-1, 0).squeeze(1), torch::tensor({0., 3., 0.}, at::kDouble)));
  EXPECT_TRUE((found->steps == 4).all().item<bool>());
  EXPECT_FALSE(windows({still(4)}, 4, 3));
}

// The recorded point of a body whose centre of mass moves on a parabola turns about it.
TEST(ProtocolsTest, FromFirstContactFitsTheFlight) {
  const Tensor center = torch::tensor({0.003, -0.002, 0.006}, at::kDouble);
  const Tensor omega = torch::tensor({2., -1., 3.}, at::kDouble), v = torch::tensor({0.5, -0.3, 1.}, at::kDouble);
  const Tensor t = at::arange(30, at::kDouble).unsqueeze(1) / kRate;
  const Tensor g = torch::tensor({0., 0., kGravity}, at::kDouble);
  Toss toss;
  toss.orientation = physics::rotation_by(omega * t);
  const Tensor R = physics::rotation_matrix(toss.orientation);
  const auto in_world = [&](const Tensor& x) { return (R * x).sum(-1); };
  toss.position = torch::tensor({0., 0., 0.15}, at::kDouble) + v * t - 0.5 * g * t.square() + in_world(center);
  toss.velocity = at::full({30, 3}, 7., at::kDouble);  // not used
  toss.angular_velocity = omega.expand({30, 3});
  const Segments found = from_first_contact({toss, still(3)}, kSide, kGravity, center, kRate);
  const Tensor height = toss.position.select(1, 2) - std::numbers::sqrt3 * kSide / 2;
  const std::int64_t k = 29 - found.steps[0].item<std::int64_t>();
  EXPECT_GT(k, 10);
  EXPECT_GT(height[k].item<double>(), 0);
  EXPECT_LE(height[k + 1].item<double>(), 0);
  const Tensor turning = in_world(at::linalg_cross(omega, center));
  EXPECT_TRUE(at::allclose(found.start.position[0][0], toss.position[k], 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(found.start.velocity[0][0], v - g * t[k] + turning[k], 1e-10, 1e-10));
  EXPECT_TRUE(at::allclose(found.start.angular_velocity[0][0], omega));
  // A flight of fewer than four samples keeps what was measured.
  EXPECT_TRUE(at::equal(found.start.velocity[1], at::zeros({1, 3}, at::kDouble)));
}

TEST(ProtocolsTest, ErrorsAreMeansOverTheStepsThatExist) {
  const Segments measured =
      identification::RecordingSet(recordings_of({still(6)})).pieces(torch::tensor({0, 0}), torch::tensor({0, 3}), 4);
  Tensor position = measured.measured.position.squeeze(2).clone();
  position.select(-1, 1).add_(torch::tensor({0.01, 0.02}, at::kDouble));
  position.select(1, 1).select(-1, 2).fill_(0.03);
  position.narrow(0, 2, 2).select(1, 1).fill_(1e9);  // beyond the end of the second
  const Tensor turned = physics::turned(measured.measured.orientation, torch::tensor({0., 0., 0.3}, at::kDouble));
  const TossErrors found = mean_errors(measured, step_errors(measured, {position.unsqueeze(2), turned, {}, {}}, kSide));
  const double second = std::hypot(0.02, 0.97);
  EXPECT_TRUE(at::allclose(found.position, torch::tensor({0.01, second}, at::kDouble)));
  EXPECT_TRUE(at::allclose(found.rotation, torch::tensor({0.3, 0.3}, at::kDouble)));
  EXPECT_TRUE(at::allclose(found.penetration, torch::tensor({0., 0.02}, at::kDouble)));
  const nlohmann::json summary = summary_of(found, kSide);
  EXPECT_NEAR(summary["position_error_m"].get<double>(), (0.01 + second) / 2, 1e-12);
  EXPECT_NEAR(summary["position_error_percent"].get<double>(), 1000 * (0.01 + second) / 2, 1e-9);
  EXPECT_NEAR(summary["position_error_m_std"].get<double>(), (second - 0.01) / std::numbers::sqrt2, 1e-12);
  EXPECT_NEAR(summary["rotation_error_deg"].get<double>(), 0.3 * 180 / std::numbers::pi, 1e-9);
  EXPECT_NEAR(summary["penetration_percent"].get<double>(), 10, 1e-9);
}

}  // namespace lcp::training::protocols_test
