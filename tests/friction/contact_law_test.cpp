// The laws of one contact that the CPU and GPUs share.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "friction/alart_curnier.h"
#include "friction/linear_law.h"
#include "friction/natural_map.h"

namespace lcp::friction {
namespace {

using Eigen::Vector3d;

constexpr double kMu = 0.4;

struct Case {
  const char* name;
  Vector3d h, u;
  State state;
  int unknowns;
};

// Solutions of Coulomb's law in each state: with mu = .4 a contact that slides along (3, 4) has its friction against
// it.
const Case kSolutions[] = {{"apart", {0, 0, 0}, {0.3, 0.1, 0.2}, State::kApart, 0},
                           {"stick", {0.1, -0.2, 1}, {0, 0, 0}, State::kStick, 3},
                           {"slide", {-0.48, -0.64, 2}, {0.3, 0.4, 0}, State::kSlide, 2}};

TEST(NaturalMapTest, VanishesAtSolutionsAlone) {
  for (const Case& at : kSolutions) {
    EXPECT_LT(natural_error(at.h.data(), at.u.data(), kMu), 1e-15) << at.name;
    const Vector3d pushed = at.h + Vector3d(0, 0, -0.01), moved = at.u + Vector3d(0, 0, -0.01);
    // A contact that sticks may push less, and one that is apart open more slowly.
    if (at.state != State::kStick) {
      EXPECT_GT(natural_error(pushed.data(), at.u.data(), kMu), 1e-3) << at.name;
    }
    if (at.state != State::kApart) {
      EXPECT_GT(natural_error(at.h.data(), moved.data(), kMu), 1e-3) << at.name;
    }
  }
}

TEST(NaturalMapTest, IsNanWhereANumberIs) {
  for (int i = 0; i < 6; ++i) {
    Vector3d h(0.1, 0.2, 1), u(0.1, 0, 0);
    (i < 3 ? h : u)[i % 3] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(natural_error(h.data(), u.data(), kMu))) << i;
  }
}

TEST(AlartCurnierTest, VanishesAtSolutionsAndHasTheirStates) {
  for (const Case& at : kSolutions) {
    for (const double scale : {1.0, 0.1}) {
      AlartCurnier equations = {};
      EXPECT_LT(linearize(at.h.data(), at.u.data(), kMu, scale, equations), 1e-30) << at.name;
      EXPECT_EQ(equations.unknowns, at.unknowns) << at.name;
    }
  }
}

TEST(AlartCurnierTest, HasTheImpulseOfItsUnknowns) {
  const Case& slide = kSolutions[2];
  AlartCurnier equations = {};
  linearize(slide.h.data(), slide.u.data(), kMu, 1, equations);
  const double y[2] = {slide.h.z(), 0};  // along t, nothing across
  Vector3d h;
  impulse_of(equations, kMu, y, h.data());
  EXPECT_LT((h - slide.h).norm(), 1e-15);
}

TEST(LinearLawTest, FindsTheStates) {
  for (const Case& at : kSolutions) EXPECT_EQ(state_of(at.h.data(), at.u.data(), kMu, 0), at.state) << at.name;
}

TEST(LinearLawTest, TakesRoundOffForNothing) {
  const Vector3d h(0, 0, 0);
  for (const double round_off : {-1e-16, 0.0, 1e-16}) {
    const Vector3d u(0.3, 0.1, round_off);
    EXPECT_EQ(state_of(h.data(), u.data(), kMu, 1e-15), State::kApart) << round_off;
  }
  const Vector3d u(0.3, 0.1, -1e-14);
  EXPECT_EQ(state_of(h.data(), u.data(), kMu, 1e-15), State::kSlide);
}

TEST(LinearLawTest, IsTheDerivativeOfTheLawOfASlide) {
  const Case& at = kSolutions[2];
  const LinearLaw law(false, at.h.data(), at.u.data(), kMu);
  const auto friction = [](const Vector3d& h, const Vector3d& u, double mu) {  // h_t + mu h_n t
    return Eigen::Vector2d(h.head<2>() + mu * h.z() * u.head<2>().normalized());
  };
  constexpr double kStep = 1e-6;
  for (int j = 0; j < 3; ++j) {
    const Vector3d d = kStep * Vector3d::Unit(j);
    const Eigen::Vector2d by_u = (friction(at.h, at.u + d, kMu) - friction(at.h, at.u - d, kMu)) / (2 * kStep);
    const Eigen::Vector2d by_h = (friction(at.h + d, at.u, kMu) - friction(at.h - d, at.u, kMu)) / (2 * kStep);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(law.C[i][j], by_u[i], 1e-8);
      EXPECT_NEAR(law.D[i][j], by_h[i], 1e-8);
    }
  }
  const Eigen::Vector2d by_mu = (friction(at.h, at.u, kMu + kStep) - friction(at.h, at.u, kMu - kStep)) / (2 * kStep);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(law.E[i], -by_mu[i], 1e-8);
  EXPECT_EQ(law.C[2][2], 1);
}

}  // namespace
}  // namespace lcp::friction
