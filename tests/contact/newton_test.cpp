#include "contact/newton.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace lcp::contact {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A problem that owns its numbers, with the regularisation of systems: R_t = 1e-3 w, R_n = w / (4 pi^2) for the size w
// of a contact's Delassus block.
struct Bodies {
  int n, contacts;
  Matrix A, J;
  VectorXd v_free, v_hat, R, mu;

  Problem problem() const { return {A.data(), v_free.data(), J.data(), v_hat.data(), R.data(), mu.data()}; }
  MatrixXd delassus() const { return J * A.inverse() * J.transpose(); }

  VectorXd impulses(const VectorXd& v) const {
    VectorXd gamma(3 * contacts);
    for (int k = 0; k < contacts; ++k) gamma.segment<3>(3 * k) = at(v, k).gamma;
    return gamma;
  }
  Law law(int k) const { return {mu[k], R[3 * k], R[3 * k + 2]}; }
  Vector3d y(const VectorXd& v, int k) const { return (v_hat - J * v).cwiseQuotient(R).segment<3>(3 * k); }
  Projection at(const VectorXd& v, int k) const { return project(y(v, k), law(k)); }

  double value(const VectorXd& v) const {
    const VectorXd gamma = impulses(v), off = v - v_free;
    return (off.dot(A * off) + gamma.dot(R.cwiseProduct(gamma))) / 2;
  }
  VectorXd gradient(const VectorXd& v) const { return A * (v - v_free) - J.transpose() * impulses(v); }
  MatrixXd hessian(const VectorXd& v) const {
    MatrixXd H = A;
    for (int k = 0; k < contacts; ++k) {
      const auto rows = J.middleRows<3>(3 * k);
      H += rows.transpose() * projected_compliance(y(v, k), at(v, k), law(k)) * rows;
    }
    return H;
  }
};

Bodies random_bodies(int n, int contacts, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 1);
  const auto filled = [&](int rows, int columns) {
    Matrix m(rows, columns);
    for (double& x : m.reshaped()) x = normal(random);
    return m;
  };
  const Matrix B = filled(n, n);
  Bodies bodies{n,
                contacts,
                B * B.transpose() / n + Matrix::Identity(n, n),
                filled(3 * contacts, n),
                filled(n, 1),
                VectorXd::Zero(3 * contacts),
                VectorXd(3 * contacts),
                VectorXd(contacts)};
  const MatrixXd W = bodies.delassus();
  for (int k = 0; k < contacts; ++k) {
    const double w = W.block<3, 3>(3 * k, 3 * k).norm() / 3;
    bodies.R.segment<3>(3 * k) << 1e-3 * w, 1e-3 * w, w / (4 * std::numbers::pi * std::numbers::pi);
    bodies.mu[k] = 0.2 + 0.8 * share(random);
    bodies.v_hat[3 * k + 2] = 0.1 * normal(random);
  }
  return bodies;
}

struct Solved {
  Outcome outcome;
  VectorXd v, gamma;
};

Solved solve(const Bodies& bodies, const VectorXd& start, const Limits& limits = {1e-10, 200}) {
  Newton newton(bodies.n, bodies.contacts);
  Solved solved{{}, start, VectorXd::Constant(3 * bodies.contacts, kNaN)};
  solved.outcome = newton.solve(bodies.problem(), limits, solved.v.data(), solved.gamma.data());
  return solved;
}
Solved solve(const Bodies& bodies) { return solve(bodies, bodies.v_free); }

struct Size {
  int n, contacts;
};
constexpr Size kSizes[] = {{6, 2}, {12, 6}, {30, 12}, {60, 20}};

TEST(NewtonTest, HasTheGradientAndTheHessianOfItsObjective) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Bodies bodies = random_bodies(6, 3, seed);
    const VectorXd v = bodies.v_free + VectorXd::Constant(6, 0.1);
    const double h = 1e-6;
    const VectorXd gradient = bodies.gradient(v);
    const MatrixXd H = bodies.hessian(v);
    for (int i = 0; i < 6; ++i) {
      const VectorXd more = v + h * VectorXd::Unit(6, i), less = v - h * VectorXd::Unit(6, i);
      EXPECT_NEAR((bodies.value(more) - bodies.value(less)) / (2 * h), gradient[i], 1e-6 * gradient.norm());
      EXPECT_LE(((bodies.gradient(more) - bodies.gradient(less)) / (2 * h) - H.col(i)).norm(), 1e-6 * H.norm());
    }
    EXPECT_GT(Eigen::SelfAdjointEigenSolver<MatrixXd>(H).eigenvalues().minCoeff(), 0.5);
  }
}

// The dual: min over gamma in C of gamma' (W + R) gamma / 2 + r' gamma, r = J v_free - v_hat. A point of it whose value
// is minus the primal one proves that both are the least.
TEST(NewtonTest, HasNoDualityGap) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Bodies bodies = random_bodies(seed % 2 ? 6 : 9, 1 + static_cast<int>(seed % 4), seed);
    const Solved solved = solve(bodies, bodies.v_free, {1e-14, 200});
    const VectorXd& gamma = solved.gamma;
    ASSERT_LE(solved.outcome.residual, 1e-13);
    const VectorXd r = bodies.J * bodies.v_free - bodies.v_hat;
    const double dual = gamma.dot(bodies.delassus() * gamma + bodies.R.cwiseProduct(gamma)) / 2 + r.dot(gamma);
    EXPECT_NEAR(bodies.value(solved.v), -dual, 1e-12 * std::abs(dual));
    EXPECT_LE((bodies.v_free + bodies.A.ldlt().solve(bodies.J.transpose() * gamma) - solved.v).norm(), 1e-9);
    const VectorXd gap = bodies.J * solved.v - bodies.v_hat + bodies.R.cwiseProduct(gamma);  // in the dual cone
    for (int k = 0; k < bodies.contacts; ++k) {
      const Vector3d g = gap.segment<3>(3 * k), impulse = gamma.segment<3>(3 * k);
      EXPECT_LE(impulse.head<2>().norm(), bodies.mu[k] * impulse.z() * (1 + 1e-14));
      EXPECT_GE(g.z() - bodies.mu[k] * g.head<2>().norm(), -1e-12);
      EXPECT_NEAR(g.dot(impulse), 0, 1e-12);
    }
  }
}

TEST(NewtonTest, TakesFewIterations) {
  for (const auto [n, contacts] : kSizes) {
    int sum = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Bodies bodies = random_bodies(n, contacts, seed);
      const Solved solved = solve(bodies);
      EXPECT_EQ(solved.outcome.end, End::kSolved);
      EXPECT_LE(solved.outcome.iterations, 25);
      sum += solved.outcome.iterations;
      const VectorXd g = bodies.gradient(solved.v);
      EXPECT_LE(g.norm(), 1e-8 * (bodies.A * solved.v).norm());
      EXPECT_LE((solved.gamma - bodies.impulses(solved.v)).norm(), 1e-10 * (1 + solved.gamma.norm()));
      // From a solution nearby.
      Bodies next = bodies;
      next.v_free *= 1.01;
      EXPECT_LE(solve(next, solved.v).outcome.iterations, solved.outcome.iterations + 2);
    }
    EXPECT_LE(sum, 15 * 20) << n;
  }
}

TEST(NewtonTest, LeavesWhatDoesNotTouch) {
  Bodies bodies = random_bodies(6, 3, 1);
  bodies.v_hat.setConstant(0);
  for (int k = 0; k < 3; ++k) bodies.v_hat[3 * k + 2] = -100;  // far away
  const Solved apart = solve(bodies);
  EXPECT_EQ(apart.outcome.iterations, 0);
  EXPECT_EQ(apart.v, bodies.v_free);
  EXPECT_EQ(apart.gamma, VectorXd::Zero(9));
  const Bodies none = random_bodies(4, 0, 1);
  EXPECT_EQ(solve(none).v, none.v_free);
  EXPECT_EQ(solve(none, VectorXd::Constant(4, 7)).outcome.end, End::kSolved);
}

TEST(NewtonTest, SolvesContactsThatSayTheSame) {
  Bodies bodies = random_bodies(6, 2, 3);
  bodies.J.bottomRows<3>() = bodies.J.topRows<3>();
  bodies.v_hat.tail<3>() = bodies.v_hat.head<3>();
  bodies.mu[1] = bodies.mu[0];
  for (const double R : {1e-3, 1e-6}) {
    bodies.R.setConstant(R);
    const Solved solved = solve(bodies, bodies.v_free, {1e-8, 1000});  // impulses have the rounding of v over R
    EXPECT_EQ(solved.outcome.end, End::kSolved) << R;
    EXPECT_LE((solved.gamma.head<3>() - solved.gamma.tail<3>()).norm(), 1e-8 * (1 + solved.gamma.norm()));
  }
}

TEST(NewtonTest, NamesItsEnd) {
  const Bodies good = random_bodies(6, 2, 5);
  EXPECT_EQ(solve(good, good.v_free, {1e-10, 1}).outcome.end, End::kLimit);
  const auto end_with = [&](const auto& change) {
    Bodies bad = good;
    change(bad);
    return solve(bad).outcome.end;
  };
  EXPECT_EQ(end_with([](Bodies& b) { b.A(0, 0) = -1; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) {
              b.A = Matrix::Constant(6, 6, 1);
              b.J.setZero();
              b.v_hat[2] = 1;
            }),
            End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.A(1, 0) += 1; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.J(2, 1) = kNaN; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.R[3] = 0; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.R[1] *= 2; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.mu[1] = -0.1; }), End::kBad);
  EXPECT_EQ(end_with([](Bodies& b) { b.v_hat[0] = INFINITY; }), End::kBad);
}

}  // namespace
}  // namespace lcp::contact
