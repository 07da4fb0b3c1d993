// The options of lcp::solve that choose the gradient, through the C++ interface.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lcp/solve.h"

namespace lcp {
namespace {

using torch::Tensor;

Tensor tensor(std::vector<double> values) { return torch::tensor(values, torch::kDouble); }

TEST(TiesTest, DecideTheGradient) {
  for (const auto& [ties, slope] :
       {std::pair<const char*, double>{"inactive", 0.0}, {"active", -0.5}, {"midpoint", -0.25}}) {
    SolveOptions options;
    options.ties = ties;
    const Tensor q = tensor({0}).requires_grad_();
    solve(torch::full({1, 1}, 2.0, torch::kDouble), q, options).z.sum().backward();
    EXPECT_EQ(q.grad().item<double>(), slope);
  }
}

TEST(KappaTest, SmoothsTheGradientAndNothingElse) {
  SolveOptions options;
  options.kappa = 0.1;
  for (const double value : {-1.0, 0.0, 0.3}) {
    const Tensor q = tensor({value}).requires_grad_();
    const Tensor z = solve(torch::full({1, 1}, 2.0, torch::kDouble), q, options).z;
    EXPECT_EQ(z.item<double>(), std::max(0.0, -value / 2));
    z.sum().backward();
    EXPECT_NEAR(q.grad().item<double>(), (-1 + value / std::sqrt(value * value + 0.8)) / 4, 1e-14);
  }
}

TEST(GuessTest, IsVerifiedBeforeItIsUsed) {
  const Tensor M = torch::ones({2, 2}, torch::kDouble);  // of rank one: a segment of solutions
  SolveOptions options;
  for (const auto& guess : {std::vector<double>{1, 0}, {0, 1}, {1, 1}, {0, 0}, {std::nan(""), 1}}) {
    options.guess = tensor(guess);
    const SolveResult result = solve(M, -torch::ones({2}, torch::kDouble), options);
    EXPECT_EQ(result.status.item<int>(), 0);
    EXPECT_NEAR(result.z.sum().item<double>(), 1, 1e-14);
  }
}

}  // namespace
}  // namespace lcp
