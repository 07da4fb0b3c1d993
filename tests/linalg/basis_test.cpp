#include "linalg/basis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/problems.h"

namespace lcp::linalg::basis_test {

using testing::RowMatrix;

class BasisTest : public ::testing::Test {
 protected:
  RowMatrix random_matrix(int n) {
    return RowMatrix::NullaryExpr(n, n, [this] { return std::normal_distribution<double>()(random_); });
  }
  std::mt19937_64 random_{7};
};

TEST_F(BasisTest, SolvesWithTheMarkedSubmatrixAndItsTranspose) {
  for (int n = 1; n <= 12; ++n) {
    const RowMatrix M = random_matrix(n);
    std::vector<unsigned char> marked(n);
    for (auto& mark : marked) mark = random_() % 2;
    Basis basis(n, 1e-12);
    basis.factor(M.data(), marked.data());
    const int k = basis.size();
    ASSERT_EQ(k, std::count(marked.begin(), marked.end(), 1));
    Eigen::MatrixXd A(k, k);
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < k; ++j) A(i, j) = M(basis.indices()[i], basis.indices()[j]);
    }
    const Eigen::VectorXd right = Eigen::VectorXd::LinSpaced(k, 1, 2);
    Eigen::VectorXd x = right;
    basis.solve(x.data());
    EXPECT_LT((A * x - right).norm(), 1e-11) << n;
    x = right;
    basis.solve_transposed(x.data());
    EXPECT_LT((A.transpose() * x - right).norm(), 1e-11) << n;
  }
}

TEST_F(BasisTest, GivesTheMinimumNormSolutionOfASingularSubmatrix) {
  RowMatrix M(2, 2);
  M << 1, -1, -1, 1;
  const unsigned char marked[2] = {1, 1};
  Basis basis(2, 1e-12);
  basis.factor(M.data(), marked);
  Eigen::Vector2d x(3, 1);  // nearest in the range: (1, -1); minimum-norm preimage (1/2, -1/2)
  basis.solve(x.data());
  EXPECT_LT((x - Eigen::Vector2d(0.5, -0.5)).norm(), 1e-14);
}

TEST_F(BasisTest, GivesThePseudoInverseOfNonsymmetricSingularMatricesOfMixedUnits) {
  for (int k = 0; k < 20; ++k) {
    const int n = 6;
    const Eigen::MatrixXd left = random_matrix(n).leftCols(4);
    const Eigen::MatrixXd right = random_matrix(n).topRows(4);
    RowMatrix M = left * right;  // rank 4
    M.row(2) *= 1e4;
    M.col(5) *= 1e-3;
    const std::vector<unsigned char> all(n, 1);
    Basis basis(n, 1e-12);
    basis.factor(M.data(), all.data());
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, -1, 1);
    for (const bool transposed : {false, true}) {
      const Eigen::MatrixXd A = transposed ? Eigen::MatrixXd(M.transpose()) : Eigen::MatrixXd(M);
      const Eigen::VectorXd expected =
          Eigen::JacobiSVD<Eigen::MatrixXd>(A, Eigen::ComputeThinU | Eigen::ComputeThinV).setThreshold(1e-12).solve(b);
      Eigen::VectorXd x = b;
      transposed ? basis.solve_transposed(x.data()) : basis.solve(x.data());
      EXPECT_LT((x - expected).norm(), 1e-7 * expected.norm());
    }
  }
}

// M_aa of rank 4 has the same rank, and solutions of its equations, in any units.
TEST_F(BasisTest, FindsTheRankInAnyUnits) {
  for (const int decades : {0, 3, 10}) {
    for (int k = 0; k < 20; ++k) {
      const int n = 6;
      RowMatrix M = random_matrix(n).leftCols(4) * random_matrix(n).topRows(4);
      for (int i = 0; i < n; ++i) {
        M.row(i) *= std::pow(10.0, static_cast<int>(random_() % (2 * decades + 1)) - decades);
        M.col(i) *= std::pow(10.0, static_cast<int>(random_() % (2 * decades + 1)) - decades);
      }
      const std::vector<unsigned char> all(n, 1);
      Basis basis(n, 1e-12);
      basis.factor(M.data(), all.data());
      EXPECT_EQ(basis.rank(), 4) << M;
      if (decades > 3) continue;  // in the norm of all rows the smallest ones of b would be lost
      for (const bool transposed : {false, true}) {
        const Eigen::MatrixXd A = transposed ? Eigen::MatrixXd(M.transpose()) : Eigen::MatrixXd(M);
        const Eigen::VectorXd b = A * Eigen::VectorXd::LinSpaced(n, -1, 1);
        Eigen::VectorXd x = b;
        transposed ? basis.solve_transposed(x.data()) : basis.solve(x.data());
        const Eigen::VectorXd size = A.cwiseAbs() * (x.cwiseAbs() + Eigen::VectorXd::Ones(n));
        EXPECT_LT(((A * x - b).array() / size.array()).abs().maxCoeff(), 1e-9) << M;
      }
    }
  }
}

TEST_F(BasisTest, SolvesARegularMatrixOfMixedUnits) {
  RowMatrix M(2, 2);
  M << 1e12, 1, 1, 1e-8;  // determinant 1e4 - 1
  const unsigned char marked[2] = {1, 1};
  Basis basis(2, 1e-12);
  basis.factor(M.data(), marked);
  Eigen::Vector2d x(1, 2);
  basis.solve(x.data());
  EXPECT_LT((M * x - Eigen::Vector2d(1, 2)).norm(), 1e-10);
}

// The entries of M 2^(r + c) span 20 decades. Of the many ways to equilibrate such a matrix some make it near singular.
TEST_F(BasisTest, DoesNotMindUnits) {
  for (int k = 0; k < 300; ++k) {
    const int n = 3 + k % 4;
    RowMatrix M = RowMatrix::NullaryExpr(n, n, [this] { return static_cast<double>(random_() % 4) - 2; });
    M.diagonal().array() += 2 * n;
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, -1, 1);
    const Eigen::VectorXd expected = M.partialPivLu().solve(b), transposed = M.transpose().partialPivLu().solve(b);
    Eigen::VectorXi r(n), c(n);
    for (int i = 0; i < n; ++i) {
      r[i] = static_cast<int>(random_() % 69) - 34;
      c[i] = static_cast<int>(random_() % 69) - 34;
    }
    const auto in_units = [](Eigen::VectorXd x, const Eigen::VectorXi& exponents, int sign) {
      for (int i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], sign * exponents[i]);
      return x;
    };
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) M(i, j) = std::ldexp(M(i, j), r[i] + c[j]);
    }
    const std::vector<unsigned char> all(n, 1);
    Basis basis(n, 1e-12);
    basis.factor(M.data(), all.data());
    EXPECT_EQ(basis.rank(), n);
    Eigen::VectorXd x = in_units(b, r, 1);
    basis.solve(x.data());
    EXPECT_LT((in_units(x, c, 1) - expected).norm(), 1e-11) << M;
    x = in_units(b, c, 1);
    basis.solve_transposed(x.data());
    EXPECT_LT((in_units(x, r, 1) - transposed).norm(), 1e-11) << M;
  }
}

TEST_F(BasisTest, SolvesLargeMatricesByBlocksOnlyWhereTheyAreRegular) {
  const int n = 300;
  const std::vector<unsigned char> all(n, 1);
  Basis basis(n, 1e-12);
  const RowMatrix regular = random_matrix(n) + 40 * RowMatrix::Identity(n, n);
  const RowMatrix singular = regular.leftCols(n - 1) * regular.topRows(n - 1);
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(n, -1, 1);
  for (const RowMatrix& M : {regular, singular}) {
    basis.factor(M.data(), all.data());
    EXPECT_EQ(basis.regular(), M == regular);
    Eigen::VectorXd y = M * x;
    basis.solve(y.data());
    EXPECT_LT((M * (y - x)).norm(), 1e-8);
    y = M.transpose() * x;
    basis.solve_transposed(y.data());
    EXPECT_LT((M.transpose() * (y - x)).norm(), 1e-8);
    y.setZero();
    Eigen::VectorXd b = M * x;
    basis.solve_near(b.data(), y.data());
    EXPECT_LT((M * (y - x)).norm(), 1e-8);
  }
}

TEST_F(BasisTest, LeavesNothingOfAnEarlierFactorisation) {
  const RowMatrix M = random_matrix(6);
  const unsigned char all[6] = {1, 1, 1, 1, 1, 1};
  const unsigned char some[6] = {0, 1, 0, 0, 1, 0};
  Basis used(6, 1e-12), fresh(6, 1e-12);
  used.factor(M.data(), all);
  used.factor(M.data(), some);
  fresh.factor(M.data(), some);
  Eigen::Vector2d x(1, 2), y(1, 2);
  used.solve(x.data());
  fresh.solve(y.data());
  EXPECT_EQ(x, y);
}

}  // namespace lcp::linalg::basis_test
