#include "lcp/identification/least_squares.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "support/errors.h"
#include "support/tensors.h"

namespace lcp::identification {
namespace {

using testing::error_of;
using testing::everywhere;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;

Tensor component(const Tensor& theta, std::int64_t k) { return theta.slice(-1, k, k + 1); }

// y = a exp(-b t) at eleven times.
struct Decays {
  Tensor time = torch::arange(11, torch::kDouble) / 5;
  Tensor truth;  // [b, 2]
  Tensor data;   // [b, 11]

  explicit Decays(std::int64_t count, double noise = 0) {
    truth = torch::stack({1 + torch::rand({count}, torch::kDouble), 0.5 + torch::rand({count}, torch::kDouble)}, -1);
    data = model(truth) + noise * torch::randn({count, 11}, torch::kDouble);
  }
  Tensor model(const Tensor& theta) const { return component(theta, 0) * (-component(theta, 1) * time).exp(); }
  Tensor operator()(const Tensor& theta) const { return model(theta) - data; }
};

Tensor ones(std::int64_t b, std::int64_t p) { return torch::ones({b, p}, torch::kDouble); }

class LeastSquaresTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(2); }
};

TEST_F(LeastSquaresTest, LinearizesExactly) {
  const Decays decays(7);
  const Tensor theta = ones(7, 2) + 0.1 * torch::randn({7, 2}, torch::kDouble);
  const Linearization at = linearize(decays, theta);
  EXPECT_TRUE(torch::equal(at.residuals, decays(theta)));
  const Tensor decay = (-component(theta, 1) * decays.time).exp();
  const Tensor J = torch::stack({decay, -component(theta, 0) * decays.time * decay}, -1);
  EXPECT_LT(largest(at.jacobian - J), 1e-15);
  const Linearization constant = linearize([&](const Tensor& x) { return x.detach() * 0; }, theta);
  EXPECT_EQ(largest(constant.jacobian), 0);
}

TEST_F(LeastSquaresTest, EvaluatesOnlyProblemsThatGoOn) {
  const Decays decays(7);
  std::int64_t evaluated = 0;
  const auto linearized = [&](const Tensor& theta, const Tensor& problems) {
    evaluated += problems.size(0);
    Tensor all = ones(7, 2);
    all.index_copy_(0, problems, theta);
    const Linearization at = linearize(decays, all);
    return Linearization{at.residuals.index_select(0, problems), at.jacobian.index_select(0, problems)};
  };
  const LeastSquares some = least_squares(linearized, ones(7, 2)), all = least_squares(decays, ones(7, 2));
  EXPECT_TRUE(torch::equal(some.theta, all.theta));
  EXPECT_TRUE(torch::equal(some.jacobian, all.jacobian));
  EXPECT_EQ(evaluated, 7 + some.iterations.sum().item<std::int64_t>());
}

TEST_F(LeastSquaresTest, FindsEachOfABatch) {
  const Decays exact(50);
  const LeastSquares found = least_squares(exact, ones(50, 2));
  EXPECT_TRUE(everywhere(found.status == 0));
  EXPECT_LT(largest(found.theta - exact.truth), 1e-12);
  EXPECT_LT(found.iterations.max().item<std::int64_t>(), 20);

  const Decays noisy(50, 0.05);
  const LeastSquares fit = least_squares(noisy, ones(50, 2));
  EXPECT_TRUE(everywhere(fit.status == 0));
  EXPECT_TRUE(torch::equal(fit.residuals, noisy(fit.theta)));
  EXPECT_LT(largest(fit.objective - fit.residuals.square().sum(-1)), 1e-15);
  EXPECT_LT(largest((fit.jacobian * fit.residuals.unsqueeze(-1)).sum(-2)), 1e-7);  // stationary
}

TEST_F(LeastSquaresTest, FollowsACurvedValley) {
  const auto rosenbrock = [](const Tensor& x) {
    return torch::cat({10 * (component(x, 1) - component(x, 0).square()), 1 - component(x, 0)}, -1);
  };
  const LeastSquares found = least_squares(rosenbrock, numbers({-1.2, 1, 3, -5}).view({2, 2}));
  EXPECT_TRUE(everywhere(found.status == 0));
  EXPECT_LT(largest(found.theta - 1), 1e-10);
}

TEST_F(LeastSquaresTest, FindsManyParametersInUnitsOfTheirOwn) {
  const Tensor A = torch::randn({3, 50, 40}, torch::kDouble), y = torch::randn({3, 50}, torch::kDouble);
  const Tensor units = torch::logspace(-8, 8, 40, 10, torch::kDouble);
  const auto of = [&](std::int64_t begin, std::int64_t end) {
    const Tensor a = A.slice(0, begin, end), b = y.slice(0, begin, end);
    return least_squares([=](const Tensor& x) { return (a * (x * units).unsqueeze(-2)).sum(-1) - b; },
                         torch::zeros({end - begin, 40}, torch::kDouble));
  };
  const LeastSquares found = of(0, 3);
  EXPECT_TRUE(everywhere(found.status == 0));
  const Tensor exact = std::get<0>(torch::linalg_lstsq(A, y.unsqueeze(-1))).squeeze(-1);
  EXPECT_LT(largest(found.theta * units - exact), 1e-7);
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(torch::equal(of(k, k + 1).theta, found.theta.slice(0, k, k + 1)));
  }
}

TEST_F(LeastSquaresTest, StaysAboveItsBounds) {
  // (x + 1)^2 + (y - x - 2)^2 with x >= 0: at (0, 2).
  const auto residuals = [](const Tensor& x) {
    return torch::cat({component(x, 0) + 1, component(x, 1) - component(x, 0) - 2}, -1);
  };
  LeastSquaresOptions options;
  options.lower = numbers({0, -INFINITY});
  for (const double start : {-3., 0., 5.}) {
    const LeastSquares found = least_squares(residuals, torch::full({1, 2}, start, torch::kDouble), options);
    EXPECT_EQ(found.status.item<int>(), 0);
    EXPECT_LT(largest(found.theta - numbers({0, 2})), 1e-8) << start;
  }
}

TEST_F(LeastSquaresTest, LeavesAParameterThatDoesNothing) {
  // Beyond 1 the first parameter has no effect.
  const auto residuals = [](const Tensor& x) {
    return torch::cat({component(x, 0).clamp_max(1), component(x, 1) - 3}, -1);
  };
  const LeastSquares found = least_squares(residuals, numbers({2, 0, 0.5, 0}).view({2, 2}));
  EXPECT_TRUE(everywhere(found.status == 0));
  EXPECT_LT(largest(found.theta - numbers({2, 3, 0, 3}).view({2, 2})), 1e-8);
  EXPECT_EQ(largest(found.jacobian[0].select(-1, 0)), 0);
  EXPECT_GT(largest(found.jacobian[1].select(-1, 0)), 0);
}

TEST_F(LeastSquaresTest, StepsBackFromWhereNothingIsDefined) {
  const auto logarithm = [](const Tensor& x) { return x.log() - 1; };  // from 20 the whole step leads below 0
  const LeastSquares found = least_squares(logarithm, numbers({20, -1}).view({2, 1}));
  EXPECT_NEAR(found.theta[0].item<double>(), std::exp(1), 1e-12);
  EXPECT_EQ(found.status[0].item<int>(), 0);
  EXPECT_EQ(found.status[1].item<int>(), static_cast<int>(LeastSquaresStatus::kUndefined));
  EXPECT_EQ(found.theta[1].item<double>(), -1);
  EXPECT_EQ(found.iterations[1].item<std::int64_t>(), 0);
}

TEST_F(LeastSquaresTest, EndsWhereAStepIsLostInTheRoundingOfTheta) {
  double noise = 1e-18;
  const auto residuals_of_rounding = [&](const Tensor& theta, const Tensor&) {
    noise *= 0.99;  // each trial seems a little better than the last
    return Linearization{noise * at::ones_like(theta), at::ones_like(theta).unsqueeze(-1)};
  };
  const LeastSquares found = least_squares(residuals_of_rounding, ones(1, 1));
  EXPECT_EQ(found.status.item<int>(), 0);
  EXPECT_EQ(found.iterations.item<std::int64_t>(), 0);
}

TEST_F(LeastSquaresTest, SaysWhereItStopped) {
  LeastSquaresOptions options;
  options.max_iterations = 2;
  const LeastSquares found = least_squares(Decays(3), 5 * ones(3, 2), options);
  EXPECT_TRUE(everywhere(found.status == static_cast<int>(LeastSquaresStatus::kStopped)));
  EXPECT_TRUE(everywhere(found.iterations == 2));
}

TEST_F(LeastSquaresTest, SaysWhereNoStepHelps) {
  // 3 |x| + 1 and x - 1/2: the sum of squares is least at the kink x = 0, where its slopes are -7 and 5.
  const auto kink = [](const Tensor& x) { return torch::cat({3 * x.abs() + 1, x - 0.5}, -1); };
  const LeastSquares found = least_squares(kink, numbers({-3, 0.1}).view({2, 1}));
  EXPECT_TRUE(everywhere(found.status == static_cast<int>(LeastSquaresStatus::kStalled)));
  EXPECT_LT(largest(found.theta), 1e-6);
}

TEST_F(LeastSquaresTest, LimitsStepsOfParametersWithAlmostNoEffect) {
  double farthest = 0;
  const auto square = [&](const Tensor& x, const Tensor&) {  // x^2 - 1 hardly changes with x near 0
    farthest = std::max(farthest, largest(x));
    return Linearization{x.square() - 1, 2 * x.unsqueeze(-1)};
  };
  const auto from = [&](double start, double least_curvature) {
    farthest = 0;
    LeastSquaresOptions options;
    options.least_curvature = least_curvature;
    return least_squares(square, start * ones(1, 1), options);
  };
  EXPECT_NEAR(from(1e-5, 0).theta.item<double>(), 1, 1e-12);
  EXPECT_GT(farthest, 1e4);
  EXPECT_NEAR(from(1e-5, 1e-3).theta.item<double>(), 1, 1e-12);
  EXPECT_LT(farthest, 25);
  // Nearer to 0 a step that is short enough changes the linearised residuals by less than the tolerance.
  EXPECT_EQ(from(1e-9, 0).status.item<int>(), static_cast<int>(LeastSquaresStatus::kStalled));
}

TEST_F(LeastSquaresTest, GivesTheSameBitsInEveryBatch) {
  const Decays decays(20, 0.1);
  const LeastSquares whole = least_squares(decays, ones(20, 2));
  for (std::int64_t i = 0; i < 20; ++i) {
    Decays one = decays;
    one.data = decays.data.slice(0, i, i + 1);
    const LeastSquares alone = least_squares(one, ones(1, 2));
    EXPECT_TRUE(torch::equal(alone.theta, whole.theta.slice(0, i, i + 1)));
    EXPECT_TRUE(torch::equal(alone.iterations, whole.iterations.slice(0, i, i + 1)));
  }
}

TEST_F(LeastSquaresTest, RefusesWhatDoesNotFit) {
  const auto identity = [](const Tensor& x) { return x; };
  EXPECT_EQ(error_of([&] { least_squares(identity, torch::ones({2}, torch::kDouble)); }),
            "start must be [b, p], float64; got [2], Double");
  EXPECT_EQ(error_of([&] {
              least_squares(identity, torch::ones({2, 1}));
            }),
            "start must be [b, p], float64; got [2, 1], Float");
  LeastSquaresOptions options;
  options.lower = numbers({0, 0});
  EXPECT_EQ(error_of([&] { least_squares(identity, ones(2, 1), options); }), "lower must be [1]; got [2]");
}

TEST_F(LeastSquaresTest, RefusesResidualsThatLinearize) {
  const auto squares = [](const Tensor& x) { return x.square(); };
  EXPECT_EQ(
      error_of([&] { linearize([&](const Tensor& x) { return linearize(squares, x[0]).residuals; }, ones(2, 1)); }),
      "residuals must not be linearized within residuals: there is one level of forward mode");
  EXPECT_EQ(linearize(squares, ones(2, 1)).jacobian.sum().item<double>(), 4);  // nothing is left behind
}

}  // namespace
}  // namespace lcp::identification
