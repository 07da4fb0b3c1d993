#include "tosses/flights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lcp/physics/rotation.h"
#include "run/error.h"

namespace lcp::training::flights_test {

using torch::Tensor;

constexpr double kRate = 200, kSide = 0.1, kGravity = 9.7, kDrag = 0.05;

// Throws whose recorded point is `center` from the centre of mass, which a force -drag v slows down.
std::vector<Toss> throws(int count, const Tensor& center, double noise, double drag = kDrag) {
  torch::manual_seed(1);
  std::vector<Toss> tosses;
  for (int k = 0; k < count; ++k) {
    const Tensor t = at::arange(40, at::kDouble).unsqueeze(1) / kRate, decay = (1 - (-drag * t).exp()) / drag;
    const Tensor g = torch::tensor({0., 0., kGravity}, at::kDouble);
    const Tensor v = torch::randn({3}, at::kDouble) + torch::tensor({0., 0., 1.}, at::kDouble);
    const Tensor fallen = g * (t - decay) / drag;
    const Tensor omega = 5 * torch::randn({3}, at::kDouble);
    Toss toss;
    toss.orientation = physics::rotation_by(omega * t);
    const Tensor offset = (physics::rotation_matrix(toss.orientation) * center).sum(-1);
    toss.position = torch::tensor({0., 0., 0.5}, at::kDouble) + v * decay - fallen + offset +
                    noise * torch::randn({40, 3}, at::kDouble);
    tosses.push_back(toss);
  }
  return tosses;
}

TEST(FlightsTest, FindsGravityCentreAndDrag) {
  const Tensor center = torch::tensor({0.002, -0.001, 0.005}, at::kDouble);
  const Flights found = fit_flights(throws(200, center, 2e-5), kSide, kRate);
  EXPECT_EQ(found.count, 200);
  EXPECT_NEAR(found.gravity.value, kGravity, 0.02);
  EXPECT_NEAR(found.drag.value, kDrag, 0.01);
  EXPECT_EQ(found.seen_drag(), found.drag.value);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.center[i].value, center[i].item<double>(), 2e-4) << i;
    EXPECT_LT(found.center[i].high - found.center[i].low, 3e-4);
  }
  EXPECT_LT(found.drag.low, kDrag);
  EXPECT_GT(found.drag.high, kDrag);
}

TEST(FlightsTest, LeavesOutADragThatIsNotSeen) {
  const Flights found = fit_flights(throws(50, torch::zeros({3}, at::kDouble), 2e-4, 1e-3), kSide, kRate);
  EXPECT_LT(found.drag.low, 0);
  EXPECT_EQ(found.seen_drag(), 0);
  EXPECT_NEAR(found.gravity.value, kGravity, 0.01);
}

TEST(FlightsTest, ABounceBetweenTwoSamplesEndsAFlight) {
  std::vector<Toss> tosses = throws(3, torch::zeros({3}, at::kDouble), 0, 1e-3);
  for (Toss& toss : tosses) {
    // The centre is always higher than half the diagonal of the cube, at which it can touch.
    const Tensor before = (20 - at::arange(40, at::kDouble)).abs() / kRate;
    toss.position.select(1, 2).copy_(std::sqrt(3) * kSide / 2 + 0.002 + 2 * before - kGravity / 2 * before.square());
  }
  EXPECT_NEAR(fit_flights(tosses, kSide, kRate).gravity.value, kGravity, 0.01);
}

TEST(FlightsTest, NeedsTwoFlights) {
  std::vector<Toss> tosses = throws(2, torch::zeros({3}, at::kDouble), 0);
  tosses[1].position.select(1, 2).fill_(kSide / 2);
  EXPECT_THROW(fit_flights(tosses, kSide, kRate), UsageError);
}

}  // namespace lcp::training::flights_test
