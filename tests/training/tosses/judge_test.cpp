#include "tosses/judge.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lcp/physics/rotation.h"

namespace lcp::training::judge_test {

using torch::Tensor;

constexpr double kSide = 0.1, kGravity = 9.81, kRate = 100;

// Slides along x at 1 m/s.
Toss sliding(std::int64_t count) {
  Toss toss;
  toss.velocity = torch::tensor({1., 0., 0.}, at::kDouble).repeat({count, 1});
  toss.position = at::arange(count, at::kDouble).unsqueeze(1) / kRate * toss.velocity;
  toss.position.select(1, 2).fill_(kSide / 2);
  toss.orientation = torch::tensor({1., 0., 0., 0.}, at::kDouble).repeat({count, 1});
  toss.angular_velocity = at::zeros({count, 3}, at::kDouble);
  return toss;
}

// Goes on with the velocity of the start, and does not solve what begins after `last`, m.
struct Uniform : TossModel {
  double last = std::numeric_limits<double>::infinity();
  physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const override {
    physics::RigidSolution found;
    const Tensor time = (at::arange(steps, at::kDouble) + 1).view({-1, 1, 1, 1}) / kRate;
    const auto repeated = [&](const Tensor& x) { return x.unsqueeze(0).repeat({steps, 1, 1, 1}); };
    found.next = {start.position + time * start.velocity, repeated(start.orientation), repeated(start.velocity),
                  repeated(start.angular_velocity)};
    found.next.position.select(-1, 2).sub_(0.01);  // into the ground
    const Tensor late = start.position.select(-1, 0).squeeze(-1) > last;
    found.status = late.to(at::kChar).unsqueeze(0).repeat({steps, 1});
    return found;
  }
  std::string torchscript_bytes() const override { return ""; }
};

TEST(JudgeTest, MeansAndErrorsInTime) {
  const Judgement found = judge(Uniform(), {sliding(100), sliding(130)}, kSide, kGravity, kRate);
  for (const char* const name : kProtocols) {
    EXPECT_NEAR(found.metrics[name]["position_error_m"].get<double>(), 0.01, 1e-12) << name;
    EXPECT_NEAR(found.metrics[name]["penetration_percent"].get<double>(), 10, 1e-9) << name;
    EXPECT_EQ(found.metrics[name]["rotation_error_rad"].get<double>(), 0) << name;
    EXPECT_EQ(found.metrics[name]["judged"], found.metrics[name]["pieces"]) << name;
  }
  EXPECT_EQ(found.metrics["windows_80"]["pieces"], 3);
  EXPECT_EQ(found.metrics["unsolved"], 0);
  EXPECT_EQ(found.errors.rows(), 7u);
  EXPECT_EQ(found.errors_in_time.rows(), 129u + 129u + 80u);
  EXPECT_EQ(found.errors_in_time["pieces"][98], 2);
  EXPECT_EQ(found.errors_in_time["pieces"][99], 1);
  EXPECT_NEAR(found.errors_in_time["time"][99], 1, 1e-12);
}

TEST(JudgeTest, CountsWhatIsNotSolved) {
  Uniform model;
  model.last = 0.1;
  const Judgement found = judge(model, {sliding(130)}, kSide, kGravity, kRate);
  EXPECT_EQ(found.metrics["unsolved"], 1);
  EXPECT_EQ(found.metrics["windows_80"]["judged"], 1);
  EXPECT_EQ(found.metrics["windows_80"]["pieces"], 2);
  EXPECT_NE(summary_text(found.metrics).find("1 are not solved"), std::string::npos);
  model.last = -1;
  EXPECT_NE(summary_text(judge(model, {sliding(50)}, kSide, kGravity, kRate).metrics).find("none is solved"),
            std::string::npos);
}

}  // namespace lcp::training::judge_test
