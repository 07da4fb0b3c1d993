#include "solver/certifier.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::solver::certifier_test {

using Eigen::VectorXd;
using testing::Problem;
using testing::RowMatrix;

VectorXd solution(const Problem& problem) {
  VectorXd z(problem.n()), w(problem.n());
  Ladder ladder(problem.n(), {});
  EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
  return z;
}

Certifier certify(const Problem& problem, const VectorXd& z, const std::optional<double>& tolerance = std::nullopt,
                  bool single_precision = false) {
  Certifier certificate(problem.n(), single_precision);
  certificate.set(problem.M.data(), problem.q.data(), z.data(), tolerance);
  return certificate;
}

// A solved problem whose pairs are z_i > 0, w_i > 0 or tied, in turn.
struct Tied {
  Problem problem;
  VectorXd z;
};

Tied tied_problem(std::mt19937_64& random, int n) {
  std::uniform_real_distribution<double> positive(0.5, 2);
  Tied tied{testing::positive_definite(random, n), VectorXd::Zero(n)};
  VectorXd w = VectorXd::Zero(n);
  for (int i = 0; i < n; ++i) {
    if (i % 3 == 0) tied.z[i] = positive(random);
    if (i % 3 == 1) w[i] = positive(random);
  }
  tied.problem.q = w - tied.problem.M * tied.z;
  return tied;
}

TEST(CertificateTest, MeasuresASmallProblem) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, 2)};
  problem.M << 2, 1, 1, 2;
  const Certifier certificate = certify(problem, Eigen::Vector2d(0.5, 0));  // w = (0, 2.5)
  EXPECT_EQ(certificate.residual(), 0);
  EXPECT_EQ(certificate.margin(), 0.5);  // z_0 in its own row: 1 of 1 + 1; w_1: 2.5 of 2 + 0.5
  EXPECT_EQ(certificate.rank(), 1);
  EXPECT_EQ(certificate.condition(), 1);
  EXPECT_FALSE(certificate.tied(0) || certificate.tied(1));
}

TEST(CertificateTest, MeasuresTheResidualOfWhatIsNoSolution) {
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, -3)};
  EXPECT_EQ(certify(problem, Eigen::Vector2d(1, 3)).residual(), 0);
  EXPECT_EQ(certify(problem, Eigen::Vector2d(0, 3)).residual(), 1);        // w_0 = -1
  EXPECT_EQ(certify(problem, Eigen::Vector2d(1.25, 3)).residual(), 0.25);  // both positive
  EXPECT_EQ(certify(problem, Eigen::Vector2d(1, -7)).residual(), 10);
}

TEST(CertificateTest, HasAMarginThatFallsToZeroAsAPairBecomesATie) {
  for (const double gap : {1.0, 1e-3, 1e-8, 1e-16}) {
    Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, -1)};
    problem.M(1, 0) = 1 - gap;  // z = (1, gap)
    for (const double z_1 : {gap, 0.0}) {
      if (z_1 == 0) problem.M(1, 0) = 1 + gap;  // z = (1, 0), w_1 = gap
      const Certifier certificate = certify(problem, Eigen::Vector2d(1, z_1));
      EXPECT_GE(certificate.margin(), gap < 1e-15 ? 0 : gap / 4);
      EXPECT_LE(certificate.margin(), gap);
    }
  }
}

TEST(CertificateTest, DependsOnNoUnits) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int> exponent(-40, 40);
  for (int k = 0; k < 100; ++k) {
    const int n = 1 + k % 7;
    const auto [problem, z] = tied_problem(random, n);
    Problem scaled = problem;
    VectorXd scaled_z = z;
    for (int i = 0; i < n; ++i) {
      const double row = std::ldexp(1, exponent(random));
      const double column = std::ldexp(1, exponent(random));
      scaled.M.row(i) *= row;
      scaled.q[i] *= row;
      scaled.M.col(i) *= column;
      scaled_z[i] /= column;
    }
    for (const std::optional<double>& tolerance : {std::optional<double>(), std::optional<double>(1e-10)}) {
      const Certifier expected = certify(problem, z, tolerance);
      const Certifier certificate = certify(scaled, scaled_z, tolerance);
      EXPECT_EQ(certificate.margin(), expected.margin());
      EXPECT_EQ(certificate.rank(), expected.rank());
      for (int i = 0; i < n; ++i) EXPECT_EQ(certificate.tied(i), expected.tied(i));
    }
  }
}

TEST(CertificateTest, SeesTheTiesOfAProblem) {
  std::mt19937_64 random(2);
  for (const bool single_precision : {false, true}) {
    for (int k = 0; k < 100; ++k) {
      const int n = 1 + k % 8;
      auto [problem, z] = tied_problem(random, n);
      if (single_precision) {
        problem.M = problem.M.cast<float>().cast<double>();
        problem.q = problem.q.cast<float>().cast<double>();
        z = z.cast<float>().cast<double>();
      }
      const Certifier automatic = certify(problem, z, std::nullopt, single_precision);
      const Certifier given = certify(problem, z, single_precision ? 1e-5 : 1e-13, single_precision);
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(automatic.tied(i), i % 3 == 2) << n << " " << i;
        EXPECT_EQ(given.tied(i), i % 3 == 2) << n << " " << i;
      }
    }
  }
}

TEST(CertificateTest, CallsTiedWhatTheToleranceSays) {
  const Problem problem{RowMatrix::Identity(3, 3), Eigen::Vector3d(-1, 1, 0)};
  const Eigen::Vector3d z(1, 0, 0);
  EXPECT_EQ(certify(problem, z).margin(), 0);
  for (const double tolerance : {0.0, 1e-3, 0.49}) {
    const Certifier certificate = certify(problem, z, tolerance);
    EXPECT_FALSE(certificate.tied(0) || certificate.tied(1));
    EXPECT_TRUE(certificate.tied(2));
  }
  EXPECT_TRUE(certify(problem, z, 0.5).tied(0));  // the size of z_0 is 1 / 2
  EXPECT_FALSE(certify(problem, z, 0.5).tied(1));
  EXPECT_TRUE(certify(problem, z, 1).tied(1));
}

TEST(CertificateTest, GivesTheConditionOfTheActiveBlockAsEigenDoes) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 100; ++k) {
    const int n = 1 + k % 10;
    const Problem problem = testing::positive_definite(random, n);
    const VectorXd z = solution(problem);
    std::vector<int> active;
    for (int i = 0; i < n; ++i) {
      if (z[i] > 0) active.push_back(i);
    }
    const Certifier certificate = certify(problem, z);
    EXPECT_EQ(certificate.rank(), active.size());
    if (active.empty()) {
      EXPECT_EQ(certificate.condition(), 1);
      continue;
    }
    const Eigen::MatrixXd block = problem.M(active, active);
    const VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(block).singularValues();
    const double expected = values[0] / values[values.size() - 1];
    EXPECT_NEAR(certificate.condition(), expected, 1e-9 * expected);
  }
}

TEST(CertificateTest, CountsRedundantContacts) {
  // Normals of four corners of a plane face: J J' has rank three.
  RowMatrix J(4, 6);
  J << 0, 0, 1, 0.3, -0.2, 0,  //
      0, 0, 1, 0.3, 0.2, 0,    //
      0, 0, 1, -0.3, 0.2, 0,   //
      0, 0, 1, -0.3, -0.2, 0;
  for (const bool single_precision : {false, true}) {
    RowMatrix M = J * J.transpose();
    if (single_precision) M = M.cast<float>().cast<double>();
    const Problem problem{M, -M * VectorXd::Ones(4)};
    const Certifier all = certify(problem, VectorXd::Ones(4), std::nullopt, single_precision);
    EXPECT_EQ(all.rank(), 3);
    EXPECT_EQ(all.condition(), std::numeric_limits<double>::infinity());
    const VectorXd corner = VectorXd::Unit(4, 1);
    const Certifier one = certify({M, (VectorXd::Ones(4) - M * corner).eval()}, corner);
    EXPECT_EQ(one.rank(), 1);
    EXPECT_EQ(one.condition(), 1);
  }
}

TEST(CertificateTest, CountsNoMoreThanTheRankOfFrictionBlocks) {
  std::mt19937_64 random(4);
  bool deficient = false;
  for (int k = 0; k < 200; ++k) {
    const Problem problem = testing::friction_block(random, 4, 4);
    const VectorXd z = solution(problem);
    const Certifier certificate = certify(problem, z);
    std::vector<int> active;
    for (int i = 0; i < problem.n(); ++i) {
      if (z[i] > 0) active.push_back(i);
    }
    EXPECT_LE(certificate.rank(), active.size());
    if (std::isfinite(certificate.condition())) continue;
    EXPECT_LT(certificate.rank(), active.size());
    deficient = true;
  }
  EXPECT_TRUE(deficient);
}

TEST(CertificateTest, AnswersTheEmptyProblemAndTheEmptyActiveSet) {
  const Certifier empty = certify({RowMatrix(0, 0), VectorXd(0)}, VectorXd(0));
  EXPECT_EQ(empty.residual(), 0);
  EXPECT_EQ(empty.margin(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(empty.condition(), 1);
  EXPECT_EQ(empty.rank(), 0);
  const Certifier inactive = certify({RowMatrix::Zero(1, 1), VectorXd::Ones(1)}, VectorXd::Zero(1));
  EXPECT_EQ(inactive.margin(), 1);
  EXPECT_EQ(inactive.condition(), 1);
  EXPECT_EQ(inactive.rank(), 0);
  const Certifier zero = certify({RowMatrix::Zero(1, 1), VectorXd::Zero(1)}, VectorXd::Zero(1));
  EXPECT_EQ(zero.margin(), 0);
  EXPECT_TRUE(zero.tied(0));
}

TEST(CertificateTest, IsNaNWhereAnyNumberIsAndRecovers) {
  const double nan = std::nan("");
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 0)};
  const Eigen::Vector2d z(1, 0);
  for (int kind = 0; kind < 3; ++kind) {
    for (int i = 0; i < 2; ++i) {
      for (const std::optional<double>& tolerance : {std::optional<double>(), std::optional<double>(1.0)}) {
        Problem bad = problem;
        Eigen::Vector2d bad_z = z;
        (kind == 0 ? bad_z[i] : kind == 1 ? bad.q[i] : bad.M(1, i)) = nan;
        Certifier certificate = certify(problem, z);
        certificate.set(bad.M.data(), bad.q.data(), bad_z.data(), tolerance);
        EXPECT_TRUE(std::isnan(certificate.residual()));
        EXPECT_TRUE(std::isnan(certificate.margin()));
        EXPECT_TRUE(std::isnan(certificate.condition()));
        EXPECT_EQ(certificate.rank(), 0);
        EXPECT_FALSE(certificate.tied(0) || certificate.tied(1));
        certificate.set(problem.M.data(), problem.q.data(), z.data(), tolerance);
        EXPECT_EQ(certificate.residual(), 0);
        EXPECT_EQ(certificate.rank(), 1);
        EXPECT_TRUE(certificate.tied(1));
      }
    }
  }
}

}  // namespace lcp::solver::certifier_test
