#include "linalg/equilibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/problems.h"

namespace lcp::linalg::equilibrate_test {

TEST(EquilibrateTest, BringsRowsAndColumnsToLikeSizeExactly) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 50; ++k) {
    const int n = 7;
    testing::RowMatrix M = testing::RowMatrix::NullaryExpr(n, n, [&] { return normal(random); });
    for (int i = 0; i < n; ++i) {
      M.row(i) *= std::pow(10, 20 * normal(random));
      M.col(i) *= std::pow(10, 20 * normal(random));
    }
    testing::RowMatrix scaled = M;
    std::vector<int> r(n), c(n);
    equilibrate(n, scaled.data(), r.data(), c.data());
    const double largest = M.cwiseAbs().maxCoeff();
    testing::RowMatrix tenfold = 10 * M;
    std::vector<int> r10(n), c10(n);
    equilibrate(n, tenfold.data(), r10.data(), c10.data());
    EXPECT_EQ(r, r10);
    EXPECT_EQ(c, c10);
    for (int i = 0; i < n; ++i) {
      EXPECT_GT(scaled.row(i).cwiseAbs().maxCoeff(), 0.2 * largest);
      EXPECT_LT(scaled.row(i).cwiseAbs().maxCoeff(), 4 * largest);
      EXPECT_GT(scaled.col(i).cwiseAbs().maxCoeff(), 0.2 * largest);
      for (int j = 0; j < n; ++j) EXPECT_EQ(std::ldexp(scaled(i, j), r[i] + c[j]), M(i, j));
    }
  }
}

TEST(EquilibrateTest, LeavesZeroRowsAlone) {
  double A[4] = {0, 0, 0, 8};
  int r[2], c[2];
  equilibrate(2, A, r, c);
  EXPECT_EQ(A[0], 0);
  EXPECT_EQ(r[0], 0);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(A[3], 8);
}

TEST(EquilibrateTest, RemovesUnitsWhateverTheyWere) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 50; ++k) {
    const int n = 6;
    testing::RowMatrix M = testing::RowMatrix::NullaryExpr(n, n, [&] { return normal(random); });
    M(0, 5) = M(3, 1) = 0;
    testing::RowMatrix in_units = M;
    for (int i = 0; i < n; ++i) {
      in_units.row(i) *= std::exp2(std::round(20 * normal(random)));
      in_units.col(i) *= std::exp2(std::round(20 * normal(random)));
    }
    const testing::RowMatrix given = in_units;
    std::vector<int> r(n), c(n);
    remove_units(n, M.data(), r.data(), c.data());
    remove_units(n, in_units.data(), r.data(), c.data());
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        EXPECT_EQ(std::ldexp(in_units(i, j), r[i] + c[j]), given(i, j));
        if (M(i, j) == 0) continue;
        EXPECT_LE(std::abs(std::log2(in_units(i, j) / M(i, j))), 2);  // the fits are rounded
      }
    }
  }
}

}  // namespace lcp::linalg::equilibrate_test
