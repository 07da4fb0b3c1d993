#include "solver/farkas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "linalg/equilibrate.h"
#include "support/problems.h"

namespace lcp::solver::farkas_test {

using Eigen::VectorXd;
using testing::Problem;
using testing::RowMatrix;

// The sign of x'y in integer arithmetic: products of 106 bits are collected by exponent and carried upwards.
int sign_of_product(const VectorXd& x, const VectorXd& y) {
  std::map<int, __int128> parts;
  const auto split = [](double value, int* exponent) {
    return static_cast<std::int64_t>(std::ldexp(std::frexp(value, exponent), 53));
  };
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    int a = 0, b = 0;
    const __int128 product = static_cast<__int128>(split(x[i], &a)) * split(y[i], &b);
    if (product != 0) parts[a + b] += product;
  }
  __int128 carry = 0;
  bool rest = false;  // x'y = carry 2^exponent + what is left below, at least 0 and less than 2^exponent
  int exponent = parts.empty() ? 0 : parts.begin()->first;
  for (const auto& [next, part] : parts) {
    for (; exponent < next && carry != 0 && carry != -1; ++exponent) {
      rest = rest || (carry & 1) != 0;
      carry >>= 1;
    }
    if (exponent < next && carry == -1) rest = true;  // -1 2^-k = -1 + (1 - 2^-k)
    exponent = next;
    carry += part;
  }
  return carry < 0 ? -1 : (carry > 0 || rest ? 1 : 0);
}

struct Answer {
  Termination end;
  VectorXd y;
};

Answer run(const Problem& problem, std::int64_t max_pivots = 10000) {
  const int n = problem.n();
  RowMatrix scaled = problem.M;
  std::vector<int> r(n), c(n);
  linalg::equilibrate(n, scaled.data(), r.data(), c.data());
  Farkas farkas(n);
  Answer answer{farkas.run(problem.M.data(), problem.q.data(), r.data(), c.data(), max_pivots), VectorXd(n)};
  answer.y = Eigen::Map<const VectorXd>(farkas.y(), n);
  return answer;
}

bool proves(const Problem& problem, const VectorXd& y) {
  bool proof = y.minCoeff() >= 0 && sign_of_product(problem.q, y) < 0;
  for (int j = 0; j < problem.n(); ++j) proof = proof && sign_of_product(problem.M.col(j), y) <= 0;
  return proof;
}

void expect_proof(const Problem& problem) {
  const Answer answer = run(problem);
  ASSERT_EQ(answer.end, Termination::kCandidate) << problem.M << "\n" << problem.q;
  EXPECT_TRUE(proves(problem, answer.y)) << problem.M << "\n" << problem.q << "\n" << answer.y;
}

class FarkasTest : public ::testing::Test {
 protected:
  double normal() { return std::normal_distribution<double>()(random_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  // y >= 0 with M'y < 0 and q'y < 0.
  Problem infeasible(int n) {
    VectorXd y = VectorXd::NullaryExpr(n, [this] { return std::max(0.0, normal()); });
    y[integer(0, n - 1)] = 1;
    Problem problem{RowMatrix::NullaryExpr(n, n, [this] { return normal(); }),
                    VectorXd::NullaryExpr(n, [this] { return normal(); })};
    for (int j = 0; j < n; ++j) {
      if (problem.M.col(j).dot(y) > 0) problem.M.col(j) *= -1;
    }
    if (problem.q.dot(y) > 0) problem.q *= -1;
    return problem;
  }

  // Integers, and y >= 0 of integers with M'y = 0 and q'y = -1: none of the other y nearby is a proof.
  Problem tightly_infeasible(int n) {
    VectorXd y = VectorXd::NullaryExpr(n, [this] { return integer(0, 4); });
    const int last = integer(0, n - 1);
    y[last] = 1;
    Problem problem{RowMatrix::NullaryExpr(n, n, [this] { return integer(-5, 5); }),
                    VectorXd::NullaryExpr(n, [this] { return integer(-5, 5); })};
    problem.M.row(last) -= y.transpose() * problem.M;
    problem.q[last] -= y.dot(problem.q) + 1;
    return problem;
  }

  // Integers, and z >= 0 of integers with M z + q = w >= 0, mostly 0.
  Problem feasible(int n) {
    const RowMatrix M = RowMatrix::NullaryExpr(n, n, [this] { return integer(-3, 3); });
    const VectorXd z = VectorXd::NullaryExpr(n, [this] { return std::max(0, integer(-2, 5)); });
    const VectorXd w = VectorXd::NullaryExpr(n, [this] { return std::max(0, integer(-4, 1)); });
    return {M, w - M * z};
  }

  // The same problem in other units.
  void scale(Problem& problem, int largest_exponent) {
    for (int i = 0; i < problem.n(); ++i) {
      const double row = std::ldexp(1, integer(-largest_exponent, largest_exponent));
      problem.M.row(i) *= row;
      problem.q[i] *= row;
      problem.M.col(i) *= std::ldexp(1, integer(-largest_exponent, largest_exponent));
    }
  }

  std::mt19937_64 random_{9};
};

TEST_F(FarkasTest, ProvesProblemsInfeasible) {
  for (const int n : {1, 2, 3, 5, 8, 16, 30}) {
    for (int k = 0; k < 50; ++k) expect_proof(infeasible(n));
  }
}

TEST_F(FarkasTest, ProvesProblemsInfeasibleWhoseProofAllowsNoRounding) {
  for (const int n : {1, 2, 3, 4, 6, 12}) {
    int proofs = 0;
    for (int k = 0; k < 300; ++k) {
      const Problem problem = tightly_infeasible(n);
      const Answer answer = run(problem);
      if (answer.end != Termination::kCandidate) continue;
      EXPECT_TRUE(proves(problem, answer.y)) << problem.M << "\n" << problem.q << "\n" << answer.y;
      ++proofs;
    }
    EXPECT_GE(proofs, n < 6 ? 300 : 299) << n;
  }
}

TEST_F(FarkasTest, ProvesThatOppositeRowsOrColumnsCannotBothBeMet) {
  Problem rows{RowMatrix(2, 2), Eigen::Vector2d(-0.7, 0.69)};
  rows.M << 0.1, -0.3, -0.1, 0.3;
  expect_proof(rows);
  rows.q << -1, 1 - 1e-6;
  expect_proof(rows);
  Problem tripled{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  tripled.M << 3, -3, -1, 1;  // y = (1, 3) alone
  expect_proof(tripled);
}

TEST_F(FarkasTest, ProvesInfeasibilityWithDuplicatedAndZeroColumns) {
  for (int k = 0; k < 100; ++k) {
    Problem problem = k % 2 ? infeasible(6) : tightly_infeasible(6);
    problem.M.col(1) = problem.M.col(4);
    problem.M.col(2) = 2 * problem.M.col(4);
    problem.M.col(5).setZero();
    expect_proof(problem);
  }
}

TEST_F(FarkasTest, ProvesInfeasibilityOfZeroMatrices) {
  expect_proof({RowMatrix::Zero(1, 1), VectorXd::Constant(1, -1)});
  expect_proof({RowMatrix::Zero(3, 3), Eigen::Vector3d(1, -1e-200, 0)});
}

TEST_F(FarkasTest, ProvesInfeasibilityInAnyUnits) {
  for (int k = 0; k < 300; ++k) {
    Problem problem = k % 3 == 0 ? tightly_infeasible(4) : infeasible(4);
    const int largest_exponent[] = {8, 100, 250};
    scale(problem, largest_exponent[k % 3]);
    expect_proof(problem);
  }
  for (const double q : {1.0, -1.0}) {
    expect_proof({Eigen::Vector2d(-1e150, -1e-150).asDiagonal().toDenseMatrix(), Eigen::Vector2d(q, -q)});
  }
  for (const double of_M : {1e-300, 1e300}) {
    for (const double of_q : {1e-300, 1e300}) {
      const Problem problem = infeasible(5);
      expect_proof({problem.M / 8 * of_M, problem.q / 8 * of_q});
    }
  }
}

TEST_F(FarkasTest, ProvesNothingOfAFeasibleProblem) {
  for (int k = 0; k < 5000; ++k) {
    const Problem problem = feasible(1 + k % 8);
    if (problem.q.minCoeff() >= 0) continue;
    EXPECT_NE(run(problem).end, Termination::kCandidate) << problem.M << "\n" << problem.q;
  }
}

TEST_F(FarkasTest, ProvesNothingOfAFeasibleProblemInAnyUnits) {
  for (int k = 0; k < 2000; ++k) {
    Problem problem = feasible(2 + k % 4);
    scale(problem, k % 2 ? 50 : 450);
    if (problem.q.minCoeff() >= 0) continue;
    EXPECT_NE(run(problem).end, Termination::kCandidate) << problem.M << "\n" << problem.q;
  }
}

TEST_F(FarkasTest, ProvesNothingOfABarelyFeasibleProblem) {
  const auto scalar = [](double M, double q) {
    return Problem{RowMatrix::Constant(1, 1, M), VectorXd::Constant(1, q)};
  };
  EXPECT_NE(run(scalar(1e-20, -1)).end, Termination::kCandidate);
  EXPECT_NE(run(scalar(1e-300, -1e300)).end, Termination::kCandidate);
  EXPECT_NE(run(scalar(std::numeric_limits<double>::denorm_min(), -1)).end, Termination::kCandidate);

  Problem rows{RowMatrix(2, 2), Eigen::Vector2d(-0.7, 0.7)};
  rows.M << 0.1, -0.3, -0.1, 0.3;  // w = 0 on a line
  EXPECT_NE(run(rows).end, Termination::kCandidate);
  rows.q[1] = std::nextafter(0.7, 1);
  EXPECT_NE(run(rows).end, Termination::kCandidate);

  Problem mixed{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  mixed.M << -1, 1e-30, 1, 1e-30;  // z_1 >= 1e30 alone
  EXPECT_NE(run(mixed).end, Termination::kCandidate);
  mixed.M << -1e300, 1e-300, 1e-300, 0;
  EXPECT_NE(run(mixed).end, Termination::kCandidate);
  mixed.M << 1, -1, -1, 1 + 0x1p-52;
  EXPECT_NE(run(mixed).end, Termination::kCandidate);
}

TEST_F(FarkasTest, LeavesOpenWhatItCannotScaleExactly) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << -1, -1, -1, -1e-300;
  EXPECT_EQ(run(problem).end, Termination::kFailed);
}

TEST_F(FarkasTest, CountsThePivotsOfEachProblemAnew) {
  const int exponents[2] = {0, 0};
  const double infeasible[4] = {-1, -1, -1, -1}, inexact[4] = {-1, -1, -1, -1e-300}, q[2] = {-1, -1};
  Farkas farkas(2);
  EXPECT_EQ(farkas.run(infeasible, q, exponents, exponents, 100), Termination::kCandidate);
  EXPECT_GT(farkas.pivots(), 0);
  EXPECT_EQ(farkas.run(inexact, q, exponents, exponents, 100), Termination::kFailed);
  EXPECT_EQ(farkas.pivots(), 0);
}

TEST_F(FarkasTest, ReportsTheEndOfItsBudget) {
  const Problem problem = infeasible(6);
  EXPECT_EQ(run(problem, 0).end, Termination::kBudget);
  EXPECT_EQ(run(problem, 1).end, Termination::kBudget);
}

}  // namespace lcp::solver::farkas_test
