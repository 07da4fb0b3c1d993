#include "contact/derivative.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "contact/newton.h"
#include "support/bodies.h"

namespace lcp::contact {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using testing::Bodies;
using testing::Matrix;
using testing::random_bodies;

struct Point {
  VectorXd v, y, gamma;
};

Point solution_point(const Bodies& bodies) {
  Point point{bodies.v_free, VectorXd(3 * bodies.contacts), VectorXd(3 * bodies.contacts)};
  const Outcome outcome =
      Newton(bodies.n, bodies.contacts)
          .solve(bodies.problem(), {1e-14, 500}, point.v.data(), point.y.data(), point.gamma.data());
  EXPECT_EQ(outcome.termination, Termination::kSolved);
  return point;
}

struct Gradients {
  explicit Gradients(const Bodies& bodies)
      : l(bodies.n),
        v_free(bodies.n),
        v_hat(3 * bodies.contacts),
        R(3 * bodies.contacts),
        mu(bodies.contacts),
        gamma(3 * bodies.contacts) {}
  Adjoint adjoint() { return {l.data(), v_free.data(), v_hat.data(), R.data(), mu.data(), gamma.data()}; }

  VectorXd l, v_free, v_hat, R, mu, gamma;
};

Gradients gradients_of(const Bodies& bodies, const Point& at, const Point& g) {
  Gradients result(bodies);
  Derivative(bodies.n, bodies.contacts)
      .adjoint(bodies.problem(), at.v.data(), at.y.data(), {g.v.data(), g.y.data(), g.gamma.data()}, result.adjoint());
  return result;
}

// The derivative of g_v' v + g_y' y + g_gamma' gamma with respect to one number of the problem.
template <class Change>
double slope(const Bodies& bodies, const Point& g, const Change& change) {
  const double h = 1e-6;
  const auto value = [&](double by) {
    Bodies moved = bodies;
    change(moved, by);
    const Point at = solution_point(moved);
    return g.v.dot(at.v) + g.y.dot(at.y) + g.gamma.dot(at.gamma);
  };
  return (value(h) - value(-h)) / (2 * h);
}

TEST(DerivativeTest, AgreesWithCentralDifferences) {
  std::array<int, 3> seen{};
  for (unsigned seed = 0; seed < 24; ++seed) {
    Bodies bodies = random_bodies(6, 3, seed);
    bodies.R *= 30;  // differences see the curvature of stiff contacts
    if (seed % 2 == 0) bodies.mu *= 20;
    const Point at = solution_point(bodies);
    for (int k = 0; k < 3; ++k) ++seen[static_cast<std::size_t>(bodies.at(at.v, k).region)];
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Point given{VectorXd(6), VectorXd(9), VectorXd(9)};
    for (double& x : given.v) x = normal(random);
    for (double& x : given.y) x = 0.01 * normal(random);
    for (double& x : given.gamma) x = normal(random);
    const Gradients g = gradients_of(bodies, at, given);
    const double size = given.v.norm() + g.l.norm() + g.v_hat.norm() + g.R.norm();
    const auto expect = [&](double gradient, const auto& change) {
      EXPECT_NEAR(gradient, slope(bodies, given, change), 1e-6 * size) << seed;
    };
    MatrixXd g_A = -g.l * (at.v - bodies.v_free).transpose();
    g_A = (g_A + g_A.transpose()).eval() / 2;
    const MatrixXd g_J = g.gamma * g.l.transpose() - g.v_hat * at.v.transpose();
    for (int i = 0; i < 6; ++i) {
      expect(g.v_free[i], [i](Bodies& b, double by) { b.v_free[i] += by; });
      for (int j = 0; j < 6; ++j) expect(g_A(i, j), [i, j](Bodies& b, double by) { b.A(i, j) += by; });
    }
    for (int r = 0; r < 9; ++r) {
      expect(g.v_hat[r], [r](Bodies& b, double by) { b.v_hat[r] += by; });
      for (int j = 0; j < 6; ++j) expect(g_J(r, j), [r, j](Bodies& b, double by) { b.J(r, j) += by; });
    }
    for (int k = 0; k < 3; ++k) {
      expect(g.mu[k], [k](Bodies& b, double by) { b.mu[k] += by; });
      for (int r = 3 * k; r < 3 * k + 3; ++r) {
        const double scale = bodies.R[r];  // relative: R is as small as the step
        EXPECT_NEAR(g.R[r] * scale, slope(bodies, given, [r](Bodies& b, double by) { b.R[r] *= 1 + by; }), 1e-6 * size);
      }
    }
    EXPECT_EQ(g.gamma, bodies.impulses(at.v)) << seed;
  }
  for (const int count : seen) EXPECT_GT(count, 3);
}

// Rounding errors of the gradient grow in proportion to R^-1.
TEST(DerivativeTest, HoldsForTinyRegularisation) {
  for (const double small : {1e-6, 1e-10}) {
    std::array<int, 3> seen{};
    for (unsigned seed = 0; seed < 12; ++seed) {
      Bodies bodies = random_bodies(9, 2, seed);
      if (seed % 2 == 0) bodies.mu *= 20;
      bodies.R.setConstant(small * bodies.delassus().diagonal().mean());
      const Point at = solution_point(bodies);
      for (int k = 0; k < 2; ++k) {
        ++seen[static_cast<std::size_t>(project(at.y.segment<3>(3 * k), bodies.law(k)).region)];
      }
      const Point given{VectorXd::LinSpaced(9, -1, 2), VectorXd::Zero(6), VectorXd::LinSpaced(6, 2, -1)};
      const Gradients g = gradients_of(bodies, at, given);
      const MatrixXd g_J = g.gamma * g.l.transpose() - g.v_hat * at.v.transpose();
      const auto expect = [&](double gradient, const auto& change) {
        EXPECT_NEAR(gradient, slope(bodies, given, change), (1e-6 + 2e-15 / small) * (g.l.norm() + g.v_hat.norm()))
            << seed << " " << small;
      };
      for (int i = 0; i < 9; ++i) expect(g.v_free[i], [i](Bodies& b, double by) { b.v_free[i] += by; });
      for (int r = 0; r < 6; ++r) {
        expect(g.v_hat[r], [r](Bodies& b, double by) { b.v_hat[r] += by; });
        expect(g_J(r, r), [r](Bodies& b, double by) { b.J(r, r) += by; });
        expect(g.R[r] * bodies.R[r], [r](Bodies& b, double by) { b.R[r] *= 1 + by; });
      }
      for (int k = 0; k < 2; ++k) expect(g.mu[k], [k](Bodies& b, double by) { b.mu[k] += by; });
    }
    for (const int count : seen) EXPECT_GT(count, 3) << small;
  }
}

TEST(DerivativeTest, HasNoFrictionWithoutIt) {
  Bodies bodies = random_bodies(6, 2, 2);
  bodies.mu.setZero();
  bodies.v_hat << 0, 0, 3, 0, 0, 3;  // both press
  const Point at = solution_point(bodies);
  const Gradients g = gradients_of(bodies, at, {VectorXd::Ones(6), VectorXd::Zero(6), VectorXd::Zero(6)});
  EXPECT_EQ(g.v_hat[0], 0);
  EXPECT_EQ(g.v_hat[1], 0);
  EXPECT_NE(g.v_hat[2], 0);
  // mu can only grow.
  const auto value = [&](double mu) {
    Bodies moved = bodies;
    moved.mu.setConstant(mu);
    return solution_point(moved).v.sum();
  };
  EXPECT_NEAR(g.mu.sum(), (value(1e-7) - value(0)) / 1e-7, 1e-4 * std::abs(g.mu.sum()));
  EXPECT_GT(std::abs(g.mu.sum()), 1e-3);
}

TEST(DerivativeTest, OfWhatIsNotSolvedIsZeroOrNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Bodies bodies = random_bodies(6, 2, 2);
  bodies.A(0, 0) = bodies.J(1, 1) = bodies.R[0] = bodies.mu[0] = nan;
  const VectorXd undefined = VectorXd::Constant(6, nan), zero = VectorXd::Zero(6), unit = VectorXd::Unit(6, 2);
  const Point at{undefined, undefined, undefined};
  const Gradients none = gradients_of(bodies, at, {zero, zero, zero});
  const Gradients some = gradients_of(bodies, at, {zero, zero, unit});
  const auto lists = [](const Gradients& g) { return std::array{g.l, g.v_free, g.v_hat, g.R, g.mu, g.gamma}; };
  for (const VectorXd& x : lists(none)) EXPECT_TRUE(x.isZero(0));
  for (const VectorXd& x : lists(some)) EXPECT_TRUE(x.array().isNaN().all());
}

TEST(DerivativeTest, OfAnIndefiniteMatrixIsZeroOrNaN) {
  Bodies bodies = random_bodies(6, 2, 2);
  bodies.A = -1e6 * bodies.A;
  const VectorXd zero = VectorXd::Zero(6), unit = VectorXd::Unit(6, 2);
  const Point at{unit, unit, unit};
  EXPECT_TRUE(gradients_of(bodies, at, {zero, zero, zero}).l.isZero(0));
  EXPECT_TRUE(gradients_of(bodies, at, {zero, zero, unit}).l.array().isNaN().all());
}

}  // namespace
}  // namespace lcp::contact
