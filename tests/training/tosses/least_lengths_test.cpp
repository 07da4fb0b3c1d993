#include "tosses/least_lengths.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lcp::training::least_lengths_test {

using torch::Tensor;

// Residuals [1, b, 2, 3] that are linear in two parameters, with errors that are common to the two windows of a toss.
struct Linear {
  static constexpr std::int64_t kTosses = 60;
  Tensor J, y, toss = at::arange(kTosses).repeat_interleave(2);

  explicit Linear(std::int64_t seed) {
    torch::manual_seed(seed);
    J = torch::randn({1, 2 * kTosses, 2, 3, 2}, torch::kDouble);
    const Tensor errors = torch::randn({1, kTosses, 2, 3}, torch::kDouble).repeat_interleave(2, 1);
    y = J.select(-1, 0) - 2 * J.select(-1, 1) + 0.3 * errors;
  }

  Tensor operator()(const Tensor& at) const { return (J * at).sum(-1) - y; }
};

TEST(LeastLengthsTest, EndsWhereTheSumOfTheLengthsIsLeast) {
  const Linear residuals(0);
  const auto sum = [&](const Tensor& at) { return residuals(at).norm(2, {-1}).sum().item<double>(); };
  const LeastLengths found = minimize_lengths(residuals, torch::zeros({2}, torch::kDouble), 0.01, residuals.toss, 30);
  const double least = sum(found.at);
  for (const auto& direction : {torch::tensor({1, 0}), torch::tensor({0, 1}), torch::tensor({1, 1})}) {
    for (const double step : {0.01, -0.01}) EXPECT_GT(sum(found.at + step * direction), least);
  }
  EXPECT_NEAR(found.at[0].item<double>(), 1, 0.1);
  EXPECT_NEAR(found.at[1].item<double>(), -2, 0.1);
  // The next step is that to the minimum, also where none was made.
  EXPECT_LT(found.step.norm().item<double>(), 1e-3);
  const Tensor away = found.at + torch::tensor({0.02, -0.01}, torch::kDouble);
  const LeastLengths first = minimize_lengths(residuals, away, 0.01, residuals.toss, 0);
  EXPECT_TRUE(first.at.equal(away));
  EXPECT_LT((away + first.step - found.at).norm().item<double>(), 0.01);
}

TEST(LeastLengthsTest, StandardDeviationsAreThoseOfOtherData) {
  constexpr int kTrials = 200;
  std::vector<Tensor> found, deviations;
  for (int k = 0; k < kTrials; ++k) {
    const Linear residuals(k);
    const auto one = minimize_lengths(residuals, torch::zeros({2}, torch::kDouble), 0.01, residuals.toss, 20);
    found.push_back(one.at);
    deviations.push_back(one.deviations);
  }
  const Tensor ratio = at::stack(deviations).mean(0) / at::stack(found).std(0);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(ratio[k].item<double>(), 1, 0.2) << k;
}

TEST(LeastLengthsTest, WhatNoResidualDependsOnIsNotSeen) {
  const Linear residuals(0);
  const auto padded = [&](const Tensor& at) { return residuals(at.slice(0, 0, 2)); };
  const auto found = minimize_lengths(padded, torch::zeros({3}, torch::kDouble), 0.01, residuals.toss, 20);
  EXPECT_TRUE(std::isinf(found.deviations[2].item<double>()));
  EXPECT_TRUE(std::isfinite(found.deviations[0].item<double>()));
  EXPECT_EQ(found.at[2].item<double>(), 0);

  // The residuals depend on the sum of two parameters alone.
  const auto summed = [&](const Tensor& at) {
    return residuals(at.slice(0, 0, 2) + at::cat({at.slice(0, 2), at.new_zeros({1})}));
  };
  const auto flat = minimize_lengths(summed, torch::zeros({3}, torch::kDouble), 0.01, residuals.toss, 20);
  EXPECT_NEAR((flat.at[0] + flat.at[2]).item<double>(), 1, 0.1);
  for (const int k : {0, 2}) EXPECT_TRUE(std::isinf(flat.deviations[k].item<double>())) << k;
  EXPECT_NEAR(flat.deviations[1].item<double>(), found.deviations[1].item<double>(), 1e-6);
}

TEST(LeastLengthsTest, FailedResidualsAreLeftOut) {
  const Linear residuals(0);
  const auto failing = [&](const Tensor& at) {
    Tensor r = residuals(at).clone();
    r.select(1, 3).fill_(std::nan(""));
    return r;
  };
  const auto found = minimize_lengths(failing, torch::zeros({2}, torch::kDouble), 0.01, residuals.toss, 20);
  EXPECT_NEAR(found.at[0].item<double>(), 1, 0.1);
  EXPECT_TRUE(found.deviations.isfinite().all().item<bool>());
}

}  // namespace lcp::training::least_lengths_test
