#include "lcp/solve_mixed.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "support/circuits.h"
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
  EXPECT_EQ(solve_mixed(one, 0 * one, 0 * one, one, one[0], -one[0], options).status.item<int>(), 3);
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

// Along a random relative change of all component values. The weights of x and z are the inverses of their sizes, since
// these differ by many orders of magnitude.
TEST_F(SolveMixedTest, DifferentiatesCircuitsWithRespectToTheirComponents) {
  for (const auto family : testing::kCircuitFamilies) {
    for (const double decades : {2.0, 12.0}) {
      int compared = 0;
      for (int seed = 0; seed < 20; ++seed) {
        const auto changed = [&](double change) {
          std::mt19937_64 random(seed);
          testing::MixedProblem problem = testing::circuit(random, family, 6, decades, change);
          const int size = problem.size();
          return std::tuple(torch::from_blob(problem.H.data(), {size, size}, torch::kDouble).clone(),
                            torch::from_blob(problem.h.data(), {size}, torch::kDouble).clone(), problem.k);
        };
        const auto solved = [](const Tensor& H, const Tensor& h, int k) {
          const auto n = h.size(0) - k;
          const auto block = [&](int row, std::int64_t rows, int column, std::int64_t columns) {
            return H.narrow(0, row, rows).narrow(1, column, columns);
          };
          const MixedResult result = solve({block(0, k, 0, k), block(0, k, k, n), block(k, n, 0, k), block(k, n, k, n),
                                            h.narrow(0, 0, k), h.narrow(0, k, n)});
          EXPECT_EQ(result.status.item<int>(), 0);
          return torch::cat({result.x, result.z, result.w});
        };
        auto [H, h, k] = changed(0);
        const Tensor v = solved(H, h, k);
        const auto n = h.size(0) - k;
        const Tensor larger = torch::maximum(v.narrow(0, k, n), v.narrow(0, k + n, n));
        if ((larger <= 1e-12 * v.abs().max()).any().item<bool>()) continue;  // a tie
        const Tensor basic = torch::cat({torch::ones({k}, torch::kBool), v.narrow(0, k, n) > 0}).nonzero().squeeze(-1);
        const Tensor singular = torch::linalg_svdvals(H.index_select(0, basic).index_select(1, basic));
        if ((singular.min() <= 1e-14 * singular.max()).item<bool>()) continue;  // not the only solution
        const Tensor is_round_off = v.abs() <= 1e-15 * v.abs().max();
        const Tensor weight = torch::where(is_round_off, torch::zeros_like(v), torch::randn_like(v) / v);
        (weight * solved(H.requires_grad_(), h.requires_grad_(), k)).sum().backward();
        bool stays = true;                                      // at this solution: with relays there may be several
        const auto slopes = [&, &H = H, &h = h](double step) {  // by finite differences, and by the gradient
          const auto [H_above, h_above, k_above] = changed(step);
          const auto [H_below, h_below, k_below] = changed(-step);
          const Tensor above = solved(H_above, h_above, k_above), below = solved(H_below, h_below, k_below);
          const Tensor difference = above - below;
          stays = stays && torch::allclose(above, v, 0.1) && torch::allclose(below, v, 0.1);
          const Tensor along = (H.grad() * (H_above - H_below)).sum() + (h.grad() * (h_above - h_below)).sum();
          return std::pair((weight * difference).sum().item<double>() / (2 * step), along.item<double>() / (2 * step));
        };
        const auto [one, exact] = slopes(1e-5);
        const auto [other, exact_too] = slopes(1e-6);
        EXPECT_TRUE(std::isfinite(exact));
        // Else there is a kink between both, or rounding errors decide.
        if (!stays || !(std::abs(one - other) <= 1e-5 * std::abs(one))) continue;
        ++compared;
        EXPECT_NEAR(exact, one, 1e-4 * std::abs(one))
            << testing::name_of(family) << ", " << decades << " decades, seed " << seed;
      }
      EXPECT_GE(compared, 6) << testing::name_of(family) << ", " << decades << " decades";
    }
  }
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
