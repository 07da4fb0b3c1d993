#include "linalg/cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "support/problems.h"

namespace lcp::linalg::cholesky_test {

using testing::RowMatrix;

class CholeskyTest : public ::testing::Test {
 protected:
  static std::vector<int> all(int n) {
    std::vector<int> index(n);
    std::iota(index.begin(), index.end(), 0);
    return index;
  }

  std::vector<int> some(int n) {
    std::vector<int> index;
    for (int i = 0; i < n; ++i) {
      if (std::bernoulli_distribution(0.5)(random_)) index.push_back(i);
    }
    return index;
  }

  bool factor(Cholesky& cholesky, const RowMatrix& M, const std::vector<int>& index) {
    const int n = static_cast<int>(M.rows());
    spans_.resize(n);
    kernels().rows.scan(n, M.data(), spans_.data());
    return cholesky.factor({n, M.data(), spans_.data()}, index.data(), static_cast<int>(index.size()));
  }

  bool factors(const RowMatrix& M) {
    Cholesky cholesky(static_cast<int>(M.rows()));
    return factor(cholesky, M, all(static_cast<int>(M.rows())));
  }

  void expect_solution(Cholesky& cholesky, const RowMatrix& M, const std::vector<int>& index) {
    ASSERT_TRUE(factor(cholesky, M, index));
    const RowMatrix A = M(index, index);
    const Eigen::VectorXd b = Eigen::VectorXd::Random(A.rows());
    Eigen::VectorXd x = b;
    cholesky.solve(x.data());
    EXPECT_LE((x - A.llt().solve(b)).norm(), 1e-11 * x.norm());
  }

  std::mt19937_64 random_{3};
  std::vector<Span> spans_;
};

TEST_F(CholeskyTest, SolvesWithPrincipalSubmatricesAsEigenDoes) {
  for (int n = 1; n <= 70; ++n) {
    Cholesky cholesky(n);
    const RowMatrix M = testing::positive_definite(random_, n).M;
    expect_solution(cholesky, M, all(n));
    for (int k = 0; k < 10; ++k) expect_solution(cholesky, M, some(n));
  }
}

TEST_F(CholeskyTest, SkipsTheZerosOfBandedMatricesAndOfArrows) {
  for (const int side : {1, 2, 3, 8, 12}) {
    const RowMatrix M = testing::obstacle(side, side).M;
    Cholesky cholesky(side * side);
    expect_solution(cholesky, M, all(side * side));
    for (int k = 0; k < 10; ++k) expect_solution(cholesky, M, some(side * side));
  }
  RowMatrix arrow = 100 * RowMatrix::Identity(60, 60);
  for (const int tip : {0, 29, 59}) {
    arrow.row(tip).setOnes();
    arrow.col(tip).setOnes();
    arrow(tip, tip) = 100;
    Cholesky cholesky(60);
    expect_solution(cholesky, arrow, all(60));
  }
}

TEST_F(CholeskyTest, SaysWhereThereIsNothingToSolveWith) {
  for (int n = 1; n <= 20; ++n) {
    const RowMatrix M = testing::positive_definite(random_, n).M;
    EXPECT_TRUE(factors(M));
    for (int i = 0; i < n; ++i) {
      RowMatrix indefinite = M;
      for (const double bad : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        indefinite(i, i) = bad;
        EXPECT_FALSE(factors(indefinite)) << n << " " << i << " " << bad;
      }
    }
  }
  EXPECT_FALSE(factors(RowMatrix::Ones(2, 2)));
}

TEST_F(CholeskyTest, DependsOnNoPowerOfTwo) {
  const RowMatrix M = testing::positive_definite(random_, 30).M;
  const Eigen::VectorXd b = Eigen::VectorXd::Random(30);
  Cholesky cholesky(30);
  ASSERT_TRUE(factor(cholesky, M, all(30)));
  Eigen::VectorXd x = b;
  cholesky.solve(x.data());
  for (const int exponent : {-301, 7, 400}) {
    ASSERT_TRUE(factor(cholesky, M * std::ldexp(1, exponent), all(30)));
    Eigen::VectorXd scaled = b * std::ldexp(1, exponent);
    cholesky.solve(scaled.data());
    EXPECT_EQ(scaled, x);
  }
}

TEST_F(CholeskyTest, LeavesNothingOfAnEarlierMatrix) {
  Cholesky used(33), fresh(33);
  RowMatrix indefinite = testing::positive_definite(random_, 33).M;
  indefinite(20, 20) = std::numeric_limits<double>::quiet_NaN();
  const RowMatrix M = testing::positive_definite(random_, 33).M;
  EXPECT_FALSE(factor(used, indefinite, all(33)));
  const std::vector<int> index = some(33);
  ASSERT_TRUE(factor(used, M, index));
  ASSERT_TRUE(factor(fresh, M, index));
  Eigen::VectorXd x = Eigen::VectorXd::Ones(static_cast<Eigen::Index>(index.size())), y = x;
  used.solve(x.data());
  fresh.solve(y.data());
  EXPECT_EQ(x, y);
}

}  // namespace lcp::linalg::cholesky_test
