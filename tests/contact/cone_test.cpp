#include "contact/cone.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <array>
#include <cmath>
#include <random>

namespace lcp::contact {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

// A random contact and a random point, of random scales.
struct Case {
  Law law;
  Vector3d y;
};

Case random_case(std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share(0, 1);
  const Law law{1.5 * share(random), std::pow(10, normal(random)), std::pow(10, normal(random))};
  return {law, Vector3d(normal(random), normal(random), normal(random)) * std::pow(10, normal(random))};
}

// Whether g is within the cone, up to rounding; and whether s is within its dual, mu |s_t| <= s_n.
bool within(const Vector3d& g, double mu) { return g.head<2>().norm() <= mu * g.z() * (1 + 1e-13) && g.z() >= 0; }

// The projection is the point of a convex program whose conditions of optimality are necessary and sufficient:
// g in C, R (g - y) in the dual cone, g' R (g - y) = 0.
TEST(ConeTest, ProjectsToTheNearestPoint) {
  std::mt19937 random(1);
  std::array<int, 3> seen = {};
  for (int k = 0; k < 5000; ++k) {
    const auto [law, y] = random_case(random);
    const Projection at = project(y, law);
    ++seen[static_cast<std::size_t>(at.region)];
    const Vector3d weight(law.tangent, law.tangent, law.normal);
    const Vector3d force = weight.cwiseProduct(at.gamma - y);
    const double size = weight.cwiseProduct(y).norm();
    EXPECT_TRUE(within(at.gamma, law.mu)) << k;
    EXPECT_GE(force.z() - law.mu * force.head<2>().norm(), -1e-13 * (1 + law.mu) * size) << k;
    EXPECT_LE(std::abs(at.gamma.dot(force)), 1e-13 * (at.gamma.norm() + 1e-300) * size) << k;
  }
  for (const int count : seen) EXPECT_GT(count, 300);
}

// A point that slides, y = gamma + R^-1 s with s on the boundary of the polar cone, is much larger than gamma for a
// small R. This test takes s = slip (3, 4, -5 mu), which has no rounding errors.
TEST(ConeTest, KeepsTheDigitsOfSmallImpulses) {
  for (int k = 0; k < 1000; ++k) {
    const double R = std::exp2(-40 - k % 40), mu = std::exp2(k % 4 - 2), slip = 1001 + k;
    const Vector3d gamma(0.6 * mu, 0.8 * mu, 1), apart = Vector3d(3, 4, -5 * mu) * slip / R;
    const Vector3d y = gamma + apart, low = gamma - (y - apart);
    const Projection at = project(y, low, {mu, R, R});
    EXPECT_EQ(at.region, Region::kSlide) << k;
    EXPECT_LE((at.gamma - gamma).norm(), 1e-14 + 1e-27 / R) << k;
  }
}

TEST(ConeTest, HasTheDerivativeOfItsRegion) {
  std::mt19937 random(2);
  for (int k = 0; k < 3000; ++k) {
    const auto [law, y] = random_case(random);
    const Projection at = project(y, law);
    const Matrix3d K = projected_compliance(y, at, law);
    const double h = 1e-6 * y.norm();
    Matrix3d numeric;
    bool crosses = false;
    for (int i = 0; i < 3; ++i) {
      const Projection more = project(y + h * Vector3d::Unit(i), law), less = project(y - h * Vector3d::Unit(i), law);
      crosses = crosses || more.region != at.region || less.region != at.region;
      numeric.col(i) = (more.gamma - less.gamma) / (2 * h);
    }
    if (crosses) continue;
    numeric = (numeric * Vector3d(law.tangent, law.tangent, law.normal).cwiseInverse().asDiagonal()).eval();
    // P' is of norm 1 where R is taken for the metric; its change within h is of the size of h / |y_t|.
    const Vector3d root = Vector3d(law.tangent, law.tangent, law.normal).cwiseSqrt();
    const double curve = h / y.head<2>().norm();
    EXPECT_LE((root.asDiagonal() * (K - numeric) * root.asDiagonal()).norm(), 1e-7 + 10 * curve * curve) << k;
    EXPECT_EQ(K, K.transpose()) << k;
    EXPECT_GE(Eigen::SelfAdjointEigenSolver<Matrix3d>(K).eigenvalues().minCoeff(), -1e-12 * K.norm()) << k;
  }
}

// On both boundaries of the sliding region the impulse is continuous, and the boundary belongs to the other region.
TEST(ConeTest, IsContinuousAcrossItsEdges) {
  const Law law{0.6, 0.3, 0.8};
  const double back = law.mu * law.tangent / law.normal;
  struct Edge {
    Vector3d y;
    Region at;
  };
  for (const Edge& edge : {Edge{{0.6, 0, 1}, Region::kStick}, Edge{{1, 0, -back}, Region::kSeparated}}) {
    const Projection on = project(edge.y, law);
    EXPECT_EQ(on.region, edge.at);
    for (const double h : {1e-3, 1e-6, 1e-9}) {
      const double outward = edge.at == Region::kStick ? -h : h;  // into sliding
      const Projection beside = project(edge.y + Vector3d(0, 0, outward), law);
      EXPECT_EQ(beside.region, Region::kSlide);
      EXPECT_LE((beside.gamma - on.gamma).norm(), 2 * h);
    }
  }
}

TEST(ConeTest, HasNoTangentsWithoutFriction) {
  const Law law{0, 0.5, 0.25};
  for (const Vector3d& y : {Vector3d(0, 0, 2), Vector3d(3, -1, 2)}) {
    const Projection at = project(y, law);
    EXPECT_EQ(at.gamma, Vector3d(0, 0, 2));
    EXPECT_EQ(projected_compliance(y, at, law), Matrix3d(Vector3d(0, 0, 4).asDiagonal()));
  }
  EXPECT_EQ(project({0, 0, 0}, law).region, Region::kSeparated);
  EXPECT_EQ(project({0, 0, -1}, law).gamma, Vector3d::Zero());
}

}  // namespace
}  // namespace lcp::contact
