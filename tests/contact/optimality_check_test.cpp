#include "contact/optimality_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/bodies.h"

namespace lcp::contact {
namespace {

using Eigen::VectorXd;
using testing::Bodies;
using testing::random_bodies;

OptimalityCheck check(const Bodies& bodies, const VectorXd& v) {
  OptimalityCheck result(bodies.n, bodies.contacts);
  result.set(bodies.problem(), v.data());
  return result;
}

VectorXd solve(const Bodies& bodies) {
  VectorXd v = bodies.v_free, y(3 * bodies.contacts), gamma(3 * bodies.contacts);
  Newton(bodies.n, bodies.contacts).solve(bodies.problem(), {1e-12, 200}, v.data(), y.data(), gamma.data());
  return v;
}

TEST(OptimalityCheckTest, MeasuresTheResidualAndTheCondition) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Bodies bodies = random_bodies(6, 3, seed);
    const VectorXd v = solve(bodies), away = v + VectorXd::Constant(6, 0.01);
    EXPECT_LE(check(bodies, v).residual(), 1e-11);
    const VectorXd scale = bodies.A.diagonal().cwiseSqrt().cwiseInverse();
    const VectorXd g = scale.cwiseProduct(bodies.gradient(away));
    const VectorXd push = scale.cwiseProduct(bodies.J.transpose() * bodies.impulses(away));
    const VectorXd change = scale.cwiseProduct(bodies.A * (away - bodies.v_free));
    EXPECT_NEAR(check(bodies, away).residual(), g.norm() / std::max(push.norm(), change.norm()), 1e-12);
    const Eigen::MatrixXd H = scale.asDiagonal() * bodies.hessian(v) * scale.asDiagonal();
    const VectorXd values = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(H).eigenvalues();
    EXPECT_NEAR(check(bodies, v).condition() / (values.maxCoeff() / values.minCoeff()), 1, 1e-9);
    EXPECT_GT(check(bodies, v).condition(), 1);
  }
}

// A v that differs from v_free by rounding is right for contacts that are apart.
TEST(OptimalityCheckTest, CountsRoundingErrorsAsZero) {
  Bodies bodies = random_bodies(6, 3, 1);
  for (int k = 0; k < 3; ++k) bodies.v_hat[3 * k + 2] = -100;
  const VectorXd v = bodies.v_free * (1 + 1e-15);
  EXPECT_GT((v - bodies.v_free).norm(), 0);
  EXPECT_EQ(check(bodies, v).residual(), 0);
  EXPECT_EQ(check(bodies, bodies.v_free * (1 + 1e-12)).residual(), 1);
}

// One contact of a unit mass, with the velocity v = (x, 0, z): y = (-x / R_t, 0, -z / R_n).
TEST(OptimalityCheckTest, MeasuresTheDistanceToTheNearestBoundary) {
  Bodies bodies = random_bodies(3, 1, 0);
  bodies.A.setIdentity();
  bodies.J.setIdentity();
  bodies.v_hat.setZero();
  bodies.R << 0.04, 0.04, 0.01;
  bodies.mu << 0.5;  // in the norm of R, the cone's slope is .5 * .2 / .1 = 1
  const auto margin = [&](double x, double z) { return check(bodies, Eigen::Vector3d(x, 0, z)).margin(); };
  // sqrt(R) y = (-x / .2, 0, -z / .1), whose norm is the size that the distance is measured in.
  EXPECT_NEAR(margin(0, -0.1), std::sqrt(0.5), 1e-14);  // in the middle of the cone: its edge
  EXPECT_NEAR(margin(0.2, -0.1), 0, 1e-14);             // slides or sticks
  EXPECT_NEAR(margin(0.2, 0.1), 0, 1e-14);              // slides or leaves
  EXPECT_NEAR(margin(0.2, 0), std::sqrt(0.5), 1e-14);   // slides
  EXPECT_NEAR(margin(0, 0.1), std::sqrt(0.5), 1e-14);   // apart: slides or leaves
  EXPECT_EQ(margin(0, 0), 0);
  bodies.mu << 0;  // then nothing sticks
  EXPECT_NEAR(margin(0, -0.1), 1, 1e-14);
  EXPECT_NEAR(margin(0.2, -0.1), std::sqrt(0.5), 1e-14);
}

TEST(OptimalityCheckTest, HandlesNoContactsAndInvalidInput) {
  const Bodies alone = random_bodies(4, 0, 1);
  EXPECT_EQ(check(alone, alone.v_free).residual(), 0);
  EXPECT_TRUE(std::isinf(check(alone, alone.v_free).margin()));
  const Bodies bodies = random_bodies(6, 2, 1);
  EXPECT_TRUE(std::isnan(check(bodies, VectorXd::Constant(6, NAN)).residual()));
  Bodies bad = bodies;
  bad.A(0, 0) = -1;
  EXPECT_TRUE(std::isnan(check(bad, bodies.v_free).condition()));
  EXPECT_TRUE(std::isnan(check(bad, bodies.v_free).margin()));
}

}  // namespace
}  // namespace lcp::contact
