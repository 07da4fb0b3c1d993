// solve_mixed and what is declared of gradients, by the C++ interface.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "lcp/lcp.h"
#include "support/finite_differences.h"

namespace lcp {
namespace {

using testing::Inputs;
using torch::Tensor;

Tensor tensor(std::vector<double> values) { return torch::tensor(values, torch::kDouble); }

bool near(const Tensor& a, const Tensor& b) { return torch::allclose(a, b, 1e-9, 1e-9); }

// The blocks of a definite, nonsymmetric H of 2 equations and 3 pairs, and (p, q) away from ties.
Inputs mixed_problem() {
  torch::manual_seed(2);
  for (;;) {
    const Tensor A = torch::randn({5, 5}, torch::kDouble);
    const Tensor skew = torch::randn({5, 5}, torch::kDouble);
    const Tensor H = A.mT().matmul(A) + torch::eye(5, torch::kDouble) + skew - skew.mT();
    const Tensor h = torch::randn({4, 5}, torch::kDouble);
    const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
      return H.narrow(0, row, rows).narrow(1, column, columns).clone();
    };
    const Inputs inputs = {block(0, 2, 0, 2), block(0, 2, 2, 3), block(2, 3, 0, 2),
                           block(2, 3, 2, 3), h.slice(1, 0, 2),  h.slice(1, 2, 5)};
    const MixedResult result = solve_mixed(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5]);
    if (torch::maximum(result.z, result.w).min().item<double>() > 1e-2) return inputs;
  }
}

Tensor mixed_solution(const Inputs& in) {
  const MixedResult result = solve_mixed(in[0], in[1], in[2], in[3], in[4], in[5]);
  return torch::cat({result.x, result.z, result.w}, -1);
}

TEST(SolveMixedTest, SolvesAndDifferentiatesTwice) {
  const Inputs in = mixed_problem();
  const MixedResult result = solve_mixed(in[0], in[1], in[2], in[3], in[4], in[5]);
  EXPECT_TRUE((result.status == 0).all().item<bool>());
  EXPECT_TRUE(near(result.x.matmul(in[0].mT()) + result.z.matmul(in[1].mT()) + in[4], torch::zeros_like(in[4])));
  EXPECT_TRUE(near(result.x.matmul(in[2].mT()) + result.z.matmul(in[3].mT()) + in[5], result.w));
  EXPECT_LT(testing::gradient_error(mixed_solution, in), 1e-7);
  EXPECT_LT(testing::second_gradient_error(mixed_solution, in), 1e-5);
}

TEST(SolveMixedTest, TakesASingularA) {
  // max x, x <= 1: 0 = z - 1, w = 1 - x.
  const Tensor zero = torch::zeros({1, 1}, torch::kDouble);
  const Tensor one = torch::ones({1, 1}, torch::kDouble);
  const MixedResult result = solve_mixed(zero, one, -one, zero, tensor({-1}), tensor({1}));
  EXPECT_EQ(result.status.item<int>(), 0);
  EXPECT_TRUE(near(result.x, tensor({1})) && near(result.z, tensor({1})));
}

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

TEST(CertifyTest, FindsTiesAndRank) {
  const Tensor M = torch::tensor({{2., 1.}, {1., 2.}}, torch::kDouble);
  const Tensor q = torch::tensor({{-2., -1.}, {-1., -1.}}, torch::kDouble);
  const Certificate certificate = certify(M, q, solve(M, q).z);
  EXPECT_TRUE(torch::equal(certificate.ties, torch::tensor({{false, true}, {false, false}})));
  EXPECT_TRUE(torch::equal(certificate.rank, torch::tensor({1, 2})));
  EXPECT_TRUE(near(certificate.condition, tensor({1, 3})));
  EXPECT_LT(certificate.residual.max().item<double>(), 1e-14);
  EXPECT_LT(certificate.margin[0].item<double>(), 1e-14);
  EXPECT_GT(certificate.margin[1].item<double>(), 0.1);
}

TEST(DirectionalDerivativeTest, IsOneSidedAtATie) {
  const Tensor M = torch::tensor({{2., 1.}, {1., 2.}}, torch::kDouble);
  const Tensor q = tensor({-2, -1});
  const Tensor z = solve(M, q).z;
  for (const double sign : {1.0, -1.0}) {
    const Tensor dq = sign * tensor({1, -1});
    const DirectionalDerivative d = directional_derivative(M, q, z, torch::zeros_like(M), dq);
    EXPECT_EQ(d.status.item<int>(), 0);
    EXPECT_TRUE(torch::allclose((solve(M, q + 1e-6 * dq).z - z) / 1e-6, d.dz, 0, 1e-8));
    EXPECT_TRUE(torch::allclose((solve(M, q + 1e-6 * dq).w - solve(M, q).w) / 1e-6, d.dw, 0, 1e-8));
  }
}

TEST(GradientRadiusTest, EndsWhereTheActiveSetChanges) {
  const Tensor M = torch::tensor({{2., 1.}, {1., 2.}}, torch::kDouble);
  const Tensor q = tensor({-2, 3});
  EXPECT_NEAR(gradient_radius(M, q, solve(M, q).z, tensor({0, -1})).item<double>(), 4, 1e-14);
  EXPECT_TRUE(std::isinf(gradient_radius(M, q, solve(M, q).z, tensor({0, 1})).item<double>()));
}

}  // namespace
}  // namespace lcp
