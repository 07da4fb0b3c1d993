// Errors of a draft on compliant contact, each beside the form that this library builds.
//
//   [Draft] An unpublished draft of [CPH], sections "A Primal Formulation of Compliant Contact" and "An Unconstrained
//           Convex Formulation" (docs/compliant_contact.md).
//   [CPH]   Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <random>

#include "contact/cone.h"
#include "lcp/contact_dual.h"

namespace lcp::contact::compliant_errata_test {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr int kVelocities = 4;
constexpr int kProblems = 2000;

using Mass = Eigen::Matrix<double, kVelocities, kVelocities, Eigen::RowMajor>;
using Jacobian = Eigen::Matrix<double, 3, kVelocities, Eigen::RowMajor>;
using Velocity = Eigen::Matrix<double, kVelocities, 1>;

// A problem with one contact, whose solution v and impulse gamma = P(y) are chosen first.
struct Problem {
  Mass A;
  Jacobian J;
  Velocity v, v_free;
  Vector3d v_hat, y;
  Law law;
  Projection at;

  Matrix3d R() const { return law.R().asDiagonal(); }
  Vector3d y_of(const Velocity& velocity) const { return (v_hat - J * velocity).cwiseQuotient(law.R()); }
  Vector3d gamma_of(const Velocity& velocity) const { return project(y_of(velocity), law).gamma; }
  // l_R(v) = |P(y(v))|_R^2 / 2.
  double regularizer(const Velocity& velocity) const {
    const Vector3d gamma = gamma_of(velocity);
    return gamma.dot(R() * gamma) / 2;
  }
};

Problem random_problem(std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 1);
  const auto any = [&] { return normal(random); };
  Problem problem;
  const Mass B = Mass::NullaryExpr(any);
  problem.A = B * B.transpose() / kVelocities + Mass::Identity();
  problem.J = Jacobian::NullaryExpr(any);
  problem.law = {0.3 + share(random), 0.1 + 0.2 * share(random), 0.1 + 0.2 * share(random)};
  problem.v = Velocity::NullaryExpr(any);
  problem.y = Vector3d::NullaryExpr(any);
  problem.at = project(problem.y, problem.law);
  problem.v_hat = problem.J * problem.v + problem.R() * problem.y;
  problem.v_free = problem.v - problem.A.llt().solve(problem.J.transpose() * problem.at.gamma);
  return problem;
}

// The differences of f, over 2 h, in each entry of x.
template <typename F, typename X>
auto differences(const F& f, const X& x, double h) {
  Eigen::MatrixXd columns(f(x).size(), x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const X step = h * X::Unit(i);
    columns.col(i) = (f(X(x + step)) - f(X(x - step))) / (2 * h);
  }
  return columns;
}

// Whether all points within `distance` of y are in the same region.
bool inside(const Problem& problem, double distance) {
  const auto& [mu, tangent, normal] = problem.law;
  const double slip = slip_of(problem.y), steep = mu * tangent / normal;
  return std::abs(slip - mu * problem.y.z()) > (1 + mu) * distance &&
         std::abs(problem.y.z() + steep * slip) > (1 + steep) * distance && slip > 100 * distance;
}

class CompliantErrataTest : public ::testing::Test {
 protected:
  std::mt19937 random{7};
};

TEST_F(CompliantErrataTest, TheDelassusMatrixHasTheInverseOfTheMass) {
  // Printed: W = J A J'. gamma minimises the dual if and only if it is P(gamma - R^-1 ((W + R) gamma + r)).
  const auto tensor = [](const auto& x) {
    return torch::from_blob(const_cast<double*>(x.data()), {x.rows(), x.cols()}, torch::kDouble).clone();
  };
  int pressed = 0, wrong = 0;
  for (int k = 0; k < kProblems; ++k) {
    const Problem one = random_problem(random);
    const Vector3d R = one.law.R(), r = one.J * one.v_free - one.v_hat;
    const auto residual = [&](const Matrix3d& W) {
      const Vector3d slope = W * one.at.gamma + R.cwiseProduct(one.at.gamma) + r;
      return (project(one.at.gamma - slope.cwiseQuotient(R), one.law).gamma - one.at.gamma).norm();
    };
    const ContactDual dual = contact_dual(tensor(one.A), tensor(one.v_free).view(-1), tensor(one.J),
                                          tensor(one.v_hat).view(-1), tensor(R).view(-1));
    const torch::Tensor built = dual.H.contiguous();
    const Matrix3d W = Eigen::Map<const Matrix3d>(built.const_data_ptr<double>()) - one.R();
    EXPECT_LE(residual(W), 1e-12) << k;
    if (one.at.region == Region::kSeparated) continue;
    ++pressed;
    wrong += residual(one.J * one.A * one.J.transpose()) > 0.01 * one.at.gamma.norm();
  }
  ASSERT_GT(pressed, kProblems / 3);
  EXPECT_GT(wrong, 0.99 * pressed);
}

TEST_F(CompliantErrataTest, ContactAddsToTheHessian) {
  // Printed: H = A - J' P'(y) R^-1 J, which is not even positive definite.
  constexpr double kStep = 1e-6;
  int tried = 0, indefinite = 0;
  for (int k = 0; k < kProblems; ++k) {
    const Problem one = random_problem(random);
    if (one.at.region == Region::kSeparated || !inside(one, 1e3 * kStep)) continue;
    ++tried;
    const auto gradient = [&](const Velocity& v) {
      return Velocity(one.A * (v - one.v_free) - one.J.transpose() * one.gamma_of(v));
    };
    const Mass H = differences(gradient, one.v, kStep);
    const Mass contact = one.J.transpose() * projected_compliance(one.y, one.at, one.law) * one.J;
    EXPECT_LE((H - (one.A + contact)).norm(), 1e-6 * H.norm()) << k;
    EXPECT_GT((H - (one.A - contact)).norm(), 0.1 * H.norm()) << k;
    indefinite += Eigen::SelfAdjointEigenSolver<Mass>(one.A - contact).eigenvalues().minCoeff() < 0;
  }
  ASSERT_GT(tried, kProblems / 3);
  EXPECT_GT(indefinite, 0.9 * tried);
}

TEST_F(CompliantErrataTest, ImpulsesFallAsTheContactVelocityGrows) {
  // Printed: the derivative of gamma in J v is positive semidefinite, and J' (dgamma / d(J v)) J is the Hessian of l_R.
  constexpr double kStep = 1e-4;
  int tried = 0;
  for (int k = 0; k < kProblems; ++k) {
    const Problem one = random_problem(random);
    if (one.at.region == Region::kSeparated || !inside(one, 100 * kStep)) continue;
    ++tried;
    const auto gamma = [&](const Vector3d& contact_velocity) {
      return project((one.v_hat - contact_velocity).cwiseQuotient(one.law.R()), one.law).gamma;
    };
    const Matrix3d slope = differences(gamma, Vector3d(one.J * one.v), kStep);
    EXPECT_LE((slope + projected_compliance(one.y, one.at, one.law)).norm(), 1e-4 * slope.norm()) << k;
    const auto values = Eigen::SelfAdjointEigenSolver<Matrix3d>((slope + slope.transpose()) / 2).eigenvalues();
    EXPECT_LE(values.maxCoeff(), 1e-4 * slope.norm()) << k;
    EXPECT_LT(values.minCoeff(), 0) << k;
    const Mass printed = one.J.transpose() * slope * one.J;
    const auto value = [&](const Velocity& v) { return Eigen::Matrix<double, 1, 1>(one.regularizer(v)); };
    const auto gradient = [&](const Velocity& v) { return Velocity(differences(value, v, kStep).transpose()); };
    const Mass hessian = differences(gradient, one.v, 10 * kStep);
    EXPECT_LE((hessian + printed).norm(), 1e-3 * printed.norm()) << k;
  }
  ASSERT_GT(tried, kProblems / 10);
}

TEST_F(CompliantErrataTest, TheProjectionIsContinuousAndTheCostSmooth) {
  // Printed: P and the cost are piecewise continuous, so that the slope across an edge needs a condition of its own. P
  // is Lipschitz with the constant 1 in the norm of R, and the slopes on both sides of an edge are equal; only the
  // curvatures differ.
  for (int k = 0; k < kProblems; ++k) {
    const Problem one = random_problem(random), other = random_problem(random);
    const Vector3d root = one.law.R().cwiseSqrt();
    const double moved = root.cwiseProduct(one.at.gamma - project(other.y, one.law).gamma).norm();
    EXPECT_LE(moved, (1 + 1e-12) * root.cwiseProduct(one.y - other.y).norm()) << k;
  }
  const Law law{0.6, 0.3, 0.8};
  const auto regularizer = [&](const Vector3d& y) {
    const Vector3d gamma = project(y, law).gamma;
    return gamma.dot(law.R().cwiseProduct(gamma)) / 2;
  };
  const double back = law.mu * law.tangent / law.normal;
  for (const Vector3d& edge : {Vector3d(0.6, 0, 1), Vector3d(1, 0, -back)}) {
    const auto curvature = [&](double h) {
      const Vector3d y = edge + Vector3d(0, 0, h);
      return projected_compliance(y, project(y, law), law)(2, 2);
    };
    for (const double h : {1e-3, 1e-4, 1e-5}) {
      const Vector3d step(0, 0, h);
      const double after = (regularizer(edge + step) - regularizer(edge)) / h;
      const double before = (regularizer(edge) - regularizer(edge - step)) / h;
      EXPECT_NEAR(after, before, 2 * h);
      EXPECT_GT(std::abs(curvature(h) - curvature(-h)), 0.1);
    }
  }
}

}  // namespace lcp::contact::compliant_errata_test
