#include "solver/mixed.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "support/problems.h"

namespace lcp::solver::mixed_test {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::Problem;
using testing::RowMatrix;

struct Answer {
  Status status;
  VectorXd v, y;
};

// problem: H and h, of k equations.
Answer solve(const Problem& problem, int k, const Settings& settings = {}, const double* guess = nullptr) {
  Mixed mixed(k, problem.n() - k, settings);
  Answer answer{Status::kNotFound, VectorXd(problem.n()), VectorXd(problem.n())};
  answer.status = mixed.solve(problem.M.data(), problem.q.data(), guess, answer.v.data(), answer.y.data());
  return answer;
}

void expect_solution(const Problem& problem, int k, const Answer& answer, double tolerance = 1e-9) {
  ASSERT_EQ(answer.status, Status::kSolved);
  const VectorXd error = problem.M * answer.v + problem.q - answer.y;
  const double size = problem.n() > 0 ? problem.q.cwiseAbs().maxCoeff() : 0;
  for (int i = 0; i < problem.n(); ++i) {
    EXPECT_LE(std::abs(error[i]), tolerance * size);
    if (i < k) {
      EXPECT_EQ(answer.y[i], 0);
      continue;
    }
    EXPECT_GE(answer.v[i], 0);
    EXPECT_GE(answer.y[i], 0);
    EXPECT_EQ(answer.v[i] * answer.y[i], 0);
  }
}

void expect_nan(const Answer& answer) {
  EXPECT_TRUE(answer.v.array().isNaN().all());
  EXPECT_TRUE(answer.y.array().isNaN().all());
}

// The optimality conditions of min c'z, E z = b, z >= 0, the equations' unknowns x the multipliers: A = 0.
Problem linear_program(const VectorXd& c, const MatrixXd& E, const VectorXd& b) {
  const Eigen::Index k = b.size();
  const Eigen::Index n = c.size();
  Problem problem{RowMatrix::Zero(k + n, k + n), VectorXd(k + n)};
  problem.M.topRightCorner(k, n) = E;
  problem.M.bottomLeftCorner(n, k) = -E.transpose();
  problem.q << -b, c;
  return problem;
}

class MixedTest : public ::testing::Test {
 protected:
  double normal() { return std::normal_distribution<double>()(random_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  MatrixXd matrix(int rows, int columns) {
    return MatrixXd::NullaryExpr(rows, columns, [this] { return normal(); });
  }
  VectorXd vector(int n) { return matrix(n, 1); }

  // Joins A and the LCP that is left when it is eliminated.
  Problem regular(int k, const Problem& reduced) {
    const int n = reduced.n();
    const MatrixXd A = matrix(k, k) + 2 * MatrixXd::Identity(k, k), B = matrix(k, n), C = matrix(n, k);
    const VectorXd p = vector(k);
    const Eigen::PartialPivLU<MatrixXd> lu(A);
    Problem problem{RowMatrix(k + n, k + n), VectorXd(k + n)};
    problem.M << A, B, C, reduced.M + C * lu.solve(B);
    problem.q << p, reduced.q + C * lu.solve(p);
    return problem;
  }

  // z >= 0, b = E z and c = E'x + w, w >= 0 complementary to z: bounded, its optimum E z.
  Problem solvable_program(int k, int n) { return solvable_program(matrix(k, n)); }
  Problem solvable_program(const MatrixXd& E) {
    const VectorXd x = vector(static_cast<int>(E.rows()));
    VectorXd z = VectorXd::Zero(E.cols()), w = z;
    for (Eigen::Index i = 0; i < z.size(); ++i) (integer(0, 1) ? z : w)[i] = std::abs(normal());
    return linear_program(E.transpose() * x + w, E, E * z);
  }

  std::mt19937_64 random_{12};
};

TEST_F(MixedTest, AgreesWithTheLcpThatEliminationLeaves) {
  for (const int k : {1, 3, 8}) {
    for (const int n : {1, 2, 5, 16}) {
      for (int repeat = 0; repeat < 10; ++repeat) {
        const Problem reduced = testing::positive_definite(random_, n);
        const Problem problem = regular(k, reduced);
        const Answer answer = solve(problem, k);
        expect_solution(problem, k, answer);
        VectorXd z(n), w(n);
        Ladder ladder(n, {});
        ASSERT_EQ(ladder.solve(reduced.M.data(), reduced.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
        EXPECT_LT((answer.v.tail(n) - z).norm(), 1e-8 * (1 + z.norm()));
      }
    }
  }
}

TEST_F(MixedTest, SolvesQuadraticProgramsOfFreeUnknowns) {
  // min x'Q x / 2 + c'x, G x >= b: Q x - G'z + c = 0, w = G x - b.
  for (int repeat = 0; repeat < 50; ++repeat) {
    const int k = 4, n = 7;
    const Problem objective = testing::positive_definite(random_, k);
    const MatrixXd G = matrix(n, k);
    const VectorXd b = G * vector(k) - VectorXd::Ones(n);
    Problem problem{RowMatrix::Zero(k + n, k + n), VectorXd(k + n)};
    problem.M << objective.M, -G.transpose(), G, MatrixXd::Zero(n, n);
    problem.q << objective.q, -b;
    expect_solution(problem, k, solve(problem, k));
  }
}

TEST_F(MixedTest, SolvesQuadraticProgramsOfEqualityConstraints) {
  // min x'Q x / 2 + c'x, E x = b, x >= 0.
  for (int repeat = 0; repeat < 50; ++repeat) {
    const int k = 3, n = 8;
    const MatrixXd E = matrix(k, n);
    Problem problem = linear_program(vector(n), E, E * vector(n).cwiseAbs());
    problem.M.bottomRightCorner(n, n) = testing::positive_definite(random_, n).M;
    expect_solution(problem, k, solve(problem, k));
  }
}

TEST_F(MixedTest, SolvesLinearPrograms) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    const int k = 1 + repeat % 4, n = 3 + repeat % 6;
    const Problem problem = solvable_program(k, n);
    const Answer answer = solve(problem, k);
    expect_solution(problem, k, answer);
    const double cost = problem.q.tail(n).dot(answer.v.tail(n));
    EXPECT_NEAR(cost, -problem.q.head(k).dot(answer.v.head(k)), 1e-8 * (1 + std::abs(cost)));
  }
}

TEST_F(MixedTest, SolvesRedundantEquations) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    MatrixXd E = matrix(4, 6);
    E.row(1) = E.row(0);
    E.row(2) = 2 * E.row(0) - E.row(3);
    const Problem problem = solvable_program(E);
    expect_solution(problem, 4, solve(problem, 4));
  }
}

TEST_F(MixedTest, SolvesContactsBesideRedundantJoints) {
  // Impulses along the rows of J on a body of three degrees of freedom: J J' v + J u, of rank three.
  for (int repeat = 0; repeat < 100; ++repeat) {
    const int k = 1 + repeat % 5, n = 4;
    MatrixXd J = matrix(k + n, 3);
    if (k > 1) J.row(1) = J.row(0);
    const VectorXd u = vector(3);
    const Problem problem{J * J.transpose(), J * u};
    expect_solution(problem, k, solve(problem, k));
  }
}

TEST_F(MixedTest, SolvesContactsOfABodyThatItsJointsHold) {
  // As above; three joints leave no motion, and of the LCP nothing but round-off.
  for (int repeat = 0; repeat < 100; ++repeat) {
    const int k = 2 + repeat % 3, n = 4;
    const MatrixXd J = matrix(k + n, 3);
    const Problem problem{J * J.transpose(), J * vector(3)};
    expect_solution(problem, k, solve(problem, k));
  }
}

TEST_F(MixedTest, SolvesWhereEliminationLosesDigits) {
  // s A x + z = 1 and w = 1 - s x, s = 1 or -1: x = s, z = 1 - A.
  for (const double A : {1e-300, 1e-100, 1e-14, 1e-9, 3e-5, 7e-4}) {
    for (const double s : {1.0, -1.0}) {
      Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, 1)};
      problem.M << s * A, 1, -s, 0;
      const Answer answer = solve(problem, 1);
      expect_solution(problem, 1, answer);
      EXPECT_NEAR(answer.v[0], s, 1e-14);
      EXPECT_NEAR(answer.v[1], 1 - A, 1e-14);
    }
  }
}

TEST_F(MixedTest, IsAsExactAsASolveOfTheBasis) {
  int solved = 0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const int k = 4, n = 5;
    Problem problem = testing::positive_definite(random_, k + n);
    problem.M.row(1).head(k) = problem.M.row(0).head(k) + 1e-4 * vector(k).transpose();  // A near singular
    const Answer answer = solve(problem, k);
    if (answer.status != Status::kSolved) continue;  // M is not definite any more
    const VectorXd error = problem.M * answer.v + problem.q - answer.y;
    const VectorXd size = problem.M.cwiseAbs() * answer.v.cwiseAbs() + problem.q.cwiseAbs();
    EXPECT_LE(error.cwiseAbs().maxCoeff(), 1e-14 * size.maxCoeff()) << repeat;
    ++solved;
  }
  EXPECT_GT(solved, 10);
}

TEST_F(MixedTest, SolvesEquationsAlone) {
  for (const int k : {1, 2, 7}) {
    const Problem problem{matrix(k, k), vector(k)};
    const Answer answer = solve(problem, k);
    expect_solution(problem, k, answer);
    const VectorXd expected = problem.M.partialPivLu().solve(-problem.q);
    EXPECT_LT((answer.v - expected).norm(), 1e-9 * expected.norm());
  }
  Problem singular{RowMatrix::Ones(2, 2), Eigen::Vector2d(-1, -1)};
  expect_solution(singular, 2, solve(singular, 2));
  singular.q[1] = -2;
  EXPECT_EQ(solve(singular, 2).status, Status::kInfeasible);
  expect_nan(solve(singular, 2));
}

TEST_F(MixedTest, SolvesLcpsWithoutEquationsAsTheLadderDoes) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Problem problem = testing::friction_block(random_, 2, 4);
    const int n = problem.n();
    VectorXd z(n), w(n);
    Ladder ladder(n, {});
    ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    const Answer answer = solve(problem, 0);
    expect_solution(problem, 0, answer);
    EXPECT_LT((answer.v - z).norm(), 1e-9 * z.norm());
  }
  EXPECT_EQ(solve({RowMatrix(0, 0), VectorXd(0)}, 0).status, Status::kSolved);
}

TEST_F(MixedTest, ReturnsZeroForZero) {
  const Problem problem{matrix(5, 5), VectorXd::Zero(5)};
  const Answer answer = solve(problem, 2);
  EXPECT_EQ(answer.status, Status::kSolved);
  EXPECT_EQ(answer.v, VectorXd::Zero(5));
  EXPECT_EQ(answer.y, VectorXd::Zero(5));
}

TEST_F(MixedTest, ProvesInfeasibility) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(0, -1)};
  problem.M << 1, -1, -1, 0;  // x = z, w = -x - 1
  EXPECT_EQ(solve(problem, 1).status, Status::kInfeasible);
  expect_nan(solve(problem, 1));
  problem.M << 0, 1, 0, 1;  // z = -1
  problem.q << 1, 0;
  EXPECT_EQ(solve(problem, 1).status, Status::kInfeasible);
  expect_nan(solve(problem, 1));
}

TEST_F(MixedTest, ProvesRandomProblemsInfeasible) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    const int k = 1 + repeat % 4, n = 2 + repeat % 5;
    const MatrixXd positive = (matrix(n, n).cwiseAbs().array() + 0.1).matrix();
    Problem reduced{-positive, vector(n)};
    reduced.q[0] = -1;
    EXPECT_EQ(solve(regular(k, reduced), k).status, Status::kInfeasible) << repeat;
    // E > 0, b < 0
    const MatrixXd E = (matrix(k, n).cwiseAbs().array() + 0.1).matrix();
    EXPECT_EQ(solve(linear_program(vector(n), E, -vector(k).cwiseAbs()), k).status, Status::kInfeasible) << repeat;
  }
}

TEST_F(MixedTest, CallsAnUnboundedProgramInfeasibleSinceItsDualIs) {
  const Problem problem =
      linear_program(Eigen::Vector2d(-1, -1), MatrixXd(Eigen::RowVector2d(1, -1)), VectorXd::Constant(1, 1));
  EXPECT_EQ(solve(problem, 1).status, Status::kInfeasible);
}

TEST_F(MixedTest, CallsNothingInfeasibleThatHasASolution) {
  // Integers, solved by integers.
  int solved = 0, total = 0;
  for (int repeat = 0; repeat < 3000; ++repeat) {
    const int k = 1 + repeat % 3, n = 1 + repeat % 4, size = k + n;
    VectorXd v = VectorXd::NullaryExpr(size, [this] { return integer(-3, 3); });
    VectorXd y = VectorXd::NullaryExpr(size, [this] { return integer(0, 3); });
    v.tail(n) = v.tail(n).cwiseMax(0);
    y = (v.array() > 0).select(0, y);
    y.head(k).setZero();
    Problem problem{RowMatrix::NullaryExpr(size, size, [this] { return integer(-3, 3); }), {}};
    if (repeat % 5 == 0) problem.M.topLeftCorner(k, k).setZero();
    problem.q = y - problem.M * v;
    const Answer answer = solve(problem, k);
    EXPECT_NE(answer.status, Status::kInfeasible) << problem.M << "\n" << problem.q;
    ++total;
    if (answer.status != Status::kSolved) continue;
    expect_solution(problem, k, answer);
    ++solved;
  }
  EXPECT_GE(solved, total * 0.98);
}

TEST_F(MixedTest, CallsNothingInfeasibleForTheRoundingOfElimination) {
  // A x + p = 0 for integers x, and w = (x_0, -x_0) + q = 0: round-off of A^-1 p makes one of the two negative.
  for (int repeat = 0; repeat < 200; ++repeat) {
    const int large = integer(1000, 60000);
    const Eigen::Vector4d v(integer(1, 9999), integer(1, 9999), 0, 0);
    Problem problem{RowMatrix::Zero(4, 4), {}};
    problem.M.topLeftCorner(2, 2) << large + 1, large, large, large - 1;
    problem.M(2, 0) = 1;
    problem.M(3, 0) = -1;
    problem.q = -(problem.M * v);
    EXPECT_NE(solve(problem, 2).status, Status::kInfeasible) << problem.M << "\n" << problem.q;
  }
}

TEST_F(MixedTest, CallsNothingInfeasibleThatLosesEntriesWhenItIsScaled) {
  for (const double A : {1e300, 0.0}) {
    for (const double C : {0.0, 1e300}) {
      Problem problem{RowMatrix(2, 2), Eigen::Vector2d(0, -1)};
      problem.M << A, 0, C, 1e-300;  // A x = 0, w = C x + 1e-300 z - 1: z = 1e300
      EXPECT_NE(solve(problem, 1).status, Status::kInfeasible) << A << " " << C;
    }
  }
}

TEST_F(MixedTest, ReportsNotFoundWhereThereIsNoSolutionThoughWCanBeNonnegative) {
  Problem reduced{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  reduced.M << -2, 1, -2, 2;
  const Answer eliminated = solve(regular(2, reduced), 2);
  EXPECT_EQ(eliminated.status, Status::kNotFound);
  expect_nan(eliminated);
  Problem singular{RowMatrix::Zero(3, 3), Eigen::Vector3d(0, -1, -1)};  // 0 x = 0 beside the same
  singular.M.bottomRightCorner(2, 2) = reduced.M;
  EXPECT_EQ(solve(singular, 1).status, Status::kNotFound);
}

TEST_F(MixedTest, ReportsThePivotLimit) {
  Settings settings;
  settings.max_pivots = 0;
  const Problem eliminated = regular(2, {RowMatrix::Identity(3, 3), -VectorXd::Ones(3)});
  EXPECT_EQ(solve(eliminated, 2, settings).status, Status::kPivotLimit);
  expect_nan(solve(eliminated, 2, settings));
  Problem left = linear_program(-VectorXd::Ones(3), MatrixXd::Ones(1, 3), VectorXd::Ones(1));
  left.M.bottomLeftCorner(3, 1).setZero();  // no pivot solves the equation
  EXPECT_EQ(solve(left, 1, settings).status, Status::kPivotLimit);
}

TEST_F(MixedTest, ReportsBadInput) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(1, 1)};
    problem.q[0] = bad;
    EXPECT_EQ(solve(problem, 1).status, Status::kBadInput);
    problem.q[0] = 1;
    problem.M(1, 0) = bad;
    EXPECT_EQ(solve(problem, 1).status, Status::kBadInput);
    expect_nan(solve(problem, 1));
  }
}

TEST_F(MixedTest, GivesTheSameAnswerAtEveryScale) {
  for (int repeat = 0; repeat < 10; ++repeat) {
    const Problem problem = repeat % 2 ? regular(2, testing::positive_definite(random_, 4)) : solvable_program(2, 5);
    const Answer expected = solve(problem, 2);
    ASSERT_EQ(expected.status, Status::kSolved);
    for (const int exponent : {-950, -300, 300, 950}) {
      const double factor = std::ldexp(1, exponent);
      EXPECT_EQ(solve({problem.M * factor, problem.q * factor}, 2).v, expected.v);
      EXPECT_EQ(solve({problem.M, problem.q * factor}, 2).v, expected.v * factor);
    }
  }
}

TEST_F(MixedTest, DoesNotClaimASolutionThatItCannotRepresent) {
  const auto scalar = [](double A, double p) {
    return Problem{RowMatrix::Constant(1, 1, A), VectorXd::Constant(1, p)};
  };
  EXPECT_EQ(solve(scalar(1e-300, 1e300), 1).status, Status::kNotFound);
  EXPECT_EQ(solve(scalar(1e300, 1e-300), 1).status, Status::kNotFound);
}

TEST_F(MixedTest, VerifiesTheRoundedSolutionInSinglePrecision) {
  Settings settings;
  settings.single_precision = true;
  settings.tolerance = 1e-4;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Problem problem = repeat % 2 ? regular(3, testing::positive_definite(random_, 4)) : solvable_program(3, 6);
    const Answer answer = solve(problem, 3, settings);
    expect_solution(problem, 3, answer, 1e-4);
    for (int i = 0; i < problem.n(); ++i) {
      EXPECT_EQ(answer.v[i], static_cast<float>(answer.v[i]));
      EXPECT_EQ(answer.y[i], static_cast<float>(answer.y[i]));
    }
  }
  settings.tolerance = 1e-12;  // which no float can meet: 1 / 3 has none
  const Problem third{RowMatrix::Constant(1, 1, 3), VectorXd::Constant(1, -1)};
  EXPECT_EQ(solve(third, 1, settings).status, Status::kNotFound);
}

TEST_F(MixedTest, SolvesWithAnyGuess) {
  const int k = 2, n = 4;
  const Problem problem = regular(k, testing::positive_definite(random_, n));
  const Answer expected = solve(problem, k);
  const VectorXd right = expected.v.tail(n);
  const VectorXd wrong = (right.array() > 0).select(0.0, VectorXd::Ones(n));
  const VectorXd nan = VectorXd::Constant(n, std::nan(""));
  const VectorXd all = VectorXd::Ones(n);
  for (const VectorXd& guess : {right, wrong, nan, all}) {
    const Answer answer = solve(problem, k, {}, guess.data());
    expect_solution(problem, k, answer);
    EXPECT_LT((answer.v - expected.v).norm(), 1e-10 * expected.v.norm());
  }
  Settings settings;
  settings.max_pivots = 0;  // a right guess needs none
  expect_solution(problem, k, solve(problem, k, settings, right.data()));
}

// Every z >= 0 with z_1 + z_2 = 2^(a - b) solves the reduced problem.
TEST_F(MixedTest, TakesFromTheGuessWhatASingularBasisLeavesOpen) {
  for (const auto& [a, b] : {std::pair{0, 0}, {0, 7}, {-9, 20}}) {
    Problem problem{RowMatrix::Ones(3, 3), Eigen::Vector3d(0, -1, -1)};
    problem.M.row(0) << 1, 0, 0;
    problem.M.col(0) << 1, 0, 0;
    problem.M *= std::ldexp(1.0, b);
    problem.q *= std::ldexp(1.0, a);
    for (const double share : {0.25, 0.5, 0.75}) {
      const Eigen::Vector2d guess = std::ldexp(1.0, a - b) * Eigen::Vector2d(share, 1 - share);
      const Answer answer = solve(problem, 1, {}, guess.data());
      expect_solution(problem, 1, answer);
      EXPECT_LT((answer.v.tail(2) - guess).norm(), 1e-14 * guess.norm()) << a << " " << b;
    }
  }
}

TEST_F(MixedTest, LeavesNothingOfAnEarlierProblem) {
  const Problem singular = solvable_program(2, 4);
  const Problem other = regular(2, testing::positive_definite(random_, 4));
  Mixed mixed(2, 4, {});
  for (const Problem& problem : {singular, other, singular}) {
    const Answer expected = solve(problem, 2);
    VectorXd v(6), y(6);
    EXPECT_EQ(mixed.solve(problem.M.data(), problem.q.data(), nullptr, v.data(), y.data()), expected.status);
    EXPECT_EQ(v, expected.v);
    EXPECT_EQ(y, expected.y);
  }
}

}  // namespace lcp::solver::mixed_test
