#include "lcp/learning/fit_network.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "learning/network/blocks.h"

namespace lcp::learning::fit_network_test {

using torch::Tensor;

FitNetworkOptions small() {
  FitNetworkOptions options;
  options.starts = 24;
  options.parts.q(nn::Dependence::kAffine);
  options.network = false;
  return options;
}

FitResult fitted(const Samples& samples, const FitNetworkOptions& options) {
  return fit_network(samples.x, samples.y, options);
}

double largest_error(const FitResult& result, const Samples& samples) {
  const torch::NoGradGuard no_grad;
  return (result.network->step(samples.x).y - samples.y).abs().max().item<double>();
}

TEST(FitNetworkTest, LearnsWhatAnLcpIsUpToRounding) {
  // Three inputs, of which the last has no effect, and two outputs in other units: a block, and a ball on the ground.
  const auto samples = [](std::int64_t count, std::int64_t seed) {
    const Samples block = sliding_block(count, seed);
    const Tensor other = block.x.slice(1, 0, 1) - 2 * block.x.slice(1, 1, 2) + 0.5;
    return Samples{at::cat({block.x, torch::ones({count, 1}, torch::kDouble)}, 1),
                   at::cat({block.y, 100 * other.relu()}, 1)};
  };
  const FitResult result = fitted(samples(150, 1), small());
  EXPECT_TRUE(result.exact);
  EXPECT_LT(result.training_rmse, 1e-12);
  EXPECT_LT(result.validation_rmse, 1e-12);
  EXPECT_LT(largest_error(result, samples(1000, 2)), 1e-11);
  EXPECT_EQ(result.unknowns, 3);
  EXPECT_EQ(result.rest, 1);
  EXPECT_FALSE(result.out_of_time);
  ASSERT_FALSE(result.rounds.empty());
  EXPECT_EQ(result.rounds[0].starts, 24);
  EXPECT_EQ(result.rounds[0].unknowns, 3);
}

TEST(FitNetworkTest, ErrorsAreInTheUnitsOfTheTargets) {
  Samples samples = noisy(sliding_block(100, 1), 3);
  samples.y = 10 * samples.y;
  FitNetworkOptions options = small();
  options.unknowns = 1;
  const auto [training, validation] = split_samples(samples, 0.2, 0);
  EXPECT_EQ(validation.count(), 20);
  // Without a last fit the network is that whose errors are reported.
  options.finishing_iterations = 0;
  options.kappa = 0.01;
  options.iterations = 100;
  const FitResult result = fitted(samples, options);
  const torch::NoGradGuard no_grad;
  const auto rmse = [&](const Samples& of) {
    return (result.network->step(of.x).y - of.y).square().mean().sqrt().item<double>();
  };
  EXPECT_NEAR(result.training_rmse, rmse(training), 1e-9);
  EXPECT_NEAR(result.validation_rmse, rmse(validation), 1e-9);
  EXPECT_EQ(result.rounds.back().validation_rmse, result.validation_rmse);
  EXPECT_FALSE(result.exact);
}

TEST(FitNetworkTest, RepeatsItselfForASeedAndAnyNumberOfThreads) {
  FitNetworkOptions options = small();
  options.starts = 40;
  options.unknowns = 2;
  const Samples samples = sliding_block(40, 1);
  const Tensor theta = fitted(samples, options).network->theta();
  options.threads = 3;
  EXPECT_TRUE(at::equal(fitted(samples, options).network->theta(), theta));
  EXPECT_TRUE(at::equal(fitted({samples.x.to(torch::kFloat).to(torch::kDouble), samples.y}, options).network->theta(),
                        fitted({samples.x.to(torch::kFloat), samples.y}, options).network->theta()));
  options.seed = 1;
  EXPECT_FALSE(at::equal(fitted(samples, options).network->theta(), theta));
}

TEST(FitNetworkTest, TakesSamplesForValidation) {
  FitNetworkOptions options = small();
  options.unknowns = 2;
  options.validation_samples = sliding_block(30, 2);
  const Samples samples = sliding_block(60, 1);
  const FitResult result = fitted(samples, options);
  EXPECT_LT(result.validation_rmse, 1e-12);
  options.validation_samples = std::nullopt;
  EXPECT_FALSE(at::equal(fitted(samples, options).network->theta(), result.network->theta()));
}

TEST(FitNetworkTest, CountsTargetsWithinTheirNoiseAsRest) {
  const Samples samples = noisy(sliding_block(200, 1), 3);
  FitNetworkOptions options = small();
  options.unknowns = 2;
  EXPECT_EQ(fitted(samples, options).rest, 1);  // no target is 0
  options.noise = 0.1;
  const FitResult found = fitted(samples, options);
  options.noise = std::nullopt;
  options.rest_below = 0.3;
  EXPECT_NEAR(found.rest, fitted(samples, options).rest, 1e-12);
  EXPECT_LT(found.rest, 1);
  EXPECT_GT(found.rest, 0.8);
}

TEST(FitNetworkTest, TellsItsProgressAndEndsInTime) {
  FitNetworkOptions options = small();
  std::vector<FitProgress> told;
  options.progress = [&](const FitProgress& now) { told.push_back(now); };
  options.threads = 2;
  const FitResult result = fitted(sliding_block(60, 1), options);
  ASSERT_GT(told.size(), 5);
  EXPECT_EQ(told.front().rounds, 0);
  EXPECT_GT(told.front().done, 0);
  EXPECT_TRUE(std::isinf(told.front().validation_rmse));
  EXPECT_EQ(told.back().rounds, static_cast<std::int64_t>(result.rounds.size()));
  EXPECT_EQ(told.back().unknowns, result.unknowns);
  EXPECT_EQ(told.back().validation_rmse, result.rounds.back().validation_rmse);

  options.progress = [](const FitProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(fitted(sliding_block(60, 1), options), std::runtime_error);

  options.progress = nullptr;
  options.budget_seconds = 1e-3;
  const FitResult hurried = fitted(sliding_block(60, 1), options);
  EXPECT_TRUE(hurried.out_of_time);
  EXPECT_EQ(hurried.rounds.size(), 1);
  EXPECT_TRUE(std::isfinite(hurried.training_rmse));
}

TEST(FitNetworkTest, NamesWhatDoesNotFit) {
  const Samples good = sliding_block(20, 1);
  const auto error_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("no error");
  };
  const auto expect = [&](const std::string& text, const Tensor& inputs, const Tensor& targets,
                          const std::function<void(FitNetworkOptions&)>& change = {}) {
    FitNetworkOptions options = small();
    if (change) change(options);
    const std::string error = error_of([&] { fit_network(inputs, targets, options); });
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  const auto expect_of_option = [&](const std::string& text, const std::function<void(FitNetworkOptions&)>& change) {
    expect(text, good.x, good.y, change);
  };
  expect("targets must be [samples, outputs]; got [20]", good.x, good.y.squeeze(1));
  expect("inputs must be [samples, inputs]; got [20, 0]", good.x.slice(1, 0, 0), good.y);
  expect("targets must have a row for each of the 20 of inputs; got 19", good.x, good.y.slice(0, 1));
  expect("inputs must be floating-point numbers; got Long", good.x.to(torch::kLong), good.y);
  expect("targets must be finite; got nan in row 3", good.x, good.y.index_fill(0, torch::tensor({3}), NAN));
  expect("inputs must have at least 2 rows", good.x.slice(0, 0, 1), good.y.slice(0, 0, 1));
  expect_of_option("starts must be >= 1; got 0", [](auto& options) { options.starts = 0; });
  expect_of_option("unknowns must be >= 0; got -1", [](auto& options) { options.unknowns = -1; });
  expect_of_option("seed must be in [0, 2^32); got -1", [](auto& options) { options.seed = -1; });
  expect_of_option("validation must be a share in (0, 1); got 1", [](auto& options) { options.validation = 1; });
  expect_of_option("noise must be finite and >= 0; got -1", [](auto& options) { options.noise = -1; });
  expect_of_option("budget_seconds must be > 0; got 0", [](auto& options) { options.budget_seconds = 0; });
  expect_of_option("hidden must be > 0; got 0", [](auto& options) { options.parts.hidden(0); });
  expect_of_option("first_velocity must be that of 1 of the 2 inputs, from 0 on; got 2",
                   [](auto& options) { options.first_velocity = 2; });
  expect_of_option("leaves nothing that minimises", [](auto& options) { options.finishing_iterations = 0; });
  expect_of_option("f must be absent and G constant", [](auto& options) {
    options.loss = NetworkLoss::kOneSided;
    options.parts.f(nn::Dependence::kAffine);
  });
  expect_of_option("the samples for validation must have 2 inputs, as the others; got 1", [&](auto& options) {
    options.validation_samples = {good.x.slice(1, 1), good.y};
  });
}

}  // namespace lcp::learning::fit_network_test
