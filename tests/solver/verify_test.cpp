#include "solver/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lcp::solver {
namespace {

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

TEST(VerifyTest, KeepsASmallRowHonestBesideALargeOne) {
  const double M[4] = {1, 0, 0, 1};
  const double q[2] = {1e10, -1};
  const double z[2] = {0, 0};
  double w[2];
  EXPECT_GT(violation(2, 0, M, q, z, kTolerance, w), 1);
}

TEST(VerifyTest, DoesNotExcuseAHugeZ) {
  // A nearly singular basis: the terms are 1e17, and their cancellation leaves an error of the size of q.
  const double M[4] = {1, -1, -1, 1};
  const double q[2] = {-1, -1};
  const double z[2] = {1e17, 1e17};
  double w[2];
  EXPECT_GT(violation(2, 0, M, q, z, kTolerance, w), 1);
}

}  // namespace
}  // namespace lcp::solver
