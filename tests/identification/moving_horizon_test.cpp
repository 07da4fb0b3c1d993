#include "lcp/identification/moving_horizon.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "lcp/identification/least_squares.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace lcp::identification {
namespace {

using testing::everywhere;
using testing::largest;
using testing::numbers;
using torch::Tensor;

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

// A mass whose position is seen, with a constant acceleration that is unknown and random ones beside it.
class MovingHorizonTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSteps = 30, kTracks = 2;
  static constexpr double kNoise = 0.3;

  void SetUp() override {
    torch::manual_seed(5);
    F = torch::eye(3, torch::kDouble);
    F[0][1] = F[1][2] = 0.5;
    G = numbers({0, 0.2, 0}).unsqueeze(-1);
    mean = numbers({1, -1, 0}).expand({kTracks, 3}).contiguous();
    deviation = numbers({0.5, 2, 1}).expand({kTracks, 3}).contiguous();
    Tensor x = mean + deviation * torch::randn({kTracks, 3}, torch::kDouble);
    for (std::int64_t k = 0; k <= kSteps; ++k) {
      if (k > 0) x = times(F, x) + times(G, torch::randn({kTracks, 1}, torch::kDouble));
      data.push_back(x.slice(-1, 0, 1) + kNoise * torch::randn({kTracks, 1}, torch::kDouble));
    }
  }

  HorizonModel linear(bool noisy) const {
    return {[=, this](const Tensor& x, const Tensor& w) { return noisy ? times(F, x) + times(G, w) : times(F, x); },
            [this](const Tensor& x, std::int64_t k) {
              return (x.slice(-1, 0, 1) - data[static_cast<std::size_t>(k)]) / kNoise;
            }};
  }

  // The mean and the standard deviations of the Kalman filter, which are exact.
  void expect_kalman(const MovingHorizon& found, bool noisy) const {
    Tensor x = mean, P = torch::diag_embed(deviation.square());
    for (std::int64_t k = 0; k <= kSteps; ++k) {
      if (k > 0) {
        x = times(F, x);
        P = F.matmul(P).matmul(F.t());
        if (noisy) P = P + G.matmul(G.t());
      }
      const Tensor gain = P.select(-1, 0) / (P.select(-1, 0).select(-1, 0) + kNoise * kNoise).unsqueeze(-1);
      x = x + gain * (data[static_cast<std::size_t>(k)] - x.slice(-1, 0, 1));
      P = P - gain.unsqueeze(-1) * P.select(-1, 0).unsqueeze(-2);
      EXPECT_LT(largest(found.mean[k] - x), 1e-7) << k;  // within the tolerance of each fit
      EXPECT_LT(largest(found.std[k] - P.diagonal(0, -2, -1).sqrt()), 1e-9) << k;
    }
  }

  Tensor F, G, mean, deviation;
  std::vector<Tensor> data;
};

TEST_F(MovingHorizonTest, IsTheKalmanFilterOfLinearSystemsForEveryWindow) {
  for (const std::int64_t window : {1, 4, 100}) {
    expect_kalman(moving_horizon(linear(true), mean, deviation, kSteps, {.window = window, .noises = 1}), true);
    expect_kalman(moving_horizon(linear(false), mean, deviation, kSteps, {.window = window}), false);
  }
}

// The arrival cost of a nonlinear system is that of its linearisation: the estimates differ, but little.
TEST_F(MovingHorizonTest, OfANonlinearSystemIsNearTheFitOfAllData) {
  const HorizonModel model{[](const Tensor& x, const Tensor&) {
                             const Tensor v = x.select(-1, 1), drag = x.select(-1, 2);
                             const Tensor next = v - 0.1 * drag * v * v.abs();
                             return torch::stack({x.select(-1, 0) + 0.1 * next, next, drag}, -1);
                           },
                           [this](const Tensor& x, std::int64_t k) {
                             return (x.slice(-1, 0, 1) - data[static_cast<std::size_t>(k)]) / 0.01;
                           }};
  const Tensor truth = numbers({0, 3, 0.5}).expand({kTracks, 3});
  Tensor x = truth;
  for (std::int64_t k = 0; k <= kSteps; ++k) {
    if (k > 0) x = model.propagate(x, {});
    data[static_cast<std::size_t>(k)] = x.slice(-1, 0, 1) + 0.01 * torch::randn({kTracks, 1}, torch::kDouble);
  }
  const Tensor guess = numbers({0, 2, 0.2}).expand({kTracks, 3}), spread = numbers({1, 2, 0.5}).expand({kTracks, 3});
  const auto whole = moving_horizon(model, guess, spread, kSteps, {.window = kSteps});
  const auto fit = least_squares(
      [&](const Tensor& theta) {
        Tensor at = theta;
        std::vector<Tensor> errors = {(theta - guess) / spread, model.residuals(at, 0)};
        for (std::int64_t k = 1; k <= kSteps; ++k) {
          at = model.propagate(at, {});
          errors.push_back(model.residuals(at, k));
        }
        return torch::cat(errors, -1);
      },
      guess);
  EXPECT_LT(largest(whole.mean[-1].select(-1, 2) - fit.theta.select(-1, 2)), 1e-6);
  const auto moving = moving_horizon(model, guess, spread, kSteps, {.window = 5});
  const Tensor std = moving.std[-1];
  EXPECT_LT(largest((moving.mean[-1] - whole.mean[-1]) / std), 0.5);
  EXPECT_TRUE(everywhere((moving.mean[-1] - x).abs() < 4 * std));
  EXPECT_LT(moving.iterations.slice(0, 10).to(torch::kDouble).mean().item<double>(), 8);  // from the fit before
}

TEST_F(MovingHorizonTest, NamesWhatDoesNotFit) {
  const auto call = [&](const Tensor& deviations, const MovingHorizonOptions& options) {
    return [=, this] { moving_horizon(linear(false), mean, deviations, kSteps, options); };
  };
  using testing::error_of;
  EXPECT_EQ(error_of(call(deviation[0], {})), "deviation must be of mean's shape and dtype; got [3], Double");
  EXPECT_EQ(error_of(call(deviation, {.window = 0})), "window must be >= 1; got 0");
  EXPECT_EQ(error_of(call(deviation, {.noises = -1})), "noises must be >= 0; got -1");
}

}  // namespace
}  // namespace lcp::identification
