#include "lcp/identification/least_lengths.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace lcp::identification {
namespace {

using torch::Tensor;

// Residuals [1, b, 2, 3] that are linear in two parameters, with errors that are common to the two windows of a group.
struct Linear {
  static constexpr std::int64_t kGroups = 60;
  Tensor J, y, group = at::arange(kGroups).repeat_interleave(2);

  explicit Linear(std::int64_t seed) {
    torch::manual_seed(seed);
    J = torch::randn({1, 2 * kGroups, 2, 3, 2}, torch::kDouble);
    const Tensor errors = torch::randn({1, kGroups, 2, 3}, torch::kDouble).repeat_interleave(2, 1);
    y = J.select(-1, 0) - 2 * J.select(-1, 1) + 0.3 * errors;
  }

  Tensor operator()(const Tensor& at) const { return (J * at).sum(-1) - y; }
};

TEST(LeastLengthsTest, EndsWhereTheSumOfTheLengthsIsLeast) {
  const Linear residuals(0);
  const auto sum = [&](const Tensor& at) { return residuals(at).norm(2, {-1}).sum().item<double>(); };
  const LeastLengths found = least_lengths(residuals, torch::zeros({2}, torch::kDouble), residuals.group, {0.01, 30});
  const double least = sum(found.theta);
  for (const auto& direction : {torch::tensor({1, 0}), torch::tensor({0, 1}), torch::tensor({1, 1})}) {
    for (const double step : {0.01, -0.01}) EXPECT_GT(sum(found.theta + step * direction), least);
  }
  EXPECT_NEAR(found.theta[0].item<double>(), 1, 0.1);
  EXPECT_NEAR(found.theta[1].item<double>(), -2, 0.1);
  // The next step is that to the minimum, also where none was made.
  EXPECT_LT(found.step.norm().item<double>(), 1e-3);
  const Tensor away = found.theta + torch::tensor({0.02, -0.01}, torch::kDouble);
  const LeastLengths first = least_lengths(residuals, away, residuals.group, {0.01, 0});
  EXPECT_TRUE(first.theta.equal(away));
  EXPECT_LT((away + first.step - found.theta).norm().item<double>(), 0.01);
}

TEST(LeastLengthsTest, StandardDeviationsAreThoseOfOtherData) {
  constexpr int kTrials = 200;
  std::vector<Tensor> found, deviations;
  for (int k = 0; k < kTrials; ++k) {
    const Linear residuals(k);
    const auto one = least_lengths(residuals, torch::zeros({2}, torch::kDouble), residuals.group, {0.01, 20});
    found.push_back(one.theta);
    deviations.push_back(one.std);
  }
  const Tensor ratio = at::stack(deviations).mean(0) / at::stack(found).std(0);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(ratio[k].item<double>(), 1, 0.2) << k;
}

TEST(LeastLengthsTest, WhatNoResidualDependsOnIsNotSeen) {
  const Linear residuals(0);
  const auto padded = [&](const Tensor& at) { return residuals(at.slice(0, 0, 2)); };
  const auto found = least_lengths(padded, torch::zeros({3}, torch::kDouble), residuals.group, {0.01, 20});
  EXPECT_TRUE(std::isinf(found.std[2].item<double>()));
  EXPECT_TRUE(std::isfinite(found.std[0].item<double>()));
  EXPECT_EQ(found.theta[2].item<double>(), 0);

  // The residuals depend on the sum of two parameters alone.
  const auto summed = [&](const Tensor& at) {
    return residuals(at.slice(0, 0, 2) + at::cat({at.slice(0, 2), at.new_zeros({1})}));
  };
  const auto flat = least_lengths(summed, torch::zeros({3}, torch::kDouble), residuals.group, {0.01, 20});
  EXPECT_NEAR((flat.theta[0] + flat.theta[2]).item<double>(), 1, 0.1);
  for (const int k : {0, 2}) EXPECT_TRUE(std::isinf(flat.std[k].item<double>())) << k;
  EXPECT_NEAR(flat.std[1].item<double>(), found.std[1].item<double>(), 1e-6);
}

TEST(LeastLengthsTest, FailedResidualsAreLeftOut) {
  const Linear residuals(0);
  const auto failing = [&](const Tensor& at) {
    Tensor r = residuals(at).clone();
    r.select(1, 3).fill_(std::nan(""));
    return r;
  };
  const auto found = least_lengths(failing, torch::zeros({2}, torch::kDouble), residuals.group, {0.01, 20});
  EXPECT_NEAR(found.theta[0].item<double>(), 1, 0.1);
  EXPECT_TRUE(found.std.isfinite().all().item<bool>());
}

// Residuals with an own parameter of each window, y = J theta + K own, of which the own parameters are random.
TEST(LeastLengthsTest, OwnParametersAreEliminated) {
  constexpr int kTrials = 100;
  std::vector<Tensor> found, deviations;
  double ignorant = 0;
  for (int k = 0; k < kTrials; ++k) {
    const Linear residuals(k);
    const std::int64_t count = residuals.group.size(0);
    const Tensor K = torch::randn({1, count, 2, 3, 1}, torch::kDouble), own = torch::randn({count, 1}, torch::kDouble);
    const auto of_own = [&](const Tensor& x) { return (K * x.view({1, count, 1, 1, 1})).sum(-1); };
    const Tensor extra = of_own(own);
    const auto all = [&](const Tensor& theta, const Tensor& mine) { return residuals(theta) - extra + of_own(mine); };
    const Tensor start = torch::zeros({2}, torch::kDouble), none = torch::zeros({count, 1}, torch::kDouble);
    const LeastLengths one = least_lengths(all, start, none, residuals.group, {.step = 0.01, .max_iterations = 20});
    EXPECT_LT((one.own - own).square().mean().item<double>(), 0.3);
    found.push_back(one.theta);
    deviations.push_back(one.std);
    const auto without = [&](const Tensor& theta) { return residuals(theta) - extra; };
    ignorant += least_lengths(without, start, residuals.group, {0.01, 20}).std.mean().item<double>() / kTrials;
  }
  const Tensor spread = at::stack(found).std(0), ratio = at::stack(deviations).mean(0) / spread;
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(ratio[k].item<double>(), 1, 0.25) << k;
  EXPECT_LT(spread.max().item<double>(), 0.8 * ignorant);
  EXPECT_LT((at::stack(found).mean(0) - torch::tensor({1., -2.}, torch::kDouble)).abs().max().item<double>(), 0.02);
}

TEST(LeastLengthsTest, TasksMayBeDividedInAnyOrder) {
  const Linear residuals(0);
  const Tensor start = torch::zeros({2}, torch::kDouble);
  LeastLengthsOptions options{0.01, 5};
  const LeastLengths one = least_lengths(residuals, start, residuals.group, options);
  std::int64_t calls = 0;
  options.tasks = [&](std::int64_t count, const std::function<Tensor(std::int64_t)>& work) {
    std::vector<Tensor> all(static_cast<std::size_t>(count));
    for (std::int64_t k = count - 1; k >= 0; --k) all[static_cast<std::size_t>(k)] = work(k);
    ++calls;
    return all;
  };
  const LeastLengths other = least_lengths(residuals, start, residuals.group, options);
  EXPECT_TRUE(other.theta.equal(one.theta) && other.covariance.equal(one.covariance));
  EXPECT_GT(calls, 0);
}

TEST(LeastLengthsTest, RefusesShapesThatDoNotFit) {
  const Linear residuals(0);
  const Tensor start = torch::zeros({2}, torch::kDouble);
  EXPECT_THROW(least_lengths(residuals, start.unsqueeze(0), residuals.group), c10::Error);
  EXPECT_THROW(least_lengths(residuals, start, residuals.group.slice(0, 1)), c10::Error);
  EXPECT_THROW(least_lengths(residuals, start, residuals.group, {.step = 0}), c10::Error);
}

}  // namespace
}  // namespace lcp::identification
