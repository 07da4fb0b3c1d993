#include "friction/gauss_seidel.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <random>
#include <vector>

namespace lcp::friction {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Eigen::VectorXd;

TEST(GaussSeidelTest, ConvergesWhereContactsInfluenceEachOtherLittle) {
  constexpr int kContacts = 4, kSize = 3 * kContacts;
  std::mt19937_64 numbers(1);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 100; ++k) {
    const Matrix B = Matrix::NullaryExpr(kSize, kSize, [&] { return 0.1 * normal(numbers); });
    const Matrix W = Matrix::Identity(kSize, kSize) + B * B.transpose();
    const VectorXd q = VectorXd::NullaryExpr(kSize, [&] { return normal(numbers); });
    const std::vector<double> mu = {0, 0.2, 0.5, 1}, weight(kContacts, 1);
    const Impulses problem = {kContacts, W.data(), q.data(), mu.data(), mu.data(), weight.data()};
    VectorXd h = VectorXd::Zero(kSize), u(kSize);
    GaussSeidel(kContacts).sweep(problem, 60, h.data());
    problem.velocities(h.data(), u.data());
    EXPECT_LT(problem.residual(h.data(), u.data()), 1e-10);
  }
}

TEST(GaussSeidelTest, EverySecondSweepGoesBackwards) {
  constexpr int kContacts = 2, kSize = 3 * kContacts;
  Matrix W = Matrix::Identity(kSize, kSize);
  W(2, 5) = W(5, 2) = 0.5;
  VectorXd q = VectorXd::Zero(kSize);
  q[2] = q[5] = -1;
  const std::vector<double> mu(kContacts, 0.3), weight(kContacts, 1);
  const Impulses problem = {kContacts, W.data(), q.data(), mu.data(), mu.data(), weight.data()};
  VectorXd once = VectorXd::Zero(kSize), twice = once;
  GaussSeidel(kContacts).sweep(problem, 1, once.data());
  EXPECT_EQ(once[2], 1);  // the first contact is solved alone
  EXPECT_EQ(once[5], 0.5);
  GaussSeidel(kContacts).sweep(problem, 2, twice.data());
  EXPECT_EQ(twice[5], 0.5);  // the last one first
  EXPECT_EQ(twice[2], 0.75);
}

}  // namespace
}  // namespace lcp::friction
