// Families of LCPs with known answers, see support/problems.h for what each is and where it comes from.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "solver/ladder.h"
#include "support/claims.h"

namespace lcp::testing::families_test {

using solver::Method;
using solver::Settings;

void expect_status(const Problem& problem, Status status, const Settings& settings = {}) {
  const Answer answer = solve(problem, settings);
  EXPECT_EQ(answer.status, status) << "n = " << problem.n();
  EXPECT_EQ(answer_error(problem, settings, answer), "") << "n = " << problem.n();
}

void expect_solved(const Problem& problem) { expect_status(problem, Status::kSolved); }

// Where z is the only solution.
void expect_only_solution(const Planted& planted, double tolerance = 1e-9) {
  const Answer answer = solve(planted.problem);
  ASSERT_EQ(answer.status, Status::kSolved) << "n = " << planted.problem.n();
  EXPECT_EQ(answer_error(planted.problem, {}, answer), "");
  EXPECT_LE((answer.z - planted.z).cwiseAbs().maxCoeff(), tolerance * std::max(1.0, planted.z.maxCoeff()))
      << "n = " << planted.problem.n();
}

// Lemke's method alone must end within its budget of 30 n pivots, with a correct answer.
void expect_lemke_ends(const Problem& problem) {
  Settings lemke;
  lemke.method = Method::kLemke;
  const Answer answer = solve(problem, lemke);
  EXPECT_EQ(answer_error(problem, lemke, answer), "");
  EXPECT_LE(answer.pivots, 30 * problem.n());
}

bool is_p_matrix(const RowMatrix& M) {
  const auto n = static_cast<int>(M.rows());
  for (int set = 1; set < 1 << n; ++set) {
    std::vector<int> a;
    for (int i = 0; i < n; ++i) {
      if (set >> i & 1) a.push_back(i);
    }
    if (!(Eigen::MatrixXd(M(a, a)).determinant() > 0)) return false;
  }
  return true;
}

// The basic variables of the set a: z_i for i in a, else w_i.
Eigen::VectorXd basic_values(const Problem& problem, const std::vector<int>& a) {
  const Eigen::VectorXd q_a = problem.q(a);
  const Eigen::VectorXd z_a = -Eigen::MatrixXd(problem.M(a, a)).partialPivLu().solve(q_a);
  Eigen::VectorXd values = problem.q + problem.M(Eigen::all, a) * z_a;
  values(a) = z_a;
  return values;
}

// Whether a method that goes from a set a of basic z to next(a) cycles when it starts at the empty set.
template <typename Next>
bool cycles(const Problem& problem, Next next) {
  std::set<std::vector<int>> seen;
  std::vector<int> a;
  while (seen.insert(a).second) {
    const Eigen::VectorXd values = basic_values(problem, a);
    if (values.minCoeff() >= 0) return false;
    a = next(a, values);
  }
  return true;
}

void flip(std::vector<int>& a, int i) {
  const auto place = std::lower_bound(a.begin(), a.end(), i);
  if (place != a.end() && *place == i) {
    a.erase(place);
  } else {
    a.insert(place, i);
  }
}

class FamiliesTest : public ::testing::Test {
 protected:
  std::mt19937_64 random_{31};
};

TEST_F(FamiliesTest, MurtysExample) {
  for (int n = 1; n <= 32; ++n) {
    expect_only_solution({murty(n), std::ldexp(1, n) * Eigen::VectorXd::Unit(n, 0)});
    expect_lemke_ends(murty(n));
  }
}

TEST_F(FamiliesTest, FathisExample) {
  for (const int n : {1, 2, 5, 8, 16, 32, 64}) {
    expect_only_solution({fathi(n), Eigen::VectorXd::Unit(n, 0)});
    expect_lemke_ends(fathi(n));
  }
}

TEST_F(FamiliesTest, CsizmadiasExample) {
  for (const int n : {1, 2, 3, 8, 9, 16, 32, 64}) {
    expect_only_solution(csizmadia(n));
    expect_lemke_ends(csizmadia(n).problem);
  }
}

TEST_F(FamiliesTest, MorrissCyclicExample) {
  for (const int n : {1, 3, 5, 7, 9, 11, 21, 41, 81}) {
    expect_only_solution(morris(n));
    expect_lemke_ends(morris(n).problem);
  }
}

TEST_F(FamiliesTest, BardsRuleCyclesWhereTheSolverDoesNot) {
  const Planted planted = bard_cycle();
  ASSERT_TRUE(is_p_matrix(planted.problem.M));
  EXPECT_TRUE(cycles(planted.problem, [](std::vector<int> a, const Eigen::VectorXd& values) {
    int most_negative = 0;
    values.minCoeff(&most_negative);
    flip(a, most_negative);
    return a;
  }));
  expect_only_solution(planted);
  expect_lemke_ends(planted.problem);
}

TEST_F(FamiliesTest, NewtonMinCyclesWhereTheSolverDoesNot) {
  for (int n = 3; n <= 10; ++n) {
    const Planted planted = newton_min_cycle(n);
    ASSERT_TRUE(is_p_matrix(planted.problem.M)) << n;
    EXPECT_TRUE(cycles(planted.problem, [](std::vector<int> a, const Eigen::VectorXd& values) {
      for (int i = 0; i < values.size(); ++i) {
        if (values[i] < 0) flip(a, i);
      }
      return a;
    })) << n;
  }
  for (const int n : {3, 4, 5, 6, 11, 20, 41, 64}) {
    expect_only_solution(newton_min_cycle(n));
    expect_lemke_ends(newton_min_cycle(n).problem);
    Settings newton;
    newton.method = Method::kNewtonMin;
    const Problem problem = newton_min_cycle(n).problem;
    EXPECT_EQ(answer_error(problem, newton, solve(problem, newton)), "");
  }
}

TEST_F(FamiliesTest, AhnsTridiagonalExample) {
  for (const int n : {1, 2, 3, 10, 33, 100, 200}) {
    const Planted planted = ahn(n);
    ASSERT_GT(planted.z.minCoeff(), 0);
    expect_only_solution(planted);
  }
}

TEST_F(FamiliesTest, SubsetSumsThatExist) {
  for (int k = 0; k < 40; ++k) {
    for (int items = 1; items <= 8; ++items) expect_solved(subset_sum(random_, items).problem);
  }
}

TEST_F(FamiliesTest, SubsetSumsThatDoNotExist) {
  for (int items = 1; items <= 8; ++items) {
    const Eigen::VectorXd even = Eigen::VectorXd::LinSpaced(items, 2, 2 * items);
    expect_status(subset_sum(even, 1), Status::kNotFound);
    expect_status(subset_sum(even, even.sum() - 1), Status::kNotFound);
    expect_status(subset_sum(even, even.sum() + 1), Status::kInfeasible);
  }
}

TEST_F(FamiliesTest, SubsetSumsTooLargeToEnumerateGetACorrectStatus) {
  for (const int items : {9, 15, 30}) {
    const Problem problem = subset_sum(random_, items).problem;
    const Answer answer = solve(problem);
    EXPECT_NE(answer.status, Status::kInfeasible);
    EXPECT_EQ(answer_error(problem, {}, answer), "");
  }
}

TEST_F(FamiliesTest, ObstacleProblems) {
  for (const int side : {1, 2, 3, 5, 10, 15}) {
    const Problem problem = obstacle(side, side);
    // Projected Gauss-Seidel, which for such M converges from any start [Cottle, Pang, Stone, 2009, sec. 5.3].
    Planted planted{problem, Eigen::VectorXd::Zero(problem.n())};
    for (int sweep = 0; sweep < 1000; ++sweep) {
      for (int i = 0; i < problem.n(); ++i) {
        planted.z[i] = std::max(0.0, planted.z[i] - (problem.M.row(i).dot(planted.z) + problem.q[i]) / problem.M(i, i));
      }
    }
    expect_only_solution(planted, 1e-8);
  }
}

TEST_F(FamiliesTest, PositiveDefiniteProblems) {
  for (const int n : {1, 2, 4, 10, 20, 50}) {
    for (int k = 0; k < 100; ++k)
      expect_only_solution(plant(random_, positive_definite(random_, n).M, k % 2 == 0), 1e-6);
  }
}

TEST_F(FamiliesTest, PMatrices) {
  for (int k = 0; k < 20; ++k) ASSERT_TRUE(is_p_matrix(p_matrix(random_, 6)));
  for (const int n : {1, 2, 3, 6, 10, 11, 20, 40}) {
    for (int k = 0; k < 100; ++k) expect_only_solution(plant(random_, p_matrix(random_, n), k % 2 == 0), 1e-6);
  }
}

TEST_F(FamiliesTest, SemidefiniteProblemsOfLowRank) {
  for (const int n : {2, 3, 6, 10, 11, 20, 40}) {
    for (const bool skew : {false, true}) {
      for (int k = 0; k < 100; ++k) {
        expect_solved(plant(random_, low_rank(random_, n, 1 + k % std::max(1, n / 2), skew), k % 2 == 0).problem);
      }
    }
  }
}

TEST_F(FamiliesTest, StrictlyCopositiveProblems) {
  for (const int n : {1, 2, 3, 6, 10, 11, 20, 40}) {
    for (int k = 0; k < 100; ++k) {
      const RowMatrix M = copositive(random_, n);
      expect_solved({M, positive_definite(random_, n).q});
      expect_solved(plant(random_, M, k % 2 == 0).problem);
    }
  }
}

TEST_F(FamiliesTest, ZMatrices) {
  for (const int n : {1, 2, 3, 6, 10, 11, 20, 40}) {
    for (int k = 0; k < 100; ++k) expect_solved(plant(random_, z_matrix(random_, n), k % 2 == 0).problem);
  }
}

TEST_F(FamiliesTest, InfeasibleProblems) {
  for (const int n : {1, 2, 3, 6, 10, 11, 20, 40}) {
    for (int k = 0; k < 100; ++k) expect_status(infeasible(random_, n), Status::kInfeasible);
  }
}

TEST_F(FamiliesTest, BimatrixGames) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 3}, {2, 2}, {3, 2}, {3, 4}, {5, 5}, {6, 6}, {10, 8}}) {
    for (int k = 0; k < 100; ++k) expect_solved(bimatrix_game(random_, rows, columns));
  }
}

TEST_F(FamiliesTest, BoxConstrainedQuadraticPrograms) {
  for (const int n : {1, 2, 5, 10, 20}) {
    for (int k = 0; k < 100; ++k) expect_only_solution(box_qp(random_, n), 1e-6);
  }
}

class FrictionFamilyTest : public ::testing::TestWithParam<int> {};

TEST_P(FrictionFamilyTest, SolvesAllOf2000) {
  std::mt19937_64 random(static_cast<unsigned>(GetParam()));
  for (int k = 0; k < 2000; ++k) expect_solved(friction_block(random));
}

INSTANTIATE_TEST_SUITE_P(Seeds, FrictionFamilyTest, ::testing::Values(11, 12, 13, 14),
                         ::testing::PrintToStringParamName());

}  // namespace lcp::testing::families_test
