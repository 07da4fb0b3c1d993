#include "lcp/identification/motion_windows.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lcp/physics/rotation.h"
#include "support/errors.h"

namespace lcp::identification::motion_windows_test {

using physics::RigidState;
using torch::Tensor;

constexpr double kJump = 0.2, kNaN = std::numeric_limits<double>::quiet_NaN();
const auto kDouble = torch::kDouble;
const MotionWindowsOptions kOptions{.jump = kJump, .position_unit = 0.012, .rotation_unit = 0.27};

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(0); }

// A recording of bodies at rest whose velocity jumps after each of these samples; positions are (sample, body, 1).
Recording with_jumps(std::int64_t count, const std::vector<std::int64_t>& jumps, std::int64_t bodies = 1) {
  Recording all{torch::ones({count, bodies, 3}, kDouble),
                torch::tensor({1., 0., 0., 0.}, kDouble).repeat({count, bodies, 1}),
                torch::zeros({count, bodies, 3}, kDouble), torch::zeros({count, bodies, 3}, kDouble)};
  all.position.select(2, 0).copy_(torch::arange(count).unsqueeze(1));
  all.position.select(2, 1).copy_(torch::arange(bodies));
  for (const std::int64_t k : jumps) all.velocity.slice(0, k + 1).select(1, bodies - 1).select(1, 2).add_(1.5 * kJump);
  return all;
}

std::vector<std::int64_t> starts(const Recording& recording, std::int64_t steps) {
  const MotionWindows windows({recording}, kOptions);
  const MotionPieces drawn = windows.draw(torch::zeros({1}, torch::kLong), 2000, steps, generator());
  const Tensor unique = std::get<0>(at::_unique(drawn.start.position.select(-1, 0).flatten().to(torch::kLong)));
  return {unique.const_data_ptr<std::int64_t>(), unique.const_data_ptr<std::int64_t>() + unique.numel()};
}

// Predicts what was measured, plus an error.
struct Prediction {
  RigidState all;  // [T, b, B, ...]

  explicit Prediction(const MotionPieces& pieces) : all(pieces.measured) {}
  physics::RigidSolution operator()(const RigidState& /*start*/, std::int64_t /*steps*/) const {
    return {all, {}, {}, {}};
  }
};

TEST(MotionWindowsTest, BeginWhereVelocitiesCanBeTrusted) {
  using Samples = std::vector<std::int64_t>;
  EXPECT_EQ(starts(with_jumps(12, {}), 5), (Samples{0, 1, 2, 3, 4, 5, 6}));
  // From one sample before a jump to two after it a filter may have mixed both sides.
  EXPECT_EQ(starts(with_jumps(20, {6}), 5), (Samples{0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(starts(with_jumps(20, {6}, 2), 5), (Samples{0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14}));
  // A recording that is too short for a window begins at its first such sample, one without any anywhere.
  EXPECT_EQ(starts(with_jumps(6, {0}), 10), (Samples{3}));
  EXPECT_EQ(starts(with_jumps(6, {0, 1, 2, 3, 4}), 2), (Samples{0, 1, 2, 3}));
  Recording slow = with_jumps(8, {4});
  slow.velocity.mul_(0.6);
  EXPECT_EQ(starts(slow, 2).size(), 6u);
}

TEST(MotionWindowsTest, BeginWhereAllIsKnown) {
  Recording recording = with_jumps(10, {}, 2);
  recording.position[1][1][2] = kNaN;
  recording.orientation[3][0][0] = kNaN;
  recording.velocity[4][1][1] = kNaN;
  EXPECT_EQ(starts(recording, 2), (std::vector<std::int64_t>{0, 2, 5, 6, 7}));
  recording.angular_velocity.fill_(kNaN);
  EXPECT_NE(testing::error_of([&] {
              MotionWindows({with_jumps(5, {}, 2), recording}, kOptions);
            }).find("recording 1 has no sample"),
            std::string::npos);
}

TEST(MotionWindowsTest, ResidualsAreInTheirUnits) {
  const MotionWindows windows({with_jumps(20, {}, 2)}, kOptions);
  const MotionPieces some =
      RecordingSet({with_jumps(20, {}, 2)}).pieces(torch::tensor({0, 0}), torch::tensor({0, 16}), 5);
  Prediction prediction(some);
  EXPECT_EQ(windows.residuals(prediction, some).abs().max().item<double>(), 0);
  EXPECT_NEAR(windows.misfits(prediction, some).max().item<double>(), 0.02, 1e-12);  // lengths are rounded off at 0

  prediction.all.position = prediction.all.position + torch::tensor({0., 0.012, 0.}, kDouble);
  prediction.all.orientation = physics::turned(prediction.all.orientation, torch::tensor({0., 0., 0.27}, kDouble));
  const Tensor r = windows.residuals(prediction, some);
  EXPECT_EQ(r.sizes(), at::IntArrayRef({5, 2, 2, 2, 3}));  // steps, bodies, windows
  EXPECT_TRUE(at::allclose(r[0][1][0][0], torch::tensor({0., 1., 0.}, kDouble)));
  EXPECT_NEAR(r[0][1][0][1][2].item<double>(), 1, 5e-3);
  EXPECT_EQ(r.select(2, 1).slice(0, 3).abs().max().item<double>(), 0);  // beyond the end
  EXPECT_TRUE(at::allclose(windows.misfits(prediction, some), torch::full({2}, 2., kDouble), 5e-3));
}

TEST(MotionWindowsTest, WhatWasNotMeasuredCountsNothing) {
  Recording recording = with_jumps(8, {}, 2);
  recording.position.slice(0, 1).select(1, 1).select(1, 2).fill_(kNaN);  // the height of the second body
  recording.orientation[2][0].fill_(kNaN);
  recording.position.slice(0, 5).fill_(kNaN);
  recording.orientation.slice(0, 5).fill_(kNaN);
  const MotionWindows windows({recording}, kOptions);
  const MotionPieces some = RecordingSet({recording}).pieces(torch::tensor({0}), torch::tensor({0}), 7);
  const Tensor error = torch::ones({3}, kDouble).requires_grad_();
  Prediction prediction(some);
  prediction.all = with_jumps(8, {}, 2);
  for (Tensor* x : {&prediction.all.position, &prediction.all.orientation}) *x = x->slice(0, 1).unsqueeze(1);
  prediction.all.position = prediction.all.position + 0.012 * error;
  prediction.all.orientation = physics::turned(prediction.all.orientation, 0.27 * error);
  const Tensor r = windows.residuals(prediction, some), misfit = windows.misfits(prediction, some);
  EXPECT_EQ(r[0][1][0][0][2].item<double>(), 0);
  EXPECT_NEAR(r[0][1][0][0][1].item<double>(), 1, 1e-12);
  EXPECT_EQ(r[1][0][0][1].abs().max().item<double>(), 0);
  EXPECT_EQ(r.slice(0, 4).abs().max().item<double>(), 0);
  // The mean is that over the four steps that were seen.
  EXPECT_GT(misfit.item<double>(), 2.5);
  EXPECT_LT(misfit.item<double>(), 2 * std::sqrt(3) + 0.1);
  misfit.sum().backward();
  EXPECT_TRUE(error.grad().isfinite().all().item<bool>());
}

TEST(MotionWindowsTest, VelocitiesMayBeLaterThanRecorded) {
  Recording recording = with_jumps(6, {});
  recording.velocity.select(2, 1).copy_(torch::arange(6).unsqueeze(1));
  recording.angular_velocity.select(2, 0).copy_(3 * torch::arange(6).unsqueeze(1));
  recording.angular_velocity[3].fill_(kNaN);
  const MotionWindows windows({recording}, kOptions);
  const MotionPieces some = RecordingSet({recording}).pieces(torch::tensor({0, 0}), torch::tensor({1, 2}), 2);
  RigidState start;
  const MotionWindows::RollOut roll_out = [&](const RigidState& state, std::int64_t /*steps*/) {
    start = state;
    return physics::RigidSolution{some.measured, {}, {}, {}};
  };
  windows.misfits(roll_out, some, 0.25);
  EXPECT_TRUE(at::allclose(start.velocity.select(-1, 1).flatten(), torch::tensor({1.25, 2.25}, kDouble)));
  // The second window has no angular velocity at its next sample.
  EXPECT_TRUE(at::allclose(start.angular_velocity.select(-1, 0).flatten(), torch::tensor({3.75, 6.}, kDouble)));
}

TEST(MotionWindowsTest, WindowsThatAreNotSolvedAreLeftOut) {
  const MotionWindows windows({with_jumps(20, {})}, kOptions);
  const MotionPieces some = RecordingSet({with_jumps(20, {})}).pieces(torch::tensor({0, 0}), torch::tensor({0, 2}), 5);
  const MotionWindows::RollOut failing = [&](const RigidState& start, std::int64_t /*steps*/) {
    const Tensor bad = (start.position.select(-1, 0) == 2).view({1, -1, 1, 1});
    RigidState all = some.measured;
    all.position = at::where(bad, kNaN, some.measured.position.narrow(1, 0, bad.size(1)));
    all.orientation = some.measured.orientation.narrow(1, 0, bad.size(1));
    return physics::RigidSolution{all, {}, {}, {}};
  };
  EXPECT_TRUE(at::equal(windows.misfits(failing, some).isfinite(), torch::tensor({true, false})));
  EXPECT_EQ(windows.misfit(failing, some).size(0), 1);
  EXPECT_THROW(windows.misfit(failing, some.at(torch::tensor({1}))), c10::Error);
}

TEST(MotionWindowsTest, RecordingsMayHaveAnyLength) {
  const RecordingSet set({with_jumps(4, {}), with_jumps(9, {})});
  const MotionPieces some = set.pieces(torch::tensor({0, 1, 1}), torch::tensor({1, 1, 7}), 5);
  EXPECT_TRUE(at::equal(some.steps, torch::tensor({2, 5, 1})));
  EXPECT_EQ(some.longest(), 5);
  EXPECT_EQ(some.measured.position[1][0][0][0].item<double>(), 3);
  EXPECT_EQ(some.measured.position[4][0][0][0].item<double>(), 3);  // the last one
  EXPECT_EQ(some.measured.position[4][1][0][0].item<double>(), 6);
  EXPECT_TRUE(at::equal(some.exists().sum(0), some.steps));
  EXPECT_EQ(some.at(torch::tensor({2})).start.position[0][0][0].item<double>(), 7);
}

TEST(MotionWindowsTest, VelocitiesFollowFromPoses) {
  const double dt = 0.01;
  const Tensor time = dt * torch::arange(30, kDouble).view({-1, 1, 1}), omega = torch::tensor({1., -2., 0.5}, kDouble);
  Recording poses{time * torch::tensor({{1., 2., 3.}, {-1., 0., 1.}}, kDouble),
                  physics::rotation_by(time * omega).expand({30, 2, 4}),
                  {},
                  {}};
  const Recording all = with_velocities(poses, dt);
  EXPECT_TRUE(at::allclose(all.velocity[7][0], torch::tensor({1., 2., 3.}, kDouble)));
  EXPECT_TRUE(at::allclose(all.angular_velocity, omega.expand({30, 2, 3})));
  // q and -q are the same orientation, and one sample that is missing is bridged.
  poses.orientation = poses.orientation.clone();
  poses.orientation.slice(0, 10, 20).neg_();
  poses.position[12].fill_(kNaN);
  poses.orientation[12].fill_(kNaN);
  const Recording gap = with_velocities(poses, dt);
  EXPECT_TRUE(at::allclose(gap.velocity, all.velocity) && at::allclose(gap.angular_velocity, all.angular_velocity));
  EXPECT_TRUE(std::isnan(gap.position[12][0][0].item<double>()));
  // An impact does not smear over more than two samples.
  poses.position = at::where(time < 0.15, 0., time - 0.15).expand({30, 2, 3});
  const Tensor v = with_velocities(poses, dt).velocity.select(1, 0).select(1, 0);
  EXPECT_EQ(v[13].item<double>(), 0);
  EXPECT_NEAR(v[18].item<double>(), 1, 1e-12);
  // Given velocities are kept, and quaternions get the length 1.
  Recording given = all;
  given.orientation = 2 * all.orientation;
  EXPECT_TRUE(at::allclose(with_velocities(given, dt).orientation, all.orientation));
  EXPECT_TRUE(with_velocities(given, dt).velocity.equal(all.velocity));
}

TEST(MotionWindowsTest, MistakesAreNamed) {
  const auto names = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Recording recording = with_jumps(5, {});
  recording.orientation = recording.orientation.slice(0, 1);
  names(testing::error_of([&] { with_velocities(recording, 0.01); }),
        "orientation of a recording must be [5, 1, 4]; got [4, 1, 4]");
  recording.position = recording.position.squeeze(1);
  names(testing::error_of([&] { with_velocities(recording, 0.01); }),
        "position of a recording must be [samples >= 2, bodies, 3]; got [5, 3]");
  recording = with_jumps(5, {});
  recording.orientation[2].fill_(0);
  names(testing::error_of([&] { with_velocities(recording, 0.01); }), "quaternions other than 0");
  names(testing::error_of([&] { RecordingSet({}); }), "at least one recording");
  names(testing::error_of([&] { RecordingSet({with_jumps(5, {}), with_jumps(5, {}, 2)}); }), "got 1 and 2");
}

}  // namespace lcp::identification::motion_windows_test
