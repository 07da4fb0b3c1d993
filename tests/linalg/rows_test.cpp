// The passes over the rows of a matrix, see linalg/row_kernels.h.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "linalg/kernels.h"
#include "support/problems.h"

namespace lcp::linalg::rows_test {

using testing::RowMatrix;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A matrix with NaN behind its last entry.
class Guarded {
 public:
  explicit Guarded(const RowMatrix& M) : n_(static_cast<int>(M.rows())), entries_(M.size() + 8, kNaN), spans_(n_) {
    std::copy_n(M.data(), M.size(), entries_.begin());
    largest_ = kernels().rows.scan(n_, entries_.data(), spans_.data());
  }

  double largest() const { return largest_; }
  const std::vector<Span>& spans() const { return spans_; }
  Rows dense() const { return {n_, entries_.data(), nullptr}; }
  Rows rows() const { return {n_, entries_.data(), spans_.data()}; }

 private:
  int n_;
  std::vector<double> entries_;
  std::vector<Span> spans_;
  double largest_ = 0;
};

bool is_symmetric(const RowMatrix& M, double rounding = 1e-15) {
  const Eigen::VectorXd diagonal = M.diagonal().cwiseAbs().cwiseMax(1e-300);
  return kernels().rows.is_symmetric(Guarded(M).rows(), diagonal.data(), rounding);
}

class RowsTest : public ::testing::Test {
 protected:
  // Zero outside a range of columns in each row.
  RowMatrix ragged(int n) {
    RowMatrix M = RowMatrix::Zero(n, n);
    std::uniform_int_distribution<int> column(0, n);
    for (int i = 0; i < n; ++i) {
      const int first = column(random_);
      const int last = column(random_);
      for (int j = first; j < last; ++j) M(i, j) = normal_(random_);
    }
    return M;
  }

  Eigen::VectorXd vector(int n) {
    return Eigen::VectorXd::NullaryExpr(n, [this] { return normal_(random_); });
  }

  std::mt19937_64 random_{4};
  std::normal_distribution<double> normal_;
};

TEST_F(RowsTest, ScanFindsTheLargestEntryAndLeavesOutNothing) {
  for (int n = 0; n <= 40; ++n) {
    const RowMatrix M = ragged(n);
    const Guarded guarded(M);
    EXPECT_EQ(guarded.largest(), n == 0 ? 0 : M.cwiseAbs().maxCoeff());
    for (int i = 0; i < n; ++i) {
      const auto [first, last] = guarded.spans()[i];
      ASSERT_LE(0, first);
      ASSERT_LE(first, last);
      ASSERT_LE(last, n);
      for (int j = 0; j < n; ++j) EXPECT_TRUE(M(i, j) == 0 || (first <= j && j < last));
    }
  }
}

TEST_F(RowsTest, ScanNarrowsABandToTheVectorsAroundIt) {
  const Guarded band(RowMatrix::Identity(100, 100));
  const Guarded zero(RowMatrix::Zero(100, 100));
  for (int i = 0; i < 100; ++i) {
    EXPECT_LT(band.spans()[i].last - band.spans()[i].first, 16);
    EXPECT_EQ(zero.spans()[i].last, zero.spans()[i].first);
  }
}

TEST_F(RowsTest, ScanSeesWhatIsNotFiniteAnywhere) {
  for (const int n : {1, 7, 17}) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        for (const double bad : {kNaN, kInfinity, -kInfinity}) {
          RowMatrix M = ragged(n);
          M(i, j) = bad;
          EXPECT_EQ(Guarded(M).largest(), kInfinity);
        }
      }
    }
  }
}

TEST_F(RowsTest, ASmallRowIsSeenWhereverItIs) {
  for (int n = 1; n <= 40; ++n) {
    for (int small = 0; small < n; ++small) {
      RowMatrix M =
          ragged(n).unaryExpr([](double entry) { return std::copysign(std::min(std::abs(entry), 0.99), entry); });
      std::uniform_int_distribution<int> column(0, n - 1);
      for (int i = 0; i < n; ++i) M(i, column(random_)) = i % 2 == 0 ? 1 : -1.5;
      const Guarded no_small(M);
      EXPECT_FALSE(kernels().rows.has_small_row(no_small.rows(), 1));
      EXPECT_FALSE(kernels().rows.has_small_row(no_small.dense(), 1));
      for (const double factor : {0.5, 0.0}) {
        M.row(small) *= factor;
        const Guarded guarded(M);
        EXPECT_TRUE(kernels().rows.has_small_row(guarded.rows(), 1)) << n << " " << small;
        EXPECT_TRUE(kernels().rows.has_small_row(guarded.dense(), 1)) << n << " " << small;
      }
    }
  }
}

TEST_F(RowsTest, SymmetryIsSeenInEveryPair) {
  for (int n = 0; n <= 26; ++n) {
    for (const bool banded : {false, true}) {
      RowMatrix M = ragged(n);
      if (banded) {
        for (int i = 0; i < n; ++i) {
          for (int j = 0; j < n; ++j) M(i, j) = std::abs(i - j) <= 2 ? 1 : 0;
        }
      }
      M = M + RowMatrix(M.transpose());
      EXPECT_TRUE(is_symmetric(M));
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          if (i == j) continue;
          const double entry = std::exchange(M(i, j), 7.0);
          EXPECT_FALSE(is_symmetric(M)) << n << " " << i << " " << j;
          M(i, j) = entry;
        }
      }
    }
  }
}

TEST_F(RowsTest, SymmetryIsMeasuredBesideTheDiagonal) {
  for (const int n : {2, 20}) {
    RowMatrix M = RowMatrix::Identity(n, n);
    M(1, 0) = 1.5e-15;
    EXPECT_TRUE(is_symmetric(M, 2e-15));
    EXPECT_FALSE(is_symmetric(M, 1e-15));
    M(0, 0) = 16;
    EXPECT_TRUE(is_symmetric(M, 1e-15));
    M(0, 0) = 1e-2;
    EXPECT_FALSE(is_symmetric(M, 2e-15));
  }
}

TEST_F(RowsTest, SumsAreThoseOfEigen) {
  for (int n = 1; n <= 40; ++n) {
    const RowMatrix M = ragged(n);
    const Guarded guarded(M);
    const Eigen::VectorXd q = vector(n);
    const Eigen::VectorXd z = vector(n);
    const Eigen::VectorXd expected_sum = M * z + q;
    const Eigen::VectorXd expected_magnitude = M.cwiseAbs() * z.cwiseAbs() + q.cwiseAbs();
    for (const Rows& rows : {guarded.rows(), guarded.dense()}) {
      for (const int from : {0, n / 3}) {
        const int count = n - from;
        std::vector<double> sum(count + 1, kNaN), magnitude(count + 1, kNaN);
        kernels().rows.sums(rows, from, count, q.data(), z.data(), sum.data(), magnitude.data());
        for (int i = from; i < n; ++i) {
          EXPECT_NEAR(sum[i - from], expected_sum[i], 1e-15 * (n + 1) * expected_magnitude[i]);
          EXPECT_NEAR(magnitude[i - from], expected_magnitude[i], 1e-15 * (n + 1) * expected_magnitude[i]);
        }
        EXPECT_TRUE(std::isnan(sum[count]) && std::isnan(magnitude[count]));
      }
    }
  }
}

TEST_F(RowsTest, ComplementIsThatOfTheRowsThatAreAskedFor) {
  for (int n = 1; n <= 40; ++n) {
    const RowMatrix M = ragged(n);
    const Guarded guarded(M);
    const Eigen::VectorXd q = vector(n);
    const Eigen::VectorXd z = vector(n);
    const Eigen::VectorXd expected = M * z + q;
    std::vector<int> index;
    for (int i = n - 1; i >= 0; i -= 2) index.push_back(i);
    Eigen::VectorXd w = Eigen::VectorXd::Constant(n, 99);
    kernels().rows.listed_sums(guarded.rows(), static_cast<int>(index.size()), index.data(), q.data(), z.data(),
                               w.data());
    for (int i = 0; i < n; ++i) {
      if ((n - 1 - i) % 2 == 0) {
        EXPECT_NEAR(w[i], expected[i], 1e-13 * (1 + std::abs(expected[i])));
      } else {
        EXPECT_EQ(w[i], 99);
      }
    }
  }
}

}  // namespace lcp::linalg::rows_test
