#include "lcp/identification/interval.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>

#include "lcp/identification/uncertainty.h"
#include "support/tensors.h"

namespace lcp::identification {
namespace {

using testing::everywhere;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;

class IntervalTest : public ::testing::Test {
 protected:
  IntervalTest() { torch::manual_seed(3); }

  // Measurements of exp(-k t) at 50 times, [b, 50], with noise.
  static Tensor measured(const Tensor& k, double noise) {
    const Tensor exact = (-k.unsqueeze(-1) * times()).exp();
    return exact + noise * torch::randn_like(exact);
  }

  static Tensor times() { return 0.04 * torch::arange(1, 51, torch::kDouble); }

  // The fit of k by Euler's method of order 1, or the midpoint rule of order 2, with so many steps between two samples.
  static LeastSquares fit(const Tensor& data, int steps, int order) {
    const double h = 0.04 / steps;
    const auto residuals = [&, h](const Tensor& k) {
      const Tensor factor = order == 1 ? 1 - h * k : 1 - h * k + (h * k).square() / 2;
      return factor.pow(times() / h) - data;
    };
    return least_squares(residuals, torch::ones({data.size(0), 1}, torch::kDouble));
  }

  static Tensor share_within(const Interval& found, const Tensor& truth) {
    return ((found.low <= truth) & (truth <= found.high)).to(torch::kDouble).mean(0);
  }
};

TEST_F(IntervalTest, TellsTheBiasOfEachOrder) {
  for (const int order : {1, 2}) {
    const Tensor data = measured(numbers({1, 2}), 0);
    const LeastSquares fine = fit(data, 4, order);
    const Interval found = interval(fit(data, 2, order), fine, number(1e-3), {.order = static_cast<double>(order)});
    const Tensor error = fine.theta - numbers({1, 2}).unsqueeze(-1);
    EXPECT_LT(largest(found.bias / error - 1), 0.05);
    EXPECT_LT(largest(found.theta - fine.theta), 1e-15);
    EXPECT_EQ(largest(found.std - uncertainty(fine.jacobian, number(1e-3)).std), 0);
  }
}

// With noise of 1e-3 the bias of Euler's method is 10 standard deviations, that of the midpoint rule .05.
TEST_F(IntervalTest, HoldsTheTruthWithAndWithoutABias) {
  const Tensor truth = 0.5 + 2 * torch::rand({400}, torch::kDouble);
  const Tensor data = measured(truth, 1e-3);
  for (const int order : {1, 2}) {
    const LeastSquares fine = fit(data, 4, order);
    const Interval found = interval(fit(data, 2, order), fine, number(1e-3));
    EXPECT_TRUE(everywhere(found.explained));
    const double share = share_within(found, truth.unsqueeze(-1)).item<double>();
    EXPECT_GT(share, 0.92);
    const Tensor without = 1.96 * found.std >= (fine.theta - truth.unsqueeze(-1)).abs();
    const double alone = without.to(torch::kDouble).mean().item<double>();
    if (order == 1) {
      EXPECT_LT(alone, 0.3);
    } else {
      EXPECT_LT(share, 0.98);
    }
  }
}

TEST_F(IntervalTest, IsUnknownForAFitThatDoesNotExplainItsData) {
  Tensor data = measured(numbers({1, 1}), 1e-3);
  data[0] += 0.02 * times().sin();  // which no k gives
  const Interval found = interval(fit(data, 2, 2), fit(data, 4, 2), number(1e-3));
  EXPECT_FALSE(found.explained[0].item<bool>());
  EXPECT_TRUE(everywhere(found.low[0].isnan() & found.high[0].isnan()));
  EXPECT_TRUE(everywhere(found.explained[1] & found.low[1].isfinite()));
}

TEST_F(IntervalTest, HasNoEndsWhereTheDataDetermineNothing) {
  const auto residuals = [](const Tensor& theta) {
    return torch::cat({theta.slice(-1, 0, 1) - 1, 0 * theta.slice(-1, 1)}, -1);
  };
  const LeastSquares fit = least_squares(residuals, torch::zeros({1, 2}, torch::kDouble));
  const Interval found = interval(fit, fit, number(0.1));
  EXPECT_TRUE(found.low[0][0].isfinite().item<bool>() && found.high[0][1].isposinf().item<bool>());
  EXPECT_TRUE(found.low[0][1].isneginf().item<bool>());
}

TEST(ExplainsTest, AcceptsNoise) {
  torch::manual_seed(4);
  const Tensor noise = torch::randn({2000, 120}, torch::kDouble);
  EXPECT_TRUE(everywhere(explains(noise, number(1), 3)));
  EXPECT_TRUE(everywhere(explains(noise, number(1), 3, 4)));
  EXPECT_TRUE(everywhere(explains(torch::zeros({1, 5}, torch::kDouble), number(0), 1)));
}

TEST(ExplainsTest, RefusesWhatIsLargeOrCorrelatedOrNotFinite) {
  torch::manual_seed(5);
  const Tensor noise = torch::randn({1, 400}, torch::kDouble);
  EXPECT_FALSE(explains(2 * noise, number(1), 3).item<bool>());
  EXPECT_TRUE(explains(2 * noise, number(2), 3).item<bool>());
  const Tensor slow = (0.05 * torch::arange(400, torch::kDouble)).sin().unsqueeze(0);
  EXPECT_FALSE(explains(slow, number(1), 3).item<bool>());
  // One of two coordinates is correlated; read as one series, the two are not.
  const Tensor both = torch::stack({0.5 * slow, noise}, -1).flatten(1);
  EXPECT_FALSE(explains(both, number(1), 3, 2).item<bool>());
  EXPECT_TRUE(explains(both, number(1), 3, 1).item<bool>());
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    Tensor broken = noise.clone();
    broken[0][7] = bad;
    EXPECT_FALSE(explains(broken, number(1), 3).item<bool>());
  }
}

TEST(ExplainsTest, AcceptsCorrelationBelowTheNoise) {
  // Round-off of a fit of exact data is a smooth curve.
  const Tensor slow = (0.05 * torch::arange(400, torch::kDouble)).sin().unsqueeze(0);
  const double size = slow.norm().item<double>();
  EXPECT_TRUE(explains(slow * (0.99 / size), number(1), 3).item<bool>());
  EXPECT_FALSE(explains(slow * (1.01 / size), number(1), 3).item<bool>());
}

TEST(ExplainsTest, LeavesOutWhatIsNotSeen) {
  torch::manual_seed(6);
  const Tensor noise = torch::randn({500, 300}, torch::kDouble);
  // Every second sample has no successor that is seen; of pairs with gaps, only those that follow each other count.
  const Tensor step = torch::arange(150);
  for (const Tensor& seen : {step % 2 == 0, step % 3 != 0, step > 200}) {
    const Tensor mask = seen.expand({500, 150}).contiguous();
    const Tensor unknown = torch::where(mask.unsqueeze(-1), noise.view({500, 150, 2}), NAN).flatten(1);
    EXPECT_TRUE(everywhere(explains(unknown, number(1), 3, 2, mask)));
  }
  const Tensor slow = (0.05 * torch::arange(300, torch::kDouble)).sin().expand({500, 300}).contiguous();
  const Tensor pairs = (step % 3 != 0).expand({500, 150}).contiguous();
  EXPECT_FALSE(explains(slow, number(1), 3, 2, pairs).any().item<bool>());
}

TEST(ExplainsTest, NamesMistakes) {
  const Tensor r = torch::zeros({2, 6}, torch::kDouble);
  EXPECT_THROW(explains(r[0], number(1), 1), c10::Error);
  EXPECT_THROW(explains(r.to(torch::kFloat), number(1), 1), c10::Error);
  EXPECT_THROW(explains(r, numbers({1, 2, 3}), 1), c10::Error);
  EXPECT_THROW(explains(r, number(1), -1), c10::Error);
  EXPECT_THROW(explains(r, number(1), 1, 4), c10::Error);
  EXPECT_THROW(explains(r, number(1), 1, 2, torch::ones({2, 6}, torch::kBool)), c10::Error);
  EXPECT_THROW(explains(r, number(1), 1, 2, torch::ones({2, 3})), c10::Error);
  const auto residuals = [](const Tensor& theta) { return theta - 1; };
  const LeastSquares one = least_squares(residuals, torch::zeros({1, 2}, torch::kDouble));
  const LeastSquares other = least_squares(residuals, torch::zeros({1, 3}, torch::kDouble));
  EXPECT_THROW(interval(one, other, number(1)), c10::Error);
  EXPECT_THROW(interval(one, one, number(1), {.order = 0.5}), c10::Error);
}

// From the tables of Student's distribution.
TEST(StudentTest, QuantilesOfStudent) {
  EXPECT_TRUE(std::isinf(student_95(0)));
  for (const auto& [freedom, quantile] : {std::pair(1., 12.706204736432095),
                                          {2., 4.302652729696142},
                                          {5., 2.5705818366147395},
                                          {30., 2.0422724563012373},
                                          {1e5, 1.959963984540054 + 2.3722e-5}}) {
    EXPECT_NEAR(student_95(freedom), quantile, 1e-8) << freedom;
  }
}

TEST(StudentTest, FewGroupsWidenAnInterval) {
  EXPECT_TRUE(std::isinf(half_width_95(5, 5)));
  EXPECT_NEAR(half_width_95(7, 5), student_95(2) * std::sqrt(7. / 2), 1e-12);
  EXPECT_NEAR(half_width_95(100000, 5), 1.96, 1e-3);
}

}  // namespace
}  // namespace lcp::identification
