#include "linalg/lu.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>

#include "support/problems.h"

namespace lcp::linalg::lu_test {

using testing::RowMatrix;

class LuTest : public ::testing::TestWithParam<Pivoting> {
 protected:
  RowMatrix random_matrix(int n) {
    return RowMatrix::NullaryExpr(n, n, [this] { return std::normal_distribution<double>()(random_); });
  }

  Lu make(int n) const { return Lu(n, GetParam()); }

  static bool factor(Lu& lu, const RowMatrix& A) {
    const int k = static_cast<int>(A.rows());
    Eigen::Map<RowMatrix>(lu.matrix(k), k, k) = A;
    return lu.factor(0) == k;
  }

  bool factors(const RowMatrix& A) const {
    Lu lu = make(static_cast<int>(A.rows()));
    return factor(lu, A);
  }

  std::mt19937_64 random_{3};
};

TEST_P(LuTest, SolvesWithAMatrixAndItsTransposeAsEigenDoes) {
  Lu lu = make(20);
  for (int k = 1; k <= 20; ++k) {
    const RowMatrix A = random_matrix(k);
    ASSERT_TRUE(factor(lu, A));
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(k, -1, 2);
    Eigen::VectorXd x = b;
    lu.solve(x.data());
    const Eigen::VectorXd expected = A.partialPivLu().solve(b);
    EXPECT_LT((x - expected).norm(), 1e-11 * expected.norm()) << k;
    x = b;
    lu.solve_transposed(x.data());
    const Eigen::VectorXd expected_transposed = A.transpose().partialPivLu().solve(b);
    EXPECT_LT((x - expected_transposed).norm(), 1e-11 * expected_transposed.norm()) << k;
  }
}

TEST_P(LuTest, ExchangesRowsWhereAPivotIsZeroOrSmall) {
  for (const double small : {0.0, 1e-300, 1e-20}) {
    RowMatrix A(3, 3);
    A << small, 1, 1, 1, small, 1, 1, 1, small;
    Lu lu = make(3);
    ASSERT_TRUE(factor(lu, A));
    const Eigen::Vector3d expected(1, 2, 3);
    Eigen::Vector3d x = A * expected;
    lu.solve(x.data());
    EXPECT_LT((x - expected).norm(), 1e-14);
    x = A.transpose() * expected;
    lu.solve_transposed(x.data());
    EXPECT_LT((x - expected).norm(), 1e-14);
  }
}

TEST_P(LuTest, ReportsAPivotThatIsZero) {
  EXPECT_FALSE(factors(RowMatrix::Zero(1, 1)));
  EXPECT_FALSE(factors(RowMatrix::Zero(3, 3)));
  EXPECT_FALSE(factors(RowMatrix::Ones(2, 2)));  // the last one
  RowMatrix A(3, 3);
  A << 1, 2, 3, 2, 4, 5, 4, 8, 6;  // the second one
  EXPECT_FALSE(factors(A));
}

TEST_P(LuTest, ReportsAPivotThatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (int i = 0; i < 3; ++i) {
      RowMatrix A = random_matrix(3);
      A(i, 0) = bad;
      EXPECT_FALSE(factors(A)) << i;
    }
  }
  RowMatrix overflow(2, 2);
  overflow << 1e300, 1e300, 1e300, -1.7e308;
  EXPECT_TRUE(factors(overflow));
  overflow << 1.7e308, 1.7e308, 1.7e308, -1.7e308;
  EXPECT_FALSE(factors(overflow));
}

TEST_P(LuTest, SolvesTheEmptyMatrix) {
  Lu none = make(0), some = make(4);
  EXPECT_TRUE(factor(none, RowMatrix(0, 0)));
  EXPECT_TRUE(factor(some, RowMatrix(0, 0)));
  double untouched = 7;
  some.solve(&untouched);
  some.solve_transposed(&untouched);
  EXPECT_EQ(untouched, 7);
}

TEST_P(LuTest, LeavesNothingOfAnEarlierMatrixInTheSameMemory) {
  const RowMatrix A = random_matrix(4);
  Lu used = make(9), fresh = make(4);
  const double* memory = used.matrix(9);
  ASSERT_TRUE(factor(used, random_matrix(9)));
  ASSERT_FALSE(factor(used, RowMatrix::Zero(6, 6)));
  ASSERT_TRUE(factor(used, A));
  ASSERT_TRUE(factor(fresh, A));
  EXPECT_EQ(used.matrix(4), memory);
  Eigen::Vector4d x(1, 2, 3, 4), y = x;
  used.solve(x.data());
  fresh.solve(y.data());
  EXPECT_EQ(x, y);
}

// What is left after three pivots is round-off in the first matrix, and small units in the second.
TEST(FullPivotsTest, TellRoundOffFromSmallUnits) {
  std::mt19937_64 random(5);
  const auto random_matrix = [&random](int rows, int columns) {
    return RowMatrix::NullaryExpr(rows, columns, [&random] { return std::normal_distribution<double>()(random); });
  };
  const RowMatrix A = random_matrix(5, 3) * random_matrix(3, 5);
  Lu lu(5, Pivoting::kFull);
  Eigen::Map<RowMatrix>(lu.matrix(5), 5, 5) = A;
  ASSERT_EQ(lu.factor(1e-12), 3);
  EXPECT_TRUE(lu.rest_is_negligible(1e-12));
  EXPECT_GT(lu.last_pivot(), 1e-3 * lu.first_pivot());
  RowMatrix null(2, 5), of_transpose(2, 5);
  lu.null_space(null.data());
  lu.null_space_of_transpose(of_transpose.data());
  EXPECT_LT((A * null.transpose()).norm(), 1e-12);
  EXPECT_LT((of_transpose * A).norm(), 1e-12);
  EXPECT_EQ(null.colPivHouseholderQr().rank(), 2);
  EXPECT_EQ(of_transpose.colPivHouseholderQr().rank(), 2);
  Eigen::VectorXd x = Eigen::VectorXd::Constant(5, 7), b = A.transpose() * Eigen::VectorXd::LinSpaced(5, 1, 2);
  lu.solve_near_transposed(Eigen::VectorXd(b).data(), x.data());
  EXPECT_LT((A.transpose() * x - b).norm(), 1e-12);

  RowMatrix small = RowMatrix::Identity(5, 5);
  small.diagonal() << 1, 2, 3, 1e-20, 1e-20;  // regular
  Eigen::Map<RowMatrix>(lu.matrix(5), 5, 5) = small;
  ASSERT_EQ(lu.factor(1e-12), 3);
  EXPECT_FALSE(lu.rest_is_negligible(1e-12));
}

INSTANTIATE_TEST_SUITE_P(Pivotings, LuTest, ::testing::Values(Pivoting::kPartial, Pivoting::kFull));

}  // namespace lcp::linalg::lu_test
