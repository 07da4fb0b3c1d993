#include "lcp/solve_mixed.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "support/errors.h"
#include "support/finite_differences.h"

namespace lcp {
namespace {

using torch::Tensor;

// Problems of k = 2 equations and n = 3 pairs, whose matrix [A B; C M] is definite but not symmetric.
class SolveMixedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(2);
    do {
      const Tensor F = torch::randn({4, 5, 5}, torch::kDouble), S = torch::randn({4, 5, 5}, torch::kDouble);
      const Tensor H = torch::matmul(F.mT(), F) + torch::eye(5, torch::kDouble) + S - S.mT();
      const Tensor h = torch::randn({4, 5}, torch::kDouble);
      const auto block = [&](int row, int rows, int column, int columns) {
        return H.narrow(1, row, rows).narrow(2, column, columns).contiguous();
      };
      inputs_ = {block(0, 2, 0, 2), block(0, 2, 2, 3), block(2, 3, 0, 2),
                 block(2, 3, 2, 3), h.slice(1, 0, 2),  h.slice(1, 2, 5)};
    } while (!away_from_ties(solve(inputs_)));
  }

  static bool away_from_ties(const MixedResult& result) {
    return torch::maximum(result.z, result.w).min().item<double>() > 1e-2;
  }

  static MixedResult solve(const testing::Inputs& x, const SolveOptions& options = {}) {
    return solve_mixed(x[0], x[1], x[2], x[3], x[4], x[5], options);
  }

  static Tensor times(const Tensor& A, const Tensor& x) { return torch::matmul(A, x.unsqueeze(-1)).squeeze(-1); }

  // The largest error in the conditions that define a solution.
  static double error(const testing::Inputs& x, const MixedResult& result) {
    const Tensor equation = times(x[0], result.x) + times(x[1], result.z) + x[4];
    const Tensor w = times(x[2], result.x) + times(x[3], result.z) + x[5];
    return torch::stack({equation.abs().max(), (w - result.w).abs().max(), torch::minimum(result.z, w).abs().max()})
        .max()
        .item<double>();
  }

  testing::Inputs inputs_;
};

TEST_F(SolveMixedTest, SolvesABatchInBothPrecisions) {
  const MixedResult result = solve(inputs_);
  EXPECT_TRUE((result.status == 0).all().item<bool>());
  EXPECT_LT(error(inputs_, result), 1e-12);
  EXPECT_TRUE((result.z * result.w == 0).all().item<bool>());
  testing::Inputs single;
  for (const Tensor& x : inputs_) single.push_back(x.to(torch::kFloat));
  const MixedResult rounded = solve(single);
  EXPECT_EQ(rounded.x.scalar_type(), torch::kFloat);
  EXPECT_LT(error(single, rounded), 1e-4);
  EXPECT_TRUE(torch::allclose(rounded.x.to(torch::kDouble), result.x, 1e-3, 1e-3));
}

TEST_F(SolveMixedTest, TakesMatricesThatAreSharedAndEmptyParts) {
  testing::Inputs shared = inputs_;
  for (int i : {0, 1, 2, 3}) shared[i] = inputs_[i][0];
  const MixedResult result = solve(shared);
  EXPECT_EQ(result.x.sizes(), (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(result.w.sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(result.status.sizes(), (std::vector<std::int64_t>{4}));
  EXPECT_LT(error(shared, result), 1e-12);

  const auto zeros = [](const std::vector<std::int64_t>& shape) { return torch::zeros(shape, torch::kDouble); };
  const Tensor& A = inputs_[0];
  const MixedResult equations = solve({A, zeros({2, 0}), zeros({0, 2}), zeros({0, 0}), inputs_[4], zeros({0})});
  EXPECT_TRUE(torch::allclose(times(A, equations.x), -inputs_[4]));
  const MixedResult pairs = solve({zeros({0, 0}), zeros({0, 3}), zeros({3, 0}), inputs_[3], zeros({0}), inputs_[5]});
  EXPECT_TRUE(torch::equal(pairs.z, lcp::solve(inputs_[3], inputs_[5]).z));
}

TEST_F(SolveMixedTest, GivesEachElementItsOwnStatus) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  testing::Inputs x = inputs_;
  for (Tensor& tensor : x) tensor = tensor.clone();
  x[4][1][0] = nan;
  // w = x_1 - 1 and x_1 = 0, so that no z has w >= 0.
  for (int i : {0, 1, 2, 3, 4, 5}) x[i][2].zero_();
  x[0][2].copy_(torch::eye(2, torch::kDouble));
  x[5][2][0] = -1;
  const MixedResult result = solve(x);
  EXPECT_TRUE(torch::equal(result.status, torch::tensor({0, 4, 2, 0}, torch::kChar)));
  EXPECT_TRUE(result.x.isnan().all(-1).equal(torch::tensor({false, true, true, false})));
  const MixedResult alone = solve(inputs_);
  for (int b : {0, 3}) EXPECT_TRUE(torch::equal(result.z[b], alone.z[b]) && torch::equal(result.x[b], alone.x[b]));
  SolveOptions options;
  options.max_pivots = 0;
  const Tensor one = torch::ones({1, 1});
  EXPECT_EQ(solve_mixed(one, one, -one, one, one[0], -2 * one[0], options).status.item<int>(), 3);
}

TEST_F(SolveMixedTest, TakesASingularA) {
  // max x, x <= 1: 0 = z - 1, w = 1 - x.
  const Tensor zero = torch::zeros({1, 1}, torch::kDouble), one = torch::ones({1, 1}, torch::kDouble);
  const MixedResult result = solve_mixed(zero, one, -one, zero, -one[0], one[0]);
  EXPECT_EQ(result.status.item<int>(), 0);
  EXPECT_NEAR(result.x.item<double>(), 1, 1e-14);
  EXPECT_NEAR(result.z.item<double>(), 1, 1e-14);
}

TEST_F(SolveMixedTest, HasTheGradientOfFiniteDifferences) {
  const testing::Function all = [](const testing::Inputs& x) {
    const MixedResult result = solve(x);
    return torch::cat({result.x, result.z, result.w}, -1);
  };
  EXPECT_LT(testing::gradient_error(all, inputs_), 1e-6);
  testing::Inputs first;
  for (const Tensor& x : inputs_) first.push_back(x[0]);
  EXPECT_LT(testing::second_gradient_error(all, first), 1e-5);
}

TEST_F(SolveMixedTest, NamesWhatIsWrongWithItsArguments) {
  const auto error_with = [&](int i, const Tensor& x) {
    testing::Inputs changed = inputs_;
    changed[i] = x;
    return testing::error_of([&] { solve(changed); });
  };
  const Tensor number = torch::ones({}, torch::kDouble);
  EXPECT_EQ(error_with(0, inputs_[1]), "A must be [..., k, k]; got [4, 2, 3]");
  EXPECT_EQ(error_with(1, inputs_[2]), "B must be [..., k, n] with A's k = 2 and M's n = 3; got [4, 3, 2]");
  EXPECT_EQ(error_with(3, inputs_[2]), "M must be [..., n, n]; got [4, 3, 2]");
  EXPECT_EQ(error_with(4, number), "p must be [..., k] with A's k = 2; got []");
  EXPECT_EQ(error_with(5, inputs_[5].to(torch::kFloat)), "q must have A's dtype, Double; got Float");
  EXPECT_EQ(error_with(0, inputs_[0].to(torch::kLong)), "A must be float32 or float64; got Long");
  SolveOptions options;
  options.guess = torch::ones({2}, torch::kDouble);
  EXPECT_EQ(testing::error_of([&] { solve(inputs_, options); }), "guess must be [..., n] with M's n = 3; got [2]");
}

}  // namespace
}  // namespace lcp
