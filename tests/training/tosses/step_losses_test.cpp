#include "tosses/step_losses.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/cube_throw.h"
#include "support/finite_differences.h"
#include "tosses/cube_model.h"

namespace lcp::training::step_losses_test {

using torch::Tensor;

constexpr double kRate = 148, kSide = 0.1048;
// None of these steps has impacts at two times, which are two problems and not the one of the loss.
constexpr std::int64_t kSteps = 6;
constexpr std::int64_t kDirections = 16;

// A cube as the losses want it: numbers of a batch of two.
Cube batch_of(const CubeModel& model, const Tensor& raw) { return model.cube_at(raw.expand({2, -1})); }

CubeModel model_of(double restitution) {
  CubeFlags flags;
  flags.restitution = restitution;
  return {
      flags.cube(), {.name = "polyhedral", .substeps = 1, .directions = kDirections}, kRate, {"mu", "side", "inertia"}};
}

class StepLossesTest : public ::testing::Test {
 protected:
  const CubeModel model_ = model_of(0);
  const Segments exact_ =
      recorded(model_.cube(), {.name = "polyhedral", .substeps = 1, .directions = kDirections}, kRate, kSteps);
  const StepLoss loss_{kDirections, kRate, kSide};
  const Tensor truth_ = torch::zeros({3}, torch::kDouble);
};

// Impulses of the true cube explain its own motion, those of others do not.
TEST_F(StepLossesTest, TheBilevelLossIsLeastAtTheTruth) {
  EXPECT_LT(loss_.bilevel(batch_of(model_, truth_), exact_).max().item<double>(), 1e-12);
  for (std::int64_t k = 0; k < 3; ++k) {
    Tensor other = truth_.clone();
    other[k] = 0.2;
    EXPECT_GT(loss_.bilevel(batch_of(model_, other), exact_).max().item<double>(), 1e-6) << k;
  }
}

TEST_F(StepLossesTest, FreeFlightIsExplainedWithoutImpulses) {
  Segments flight = exact_;
  for (Tensor* const z : {&flight.start.position, &flight.measured.position}) {
    *z = z->clone();
    z->select(-1, 2).add_(1e4);
  }
  const Cube cube = batch_of(model_, truth_);
  const Tensor found = loss_.bilevel(cube, flight), of_contact_nets = loss_.contact_nets(cube, flight);
  // Nothing touches, so what the impulses of the recording did is all error, the same for both but for the factor 1/2.
  EXPECT_GT(found.min().item<double>(), 1e-3);
  EXPECT_TRUE(at::allclose(found, 2 * of_contact_nets, 1e-9));
}

TEST_F(StepLossesTest, GradientsAreThoseOfDifferences) {
  const Tensor at = torch::tensor({0.2, -0.1, 0.3}, torch::kDouble);
  const testing::Function bilevel = [&](const testing::Inputs& raw) {
    return 1000 * loss_.bilevel(batch_of(model_, raw[0]), exact_);
  };
  const testing::Function contact_nets = [&](const testing::Inputs& raw) {
    return 1000 * loss_.contact_nets(batch_of(model_, raw[0]), exact_);
  };
  EXPECT_LT(testing::gradient_error(bilevel, {at}), 1e-5);
  EXPECT_LT(testing::gradient_error(contact_nets, {at}), 1e-5);
}

}  // namespace lcp::training::step_losses_test
