#include "tosses/windows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lcp/physics/rotation.h"
#include "run/random.h"
#include "support/recorded_model.h"

namespace lcp::training::windows_test {

using torch::Tensor;

constexpr double kSide = 0.1, kGravity = 9.81, kRate = 150;

// A toss whose velocity jumps after each of these samples; its positions are (sample, 0, 1).
Toss with_jumps(std::int64_t count, const std::vector<std::int64_t>& jumps) {
  Toss toss;
  toss.position = at::zeros({count, 3}, at::kDouble);
  toss.position.select(1, 0).copy_(at::arange(count));
  toss.position.select(1, 2).fill_(1);
  toss.orientation = torch::tensor({1., 0., 0., 0.}, at::kDouble).repeat({count, 1});
  toss.velocity = at::zeros({count, 3}, at::kDouble);
  for (const std::int64_t k : jumps) toss.velocity.slice(0, k + 1).select(1, 2).add_(4 * kGravity / kRate);
  toss.angular_velocity = at::zeros({count, 3}, at::kDouble);
  return toss;
}

std::vector<std::int64_t> starts(const Toss& toss, std::int64_t steps) {
  const Windows windows({toss}, kSide, kGravity, kRate);
  const Segments drawn = windows.draw(at::zeros({1}, at::kLong), 2000, steps, generator(0, Stream::kWindows));
  const Tensor unique = std::get<0>(at::_unique(drawn.start.position.select(-1, 0).flatten().to(at::kLong)));
  return {unique.const_data_ptr<std::int64_t>(), unique.const_data_ptr<std::int64_t>() + unique.numel()};
}

TEST(WindowsTest, BeginWhereVelocitiesCanBeTrusted) {
  EXPECT_EQ(starts(with_jumps(12, {}), 5), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  // From one sample before a jump to two after it the filter may have mixed both sides.
  EXPECT_EQ(starts(with_jumps(20, {6}), 5), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14}));
  // A toss that is too short for a window begins at its first such sample, one without any anywhere.
  EXPECT_EQ(starts(with_jumps(6, {0}), 10), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(starts(with_jumps(6, {0, 1, 2, 3, 4}), 2), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(WindowsTest, SmallJumpsAreNone) {
  Toss toss = with_jumps(8, {4});
  toss.velocity.mul_(0.7);
  EXPECT_EQ(starts(toss, 2).size(), 6u);
}

TEST(WindowsTest, ResidualsAreInUnitsOfUsualErrors) {
  const Windows windows({with_jumps(20, {})}, kSide, kGravity, kRate);
  const Segments some = TossSet({with_jumps(20, {})}).pieces(torch::tensor({0, 0}), torch::tensor({0, 16}), 5);
  RecordedModel model(some);
  EXPECT_EQ(windows.residuals(model, some).abs().max().item<double>(), 0);
  EXPECT_NEAR(windows.misfits(model, some).max().item<double>(), 0.02, 1e-12);  // lengths are rounded off at 0

  model.found.next.position.select(-1, 1).add_(0.12 * kSide);
  model.found.next.orientation =
      physics::turned(model.found.next.orientation, torch::tensor({0., 0., 0.27}, at::kDouble));
  const Tensor r = windows.residuals(model, some);
  EXPECT_TRUE(at::allclose(r[0][0][0], torch::tensor({0., 1., 0.}, at::kDouble)));
  EXPECT_NEAR(r[0][0][1][2].item<double>(), 1, 5e-3);
  EXPECT_EQ(r.select(1, 1).slice(0, 3).abs().max().item<double>(), 0);  // beyond the end
  EXPECT_TRUE(at::allclose(windows.misfits(model, some), at::full({2}, 2., at::kDouble), 5e-3));
}

TEST(WindowsTest, WindowsThatAreNotSolvedAreLeftOut) {
  const Windows windows({with_jumps(20, {})}, kSide, kGravity, kRate);
  const Segments some = TossSet({with_jumps(20, {})}).pieces(torch::tensor({0, 0}), torch::tensor({0, 2}), 5);

  struct Failing : RecordedModel {
    using RecordedModel::RecordedModel;
    physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t /*steps*/) const override {
      // Of windows that begin at sample 2.
      physics::RigidSolution all = found;
      const Tensor bad = start.position.select(-1, 0).squeeze(-1) == 2;
      all.next.position = at::where(bad.view({1, -1, 1, 1}), std::numeric_limits<double>::quiet_NaN(),
                                    found.next.position.narrow(1, 0, bad.size(0)));
      all.next.orientation = found.next.orientation.narrow(1, 0, bad.size(0));
      return all;
    }
  };
  const Failing model(some);
  EXPECT_TRUE(at::equal(windows.misfits(model, some).isfinite(), torch::tensor({true, false})));
  EXPECT_EQ(windows.misfit(model, some).size(0), 1);
  EXPECT_THROW(windows.misfit(model, some.at(torch::tensor({1}))), c10::Error);
}

}  // namespace lcp::training::windows_test
