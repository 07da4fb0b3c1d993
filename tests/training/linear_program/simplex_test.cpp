#include "linear_program/simplex.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "sliding_block/samples.h"
#include "support/tensors.h"

namespace lcp::training::simplex_test {

using lcp::testing::everywhere;
using lcp::testing::largest;
using lcp::testing::numbers;
using torch::Tensor;
using Method = LinearProgramMethod;
using Status = LinearProgramStatus;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// minimise cost'x subject to constraints x >= bound, x >= 0.
LinearProgram program(const std::vector<double>& cost, const std::vector<double>& constraints,
                      const std::vector<double>& bound) {
  const auto p = static_cast<std::int64_t>(cost.size()), r = static_cast<std::int64_t>(bound.size());
  return {numbers(cost), numbers(constraints).view({r, p}), numbers(bound), torch::zeros({p}, torch::kDouble),
          torch::full({p}, kInfinity, torch::kDouble)};
}

TEST(SimplexTest, SolvesByEitherMethod) {
  for (const Method method : {Method::kSimplex, Method::kInteriorPoint}) {
    const LinearProgram corner = program({2, 3}, {1, 2, 3, 1}, {2, 3});  // at (4, 3) / 5
    const LinearProgramSolution solution = solve(corner, method);
    EXPECT_EQ(solution.status, Status::kSolved);
    EXPECT_LT(largest(solution.x - numbers({0.8, 0.6})), 1e-8);
    EXPECT_NEAR(solution.objective, 3.4, 1e-8);
  }
}

TEST(SimplexTest, TellsItsIterates) {
  const LinearProgram corner = program({2, 3}, {1, 2, 3, 1}, {2, 3});
  std::int64_t last = 0;
  double objective = 0, error = 1;
  const auto observer = [&](std::int64_t iteration, double objective_now, double error_now) {
    EXPECT_GE(iteration, last);
    last = iteration;
    objective = objective_now;
    error = error_now;
  };
  for (const Method method : {Method::kSimplex, Method::kInteriorPoint}) {
    last = 0;
    solve(corner, method, observer);
    EXPECT_GT(last, 0);
    EXPECT_NEAR(objective, 3.4, 1e-6);
    EXPECT_NEAR(error, 0, 1e-6);
  }
  std::int64_t calls = 0;
  optimal_set(corner, 2, [&](std::int64_t, double, double) { ++calls; });
  EXPECT_GT(calls, 0);
}

TEST(SimplexTest, SaysWhyThereIsNoSolution) {
  const LinearProgram infeasible = program({1}, {-1}, {1});
  const LinearProgram unbounded = program({-1}, {1}, {1});
  EXPECT_EQ(solve(infeasible).status, Status::kInfeasible);
  EXPECT_EQ(solve(unbounded).status, Status::kUnbounded);
  EXPECT_EQ(solve(infeasible, Method::kInteriorPoint).status, Status::kStopped);
  EXPECT_EQ(solve(unbounded, Method::kInteriorPoint).status, Status::kStopped);
  EXPECT_THROW(optimal_set(infeasible, 1), c10::Error);
}

TEST(SimplexTest, FindsAllSolutions) {
  const OptimalSet point = optimal_set(program({2, 3}, {1, 2, 3, 1}, {2, 3}), 2);
  EXPECT_EQ(point.directions.size(0), 0);
  EXPECT_LT(largest(point.lower - numbers({0.8, 0.6})) + largest(point.upper - point.lower), 1e-14);

  const OptimalSet segment = optimal_set(program({1, 1, 0}, {1, 1, 0, 0, 0, 1, 0, 0, -1}, {2, 3, -3}), 3);
  EXPECT_EQ(segment.directions.size(0), 1);
  EXPECT_LT(largest(segment.lower - numbers({0, 0, 3})) + largest(segment.upper - numbers({2, 2, 3})), 1e-14);
  EXPECT_NEAR(std::abs((segment.directions[0] * numbers({1, -1, 0})).sum().item<double>()), std::sqrt(2), 1e-14);

  // x_2 = 100 x_1 - 1, without an end, and x_3 >= 5.
  const OptimalSet rays = optimal_set(program({0, 0, 0}, {100, -1, 0, -100, 1, 0, 0, 0, 1}, {1, -1, 5}), 3);
  EXPECT_EQ(rays.directions.size(0), 2);
  EXPECT_LT(largest(rays.lower - numbers({0.01, 0, 5})), 1e-9);
  EXPECT_TRUE(everywhere(rays.upper == kInfinity));
  EXPECT_LT(largest(torch::matmul(rays.directions, numbers({100, -1, 0}))), 1e-9);

  EXPECT_EQ(optimal_set(program({1, 0}, {1, 0}, {1}), 1).directions.size(0), 0);  // the unknown that varies is not seen
}

TEST(SimplexTest, SeesWhatASmallCostDecides) {
  const OptimalSet set = optimal_set(program({1e-5, 1}, {1, 0, 0, 1}, {1, 1}), 2);
  EXPECT_EQ(set.directions.size(0), 0);
  EXPECT_LT(largest(set.upper - 1), 1e-14);
}

// Contact forces of a block with m = dt = mu = g = 1, and what is asked of M and W.
struct Fit {
  std::int64_t samples = 300;
  std::string split = "random";
  bool one_per_row = true;  // M13 = M23 = 1, M31 = -1
  bool bias = true;         // in the first two rows
  double epsilon = 0;
  std::int64_t seed = 0;

  KnownEntries known() const {
    KnownEntries known{torch::zeros({3, 6}, torch::kBool), torch::zeros({3, 6}, torch::kDouble)};
    if (one_per_row) {
      known.mask[0][2] = known.mask[1][2] = known.mask[2][0] = true;
      known.values[0][2] = known.values[1][2] = 1;
      known.values[2][0] = -1;
    }
    if (!bias) known.mask[0][5] = known.mask[1][5] = true;
    return known;
  }

  Tensor contact() const { return torch::cat({data().lambda, data().gamma.unsqueeze(-1)}, 1); }

  LinearProgram whole() const {
    const Samples steps = data();
    const Tensor state = torch::stack({steps.v, steps.u, torch::ones_like(steps.v)}, 1);
    return complementarity_program(contact(), state, known(), epsilon);
  }

  LinearProgram row(std::int64_t i) const { return row_program(whole(), 3, i); }

  Tensor rows(Method method = Method::kSimplex) const {
    std::vector<Tensor> rows;
    for (std::int64_t i = 0; i < 3; ++i) {
      const LinearProgramSolution solution = solve(row(i), method);
      EXPECT_EQ(solution.status, Status::kSolved);
      rows.push_back(solution.x);
    }
    return torch::stack(rows);
  }

 private:
  Samples data() const {
    RunFlags run;
    run.seed = seed;
    return load_data(run, {.mass = 1, .dt = 1, .mu = 1, .gravity = 1},
                     {.known_forces = KnownForces::kContact,
                      .samples = samples,
                      .data = {},
                      .states = "mixed",
                      .split = split})
        .training;
  }
};

Tensor true_rows() { return numbers({1, -1, 1, 1, 1, 0, -1, 1, 1, -1, -1, 0, -1, -1, 0, 0, 0, 1}).view({3, 6}); }

// In which the rows 1 and 2 vary where forces are maximal.
Tensor open_direction() { return numbers({1, 1, 0, 0, 0, -1}) / std::sqrt(3); }

TEST(BlockProgramTest, RecoversTheRowsOnceOneEntryOfEachIsKnown) {
  for (const std::int64_t samples : {30, 300}) {
    for (std::int64_t seed = 1; seed <= 3; ++seed) {
      for (const char* split : {"random", "half"}) {
        const Fit fit{.samples = samples, .split = split, .seed = seed};
        EXPECT_LT(largest(fit.rows() - true_rows()), 1e-8) << samples << " " << seed << " " << split;
        EXPECT_LT(largest(fit.rows(Method::kInteriorPoint) - true_rows()), 1e-6);
      }
      const Fit maximal{.samples = samples, .split = "maximal", .bias = false, .seed = seed};
      EXPECT_LT(largest(maximal.rows() - true_rows()), 1e-8);
    }
  }
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(optimal_set(Fit{}.row(i), 6).directions.size(0), 0);
}

TEST(BlockProgramTest, IsSolvedRowByRow) {
  const Fit fit{.epsilon = 0.1};
  const LinearProgramSolution whole = solve(fit.whole());
  const Tensor rows = torch::cat({whole.x.slice(0, 0, 9).view({3, 3}), whole.x.slice(0, 9).view({3, 3})}, 1);
  EXPECT_LT(largest(rows - fit.rows()), 1e-12);
  EXPECT_NEAR(whole.objective, lower_bound(fit.contact(), 0.1).sum().item<double>(), 1e-9);
}

TEST(BlockProgramTest, IsTrivialWithEpsilonAlone) {
  for (const char* split : {"minimal", "maximal", "random"}) {
    const Fit fit{.split = split, .one_per_row = false, .epsilon = 0.01};
    EXPECT_LT(largest(fit.rows() - 0.01 * numbers({0, 0, 0, 0, 0, 1})), 1e-12) << split;
  }
  const Fit without_bias{.split = "maximal", .one_per_row = false, .bias = false, .epsilon = 0.01};
  EXPECT_LT(largest(without_bias.rows().slice(0, 0, 2) - 0.01 * numbers({1, 1, 0, 0, 0, 0})), 1e-12);
}

TEST(BlockProgramTest, LeavesTheForceThatIsZeroOpenWhereForcesAreMinimal) {
  const Fit fit{.split = "minimal"};
  for (std::int64_t i = 0; i < 2; ++i) {
    const OptimalSet set = optimal_set(fit.row(i), 6);
    const std::int64_t j = 1 - i;  // M12 and M21
    EXPECT_EQ(set.directions.size(0), 1);
    EXPECT_NEAR(set.directions[0][j].abs().item<double>(), 1, 1e-9);
    EXPECT_NEAR(set.lower[j].item<double>(), -1, 1e-9);
    EXPECT_EQ(set.upper[j].item<double>(), kInfinity);
  }
  EXPECT_EQ(optimal_set(fit.row(2), 6).directions.size(0), 0);
}

TEST(BlockProgramTest, LeavesABiasOpenWhereForcesAreMaximal) {
  const Fit fit{.split = "maximal"};
  for (std::int64_t i = 0; i < 2; ++i) {
    const OptimalSet set = optimal_set(fit.row(i), 6);
    EXPECT_EQ(set.directions.size(0), 1);
    EXPECT_LT(1 - (set.directions[0] * open_direction()).sum().abs().item<double>(), 1e-12);
    for (const std::int64_t j : {0, 1, 5}) {
      EXPECT_EQ(set.lower[j].item<double>(), -kInfinity);
      EXPECT_EQ(set.upper[j].item<double>(), kInfinity);
    }
  }
  const Tensor row = fit.rows()[0];  // M12 = M11 - 2, W13 = 1 - M11
  EXPECT_LT(largest(row[1] - row[0] + 2) + largest(row[5] - 1 + row[0]), 1e-12);
}

// Without crossover, and without an entry held: rows of some scale, that of the notes with a bias is degenerate.
TEST(BlockProgramTest, EndsInsideTheOptimalSetByTheInteriorPointMethod) {
  const Tensor epsilon = 0.01 * numbers({1, 1, 0, 0, 0, 0});
  const Fit without_bias{.split = "maximal", .one_per_row = false, .bias = false, .epsilon = 0.01};
  const Fit with_bias{.split = "maximal", .one_per_row = false, .epsilon = 0.01};
  const Tensor scaled = without_bias.rows(Method::kInteriorPoint) - epsilon;
  const Tensor degenerate = with_bias.rows(Method::kInteriorPoint) - epsilon;
  for (std::int64_t i = 0; i < 2; ++i) {
    const double scale = scaled[i][2].item<double>();
    EXPECT_GT(scale, 1e-3);
    EXPECT_LT(largest(scaled[i] - scale * true_rows()[i]), 1e-6);
    const Tensor off = degenerate[i] - degenerate[i][2] * true_rows()[i];
    const Tensor along = (off * open_direction()).sum();
    EXPECT_GT(largest(along), 1e-3);
    EXPECT_LT(largest(off - along * open_direction()), 1e-6);
  }
}

TEST(BlockProgramTest, PrefersSmallEntriesWithL1) {
  const auto rows = [](const Fit& fit) {
    std::vector<Tensor> all;
    for (std::int64_t i = 0; i < 3; ++i) {
      const LinearProgram l1 = with_l1(fit.row(i), 1);
      all.push_back(solve(l1).x.slice(0, 0, 6));
      EXPECT_EQ(optimal_set(l1, 6).directions.size(0), 0);
    }
    return torch::stack(all);
  };
  Tensor sparse = true_rows().clone();
  sparse[0][1] = sparse[1][0] = 0;
  EXPECT_LT(largest(rows({.split = "minimal"}) - sparse), 1e-9);
  EXPECT_LT(largest(rows({.split = "maximal"}) - true_rows()), 1e-9);
  EXPECT_LT(largest(rows({.split = "random"}) - true_rows()), 1e-9);
  EXPECT_LT(largest(rows({.split = "random", .one_per_row = false})), 1e-9);
}

TEST(BlockProgramTest, StaysAboveItsBoundWhereNoRowFits) {
  const Fit fit{.split = "minimal", .bias = false, .epsilon = 0.01};
  const Tensor bound = lower_bound(fit.contact(), 0.01);
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_GT(solve(fit.row(i)).objective, 3 * bound[i].item<double>());
}

}  // namespace lcp::training::simplex_test
