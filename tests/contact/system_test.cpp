#include "contact/system.h"

#include <gtest/gtest.h>

#include "contact/dense_system.h"
#include "contact/sparse_system.h"
#include "support/bodies.h"

namespace lcp::contact {
namespace {

using testing::Bodies;

std::vector<Eigen::Matrix3d> some_compliances(int contacts) {
  std::vector<Eigen::Matrix3d> K(static_cast<std::size_t>(contacts));
  for (std::size_t k = 0; k < K.size(); ++k) {
    const Eigen::Matrix3d B = Eigen::Matrix3d::Random();
    K[k] = k % 3 == 0 ? Eigen::Matrix3d::Zero() : Eigen::Matrix3d(B * B.transpose());
  }
  return K;
}

template <class T>
class SystemTest : public ::testing::Test {};
using Systems = ::testing::Types<DenseSystem, SparseSystem>;
TYPED_TEST_SUITE(SystemTest, Systems);

TYPED_TEST(SystemTest, MultipliesAndSolves) {
  for (const Bodies& bodies :
       {testing::chain(12, 1), testing::random_bodies(9, 4, 1), testing::random_bodies(3, 0, 1)}) {
    TypeParam system(bodies.n, bodies.contacts);
    system.set(bodies.A.data(), bodies.J.data());
    const Vector v = Vector::Random(bodies.n), gamma = Vector::Random(3 * bodies.contacts);
    Vector x(bodies.n), y(3 * bodies.contacts);
    const auto expect = [](const Vector& result, const Vector& expected) {
      EXPECT_LE((result - expected).norm(), 1e-13 * (1 + expected.norm()));
    };
    system.multiply(v, x);
    expect(x, bodies.A * v);
    system.to_contacts(v, y);
    expect(y, bodies.J * v);
    system.to_bodies(gamma, x);
    expect(x, bodies.J.transpose() * gamma);
    system.multiply_abs(v.cwiseAbs(), x);
    expect(x, bodies.A.cwiseAbs() * v.cwiseAbs());
    system.to_contacts_abs(v.cwiseAbs(), y);
    expect(y, bodies.J.cwiseAbs() * v.cwiseAbs());
    system.to_bodies_abs(gamma.cwiseAbs(), x);
    expect(x, bodies.J.cwiseAbs().transpose() * gamma.cwiseAbs());
    system.diagonal(x);
    expect(x, bodies.A.diagonal());

    const auto K = some_compliances(bodies.contacts);
    Eigen::MatrixXd H = bodies.A;
    for (int k = 0; k < bodies.contacts; ++k) {
      const auto rows = bodies.J.middleRows<3>(3 * k);
      H += rows.transpose() * K[static_cast<std::size_t>(k)] * rows;
    }
    ASSERT_TRUE(system.factor(K));
    x = H * v;
    system.solve(x);
    EXPECT_LE((x - v).norm(), 1e-10 * v.norm());
    testing::Matrix W(3 * bodies.contacts, 3 * bodies.contacts);
    system.compliance(W.data());
    const Eigen::MatrixXd expected = bodies.J * H.inverse() * bodies.J.transpose();
    EXPECT_LE((W - expected).norm(), 1e-10 * expected.norm());
    EXPECT_EQ(W, W.transpose());
    system.set(bodies.A.data(), bodies.J.data());  // again
    ASSERT_TRUE(system.factor(K));
    x = H * v;
    system.solve(x);
    EXPECT_LE((x - v).norm(), 1e-10 * v.norm());
  }
}

TYPED_TEST(SystemTest, UsesTheSymmetricPartAndDetectsIndefiniteMatrices) {
  Bodies bodies = testing::random_bodies(6, 0, 2);
  TypeParam system(6, 0);
  const Vector v = Vector::Random(6);
  Vector x(6);
  testing::Matrix uneven = bodies.A;
  uneven(0, 3) += 0.25;
  uneven(3, 0) -= 0.25;
  system.set(uneven.data(), bodies.J.data());
  system.multiply(v, x);
  EXPECT_LE((x - bodies.A * v).norm(), 1e-14 * x.norm());
  EXPECT_TRUE(system.factor({}));
  bodies.A(2, 2) = -1;
  system.set(bodies.A.data(), bodies.J.data());
  EXPECT_FALSE(system.factor({}));
}

TEST(SparsePaysTest, WhereMostNumbersAreZero) {
  const auto pays = [](const Bodies& bodies, Factors factors = Factors::kManyTimes) {
    return sparse_pays(bodies.A.data(), bodies.J.data(), bodies.n, bodies.contacts, factors);
  };
  EXPECT_TRUE(pays(testing::chain(30, 1)));
  EXPECT_FALSE(pays(testing::chain(3, 1)));
  EXPECT_FALSE(pays(testing::random_bodies(60, 10, 1)));
  Bodies tied = testing::chain(30, 1);
  tied.J.row(5).setConstant(1);  // one contact of all bodies
  EXPECT_FALSE(pays(tied));
  EXPECT_FALSE(pays(testing::chain(30, 1), Factors::kOnce));
  EXPECT_TRUE(pays(testing::chain(140, 1), Factors::kOnce));
}

}  // namespace
}  // namespace lcp::contact
