#include "linear_program/complementarity_program.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <utility>

#include "lcp/physics/sliding_block.h"
#include "support/tensors.h"

namespace lcp::training::complementarity_program_test {

using lcp::testing::everywhere;
using lcp::testing::largest;
using lcp::testing::numbers;
using torch::Tensor;

KnownEntries nothing(std::int64_t n, std::int64_t k) {
  return {torch::zeros({n, n + k}, torch::kBool), torch::zeros({n, n + k}, torch::kDouble)};
}

struct Data {
  Tensor lambda, d;  // [samples, 3]: lambda_plus, lambda_minus, gamma and v, u, 1
};

// Steps of a block with m = dt = mu = g = 1. share: of the largest sum of the forces that a block which sticks may
// have.
Data block(std::int64_t samples, double share) {
  torch::manual_seed(1);
  const Tensor v = torch::randn({samples}, torch::kDouble), u = torch::randn({samples}, torch::kDouble);
  const auto step = physics::exact_step(v, u, physics::SlidingBlock::of(1, 1, 1, 1));
  const Tensor spare = share / 2 * (1 - step.lambda_plus - step.lambda_minus).clamp_min(0);
  return {torch::stack({step.lambda_plus + spare, step.lambda_minus + spare, step.gamma}, 1),
          torch::stack({v, u, torch::ones_like(v)}, 1)};
}

Tensor true_rows() { return numbers({1, -1, 1, 1, 1, 0, -1, 1, 1, -1, -1, 0, -1, -1, 0, 0, 0, 1}).view({3, 6}); }

// M of row i times lambda plus W of row i times d, [samples].
Tensor w(const Tensor& row, const Data& data) { return torch::matmul(torch::cat({data.lambda, data.d}, 1), row); }

TEST(ComplementarityProgramTest, HasTheRowsAndColumnsOfTheNotes) {
  const Tensor lambda = numbers({1, 2, 3, 4, 5, 6}).view({2, 3}), d = numbers({7, 8, 1, 9, 10, 1}).view({2, 3});
  const LinearProgram program = complementarity_program(lambda, d, nothing(3, 3), 0.5);
  EXPECT_EQ(program.constraints.sizes(), (std::vector<std::int64_t>{6, 18}));
  const Tensor row = numbers({0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0, 9, 10, 1, 0, 0, 0});  // w_2 of the second sample
  EXPECT_TRUE(torch::equal(program.constraints[4], row));
  EXPECT_TRUE(everywhere(program.bound == 0.5));
  EXPECT_TRUE(everywhere(program.lower == -std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(everywhere(program.upper == std::numeric_limits<double>::infinity()));
}

TEST(ComplementarityProgramTest, CostsTheComplementarityAndConstrainsW) {
  torch::manual_seed(2);
  const std::int64_t n = 2, k = 3, samples = 7;
  const Tensor lambda = torch::rand({samples, n}, torch::kDouble), d = torch::randn({samples, k}, torch::kDouble);
  const Tensor M = torch::randn({n, n}, torch::kDouble), W = torch::randn({n, k}, torch::kDouble);
  const LinearProgram program = complementarity_program(lambda, d, nothing(n, k));
  const Tensor x = torch::cat({M.flatten(), W.flatten()});
  const Tensor expected = torch::matmul(lambda, M.t()) + torch::matmul(d, W.t());
  EXPECT_LT(largest(torch::matmul(program.constraints, x).view({samples, n}) - expected), 1e-14);
  EXPECT_LT(largest((program.cost * x).sum() - (lambda * expected).sum()), 1e-13);
}

TEST(ComplementarityProgramTest, HoldsKnownEntriesByTheirBounds) {
  KnownEntries known = nothing(3, 3);
  known.mask[2][0] = known.mask[1][5] = true;
  known.values[2][0] = -1;
  const LinearProgram program =
      complementarity_program(torch::ones({1, 3}, torch::kDouble), torch::ones({1, 3}, torch::kDouble), known);
  const Tensor held = program.lower == program.upper;
  EXPECT_EQ(lcp::testing::list(held.nonzero()), (std::vector<std::int64_t>{6, 14}));  // M31 and W23
  EXPECT_TRUE(torch::equal(program.lower.index({held}), numbers({-1, 0})));
}

TEST(ComplementarityProgramTest, SeparatesIntoTheProgramsOfItsRows) {
  const Data data = block(5, 0.5);
  KnownEntries known = nothing(3, 3);
  known.mask[1][2] = true;
  known.values[1][2] = 1;
  const LinearProgram program = complementarity_program(data.lambda, data.d, known, 0.1);
  double cost = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const LinearProgram row = row_program(program, 3, i);
    EXPECT_TRUE(torch::equal(row.constraints, torch::cat({data.lambda, data.d}, 1)));
    EXPECT_TRUE(everywhere(row.bound == 0.1));
    EXPECT_EQ(lcp::testing::count(row.lower == row.upper), i == 1 ? 1 : 0);
    cost += (row.cost * true_rows()[i]).sum().item<double>();
  }
  const Tensor truth = torch::cat({true_rows().slice(1, 0, 3).flatten(), true_rows().slice(1, 3).flatten()});
  EXPECT_NEAR(cost, (program.cost * truth).sum().item<double>(), 1e-14);
}

TEST(ComplementarityProgramTest, AddsTheAbsoluteValuesOfTheNotes) {
  const Data data = block(4, 1);
  const LinearProgram row = row_program(complementarity_program(data.lambda, data.d, nothing(3, 3)), 3, 0);
  const LinearProgram l1 = with_l1(row, 0.25);
  const Tensor one = torch::eye(6, torch::kDouble);
  // [I -I; -I -I] (x, s) <= 0
  EXPECT_TRUE(
      torch::equal(-l1.constraints.slice(0, 4), torch::cat({torch::cat({one, -one}, 1), torch::cat({-one, -one}, 1)})));
  EXPECT_TRUE(everywhere(l1.bound.slice(0, 4) == 0));
  EXPECT_TRUE(torch::equal(l1.constraints.slice(0, 0, 4).slice(1, 0, 6), row.constraints));
  EXPECT_EQ(largest(l1.constraints.slice(0, 0, 4).slice(1, 6)), 0);
  EXPECT_TRUE(torch::equal(l1.cost, torch::cat({row.cost, torch::full({6}, 0.25, torch::kDouble)})));
}

TEST(ComplementarityProgramTest, IsAtItsBoundAtTheTruthAndAtTheTrivialSolution) {
  const double epsilon = 0.01;
  for (const double share : {0., 0.5, 1.}) {
    const Data data = block(300, share);
    const LinearProgram program = complementarity_program(data.lambda, data.d, nothing(3, 3), epsilon);
    const Tensor bound = lower_bound(data.lambda, epsilon);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Tensor trivial = epsilon * numbers({0, 0, 0, 0, 0, 1});
      for (const double scale : {0., 1., 3.}) {
        const Tensor row = scale * true_rows()[i] + trivial;
        const LinearProgram one = row_program(program, 3, i);
        EXPECT_GT((w(row, data) - epsilon).min().item<double>(), -1e-14);
        EXPECT_LT(largest((one.cost * row).sum() - bound[i]), 1e-12);
      }
    }
  }
}

// The largest |w| of a second row where lambda_minus > 0, and the mean of |w| lambda_minus.
std::pair<double, double> second_row_on(const Data& data, const Tensor& row) {
  const Tensor lambda = data.lambda.select(1, 1), active = w(row, data).index({lambda > 0});
  return {largest(active), (w(row, data) * lambda).abs().mean().item<double>()};
}

TEST(ComplementarityProgramTest, TakesADegenerateRowForTheTruthWhereTheForcesSumToTheirLimit) {
  const Data maximal = block(300, 1);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor active = maximal.lambda.select(1, i) > 0;
    EXPECT_LT(largest(w(true_rows()[i], maximal).index({active})), 1e-12);
  }
  const Tensor exact = numbers({-2.208, -1.57, 0.319, -0.319, -0.319, 1.889});
  EXPECT_LT(second_row_on(maximal, exact).first, 1e-12);
  EXPECT_GT(w(exact, maximal).min().item<double>(), -1e-12);

  // That of the notes has w in (.007, .009), which is epsilon; but not on forces that are divided otherwise.
  const Tensor of_the_notes = numbers({-2.21, -1.57, 0.319, -0.319, -0.319, 1.898});
  const Tensor active = w(of_the_notes, maximal).index({maximal.lambda.select(1, 1) > 0});
  EXPECT_GT(active.min().item<double>(), 0.007 - 1e-12);
  EXPECT_LT(active.max().item<double>(), 0.009 + 1e-12);
  EXPECT_LT(second_row_on(maximal, of_the_notes).second, 0.006);
  EXPECT_GT(second_row_on(block(300, 0), of_the_notes).first, 1.5);
  EXPECT_GT(second_row_on(block(300, 0.5), of_the_notes).first, 0.8);
}

TEST(ComplementarityProgramTest, HasConstraintsThatMakeAMatrixMonotone) {
  const Data data = block(50, 0.5);
  const LinearProgram free = complementarity_program(data.lambda, data.d, nothing(3, 3));
  const LinearProgram monotone = monotone_program(free);
  const auto fits = [&](const Tensor& rows) {
    const Tensor x = torch::cat({rows.slice(1, 0, 3).flatten(), rows.slice(1, 3).flatten()});
    const Tensor slack = (monotone.constraints * x).sum(-1) - monotone.bound;
    const bool inside = everywhere((x >= monotone.lower) & (x <= monotone.upper));
    return inside && slack.slice(0, free.bound.size(0)).min().item<double>() >= -1e-12;
  };
  EXPECT_TRUE(fits(true_rows()));
  const auto changed = [&](std::int64_t i, std::int64_t j, double by) {
    Tensor rows = true_rows().clone();
    rows[i][j] += by;
    return rows;
  };
  EXPECT_FALSE(fits(changed(2, 2, 1e-3)));  // M33
  EXPECT_FALSE(fits(changed(2, 2, -1e-3)));
  const std::int64_t count = free.bound.size(0);
  const auto most_violated = [&](const Tensor& rows) {
    const Tensor x = torch::cat({rows.slice(1, 0, 3).flatten(), rows.slice(1, 3).flatten()});
    return (monotone.constraints.slice(0, count) * x).sum(-1).min().item<double>();
  };
  EXPECT_GE(most_violated(true_rows()), -1e-12);
  for (const auto& [i, j] : {std::pair(0, 2), std::pair(2, 0), std::pair(1, 2), std::pair(2, 1)}) {
    for (const double by : {-0.1, 0.1}) EXPECT_NEAR(most_violated(changed(i, j, by)), -0.1, 1e-12);
  }
  EXPECT_NEAR(most_violated(changed(0, 0, -0.1)), -0.1, 1e-12);
  EXPECT_NEAR(most_violated(changed(1, 1, -0.1)), -0.1, 1e-12);
  EXPECT_NEAR(most_violated(changed(0, 1, -0.1)), -0.05, 1e-12);
  EXPECT_GE(most_violated(changed(0, 0, 0.1)), -1e-12);

  const LinearProgram reordered = with_row_first(monotone, 3, 1);
  const Tensor second = torch::tensor({3, 4, 5, 12, 13, 14}, torch::kLong);
  EXPECT_TRUE(torch::equal(reordered.cost.slice(0, 0, 6), monotone.cost.index_select(0, second)));
  EXPECT_TRUE(torch::equal(reordered.constraints.slice(1, 0, 6), monotone.constraints.index_select(1, second)));
  EXPECT_NEAR(reordered.cost.sum().item<double>(), monotone.cost.sum().item<double>(), 1e-9);
}

TEST(ComplementarityProgramTest, RefusesShapesThatDoNotFit) {
  const Tensor one = torch::ones({2, 3}, torch::kDouble);
  EXPECT_THROW(complementarity_program(one[0], one, nothing(3, 3)), c10::Error);
  EXPECT_THROW(complementarity_program(one.to(torch::kFloat), one, nothing(3, 3)), c10::Error);
  EXPECT_THROW(complementarity_program(one, one.slice(0, 1), nothing(3, 3)), c10::Error);
  EXPECT_THROW(complementarity_program(one, one, nothing(3, 2)), c10::Error);
  EXPECT_THROW(complementarity_program(one, one, nothing(3, 3), -1), c10::Error);
  EXPECT_THROW(with_l1(complementarity_program(one, one, nothing(3, 3)), -1), c10::Error);
}

}  // namespace lcp::training::complementarity_program_test
