#include "linalg/pseudo_inverse.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <random>

#include "support/problems.h"

namespace lcp::linalg::pseudo_inverse_test {

using testing::RowMatrix;

class PseudoInverseTest : public ::testing::Test {
 protected:
  RowMatrix random_matrix(int rows, int columns) {
    return RowMatrix::NullaryExpr(rows, columns, [this] { return std::normal_distribution<double>()(random_); });
  }

  std::mt19937_64 random_{11};
};

Lu factors_of(const RowMatrix& A) {
  const int k = static_cast<int>(A.rows());
  Lu lu(k, Pivoting::kFull);
  Eigen::Map<RowMatrix>(lu.matrix(k), k, k) = A;
  lu.factor(1e-12);
  return lu;
}

Eigen::VectorXd by_singular_values(const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(A, Eigen::ComputeThinU | Eigen::ComputeThinV).setThreshold(1e-11).solve(b);
}

TEST_F(PseudoInverseTest, IsThatOfTheSingularValuesForEveryRank) {
  for (int k = 1; k <= 8; ++k) {
    for (int rank = 0; rank <= k; ++rank) {
      const RowMatrix A = random_matrix(k, rank) * random_matrix(rank, k);
      const Lu lu = factors_of(A);
      ASSERT_EQ(lu.pivots(), rank);
      PseudoInverse inverse;
      inverse.set(lu);
      const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(k, -1, 2);
      Eigen::VectorXd x = b, expected = by_singular_values(A, b);
      inverse.solve(lu, x.data());
      EXPECT_LE((x - expected).norm(), 1e-9 * expected.norm()) << k << ' ' << rank;
      x = b;
      expected = by_singular_values(A.transpose(), b);
      inverse.solve_transposed(lu, x.data());
      EXPECT_LE((x - expected).norm(), 1e-9 * expected.norm()) << k << ' ' << rank;
    }
  }
}

// The factors are those of B = 2^-r A 2^-c, and the norms those of A.
TEST_F(PseudoInverseTest, MinimisesTheNormsInTheUnitsOfTheMatrix) {
  const int k = 5, r[k] = {3, -2, 0, 5, 1}, c[k] = {-4, 0, 2, 1, -1};
  const RowMatrix B = random_matrix(k, 3) * random_matrix(3, k);
  RowMatrix A = B;
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < k; ++j) A(i, j) = std::ldexp(B(i, j), r[i] + c[j]);
  }
  const Lu lu = factors_of(B);
  PseudoInverse inverse;
  inverse.set(lu, r, c);
  const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(k, 1, 2);
  Eigen::VectorXd x = b, expected = by_singular_values(A, b);
  inverse.solve(lu, x.data());
  EXPECT_LE((x - expected).norm(), 1e-10 * expected.norm());
  x = b;
  expected = by_singular_values(A.transpose(), b);
  inverse.solve_transposed(lu, x.data());
  EXPECT_LE((x - expected).norm(), 1e-10 * expected.norm());
}

TEST_F(PseudoInverseTest, LeavesNothingOfAnEarlierMatrix) {
  const RowMatrix A = random_matrix(4, 2) * random_matrix(2, 4);
  const Lu lu = factors_of(A), larger = factors_of(random_matrix(7, 3) * random_matrix(3, 7));
  PseudoInverse used, fresh;
  used.set(larger);
  used.set(lu);
  fresh.set(lu);
  Eigen::Vector4d x(1, 2, 3, 4), y = x;
  used.solve(lu, x.data());
  fresh.solve(lu, y.data());
  EXPECT_EQ(x, y);
}

}  // namespace lcp::linalg::pseudo_inverse_test
