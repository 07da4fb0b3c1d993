#include "solver/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lcp::solver::verify_test {

constexpr double kTolerance = 1e-9;

double violation_of(double M, double q, double z) {
  double w = 0;
  return violation(1, 0, &M, &q, &z, kTolerance, &w);
}

TEST(VerifyTest, AcceptsASolution) { EXPECT_LE(violation_of(2, -1, 0.5), 1); }

TEST(VerifyTest, RejectsTheShortcutMinusQOverM) { EXPECT_GT(violation_of(-1, -1, -1), 1); }

TEST(VerifyTest, RejectsAnythingThatIsNotFinite) {
  EXPECT_GT(violation_of(1, -1, std::nan("")), 1);
  EXPECT_GT(violation_of(1, -1, std::numeric_limits<double>::infinity()), 1);
  EXPECT_GT(violation_of(0, -1, std::numeric_limits<double>::infinity()), 1);
}

TEST(VerifyTest, WantsBothOfAPairToBeComplementary) {
  EXPECT_GT(violation_of(1, 1, 1e-12), 1);  // min(z, w) is small, but z > 0 claims w = 0, and w is 1
}

TEST(VerifyTest, MeasuresInUnitsOfTheTolerance) {
  EXPECT_NEAR(violation_of(1, -1, 1 - 0.5e-9), 0.5, 1e-6);
  EXPECT_NEAR(violation_of(1, -1, 1 - 2e-9), 2, 1e-6);
}

TEST(VerifyTest, ChecksASmallRowBesideALargeOne) {
  const double M[4] = {1, 0, 0, 1};
  const double q[2] = {1e10, -1};
  const double z[2] = {0, 0};
  double w[2];
  EXPECT_GT(violation(2, 0, M, q, z, kTolerance, w), 1);
}

TEST(VerifyTest, SeesOneWrongRowAmongMany) {
  for (int n = 1; n <= 140; n += n < 20 ? 1 : 40) {
    const std::size_t size = static_cast<std::size_t>(n) * n;
    std::vector<double> M(size), q(n, -1.0), z(n, 1.0), w(n);
    for (int i = 0; i < n; ++i) M[static_cast<std::size_t>(i) * (n + 1)] = 1;
    std::vector<linalg::Span> spans(n);
    linalg::kernels().rows.scan(n, M.data(), spans.data());
    const linalg::Rows banded = {n, M.data(), spans.data()};
    EXPECT_EQ(violation(banded, 0, q.data(), z.data(), kTolerance, w.data()), 0);
    for (int i = 0; i < n; ++i) {
      for (const double wrong : {0.0, 1 + 1e-8, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
        z[i] = wrong;
        EXPECT_GT(violation(n, 0, M.data(), q.data(), z.data(), kTolerance, w.data()), 1);
        EXPECT_GT(violation(banded, 0, q.data(), z.data(), kTolerance, w.data()), 1);
      }
      z[i] = 1;
    }
  }
}

TEST(VerifyTest, SaysWhetherRowsHoldToTheRoundOffOfTheirOwnTerms) {
  constexpr int kRows = 70;                  // more than are looked at together
  for (const double largest : {1.0, 1e9}) {  // a row with 1e9 is summed in twice the precision
    for (const int wrong : {-1, 0, 13, 69}) {
      std::vector<double> M(kRows * kRows), q(kRows, -1.0), z(kRows, 1.0), w(kRows), terms(kRows);
      for (int i = 0; i < kRows; ++i) M[static_cast<std::size_t>(i) * (kRows + 1)] = 1;
      M[2 * kRows + 3] = largest;
      M[2 * kRows + 4] = -largest;
      if (wrong >= 0) z[wrong] += 1e-10;
      bool rows_hold = wrong >= 0;
      EXPECT_LE(violation(kRows, 0, M.data(), q.data(), z.data(), kTolerance, w.data(), terms.data(), &rows_hold), 1);
      EXPECT_EQ(rows_hold, wrong < 0) << wrong;
    }
  }
  const double M = 1, q = -1, z = std::nan("");
  double w;
  bool rows_hold = true;
  violation(1, 0, &M, &q, &z, kTolerance, &w, nullptr, &rows_hold);
  EXPECT_FALSE(rows_hold);
}

TEST(VerifyTest, DoesNotExcuseAHugeZ) {
  // A nearly singular basis: the terms are 1e17, and their cancellation leaves an error of the size of q.
  const double M[4] = {1, -1, -1, 1};
  const double q[2] = {-1, -1};
  const double z[2] = {1e17, 1e17};
  double w[2];
  EXPECT_GT(violation(2, 0, M, q, z, kTolerance, w), 1);
}

}  // namespace lcp::solver::verify_test
