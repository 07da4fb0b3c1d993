// The laws of one contact that the CPU and GPUs share.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <limits>
#include <random>

#include "friction/alart_curnier.h"
#include "friction/law_error.h"
#include "friction/linear_law.h"

namespace lcp::friction {
namespace {

using Eigen::Vector3d;

constexpr double kMu = 0.4, kInfinity = std::numeric_limits<double>::infinity();

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

TEST(LawErrorTest, VanishesAtSolutionsAlone) {
  for (const Case& at : kSolutions) {
    EXPECT_LT(law_error(at.h.data(), at.u.data(), kMu), 1e-15) << at.name;
    const Vector3d pushed = at.h + Vector3d(0, 0, -0.01), moved = at.u + Vector3d(0, 0, -0.01);
    // A contact that sticks may push less, and one that is apart open more slowly.
    if (at.state != State::kStick) {
      EXPECT_GT(law_error(pushed.data(), at.u.data(), kMu), 1e-3) << at.name;
    }
    if (at.state != State::kApart) {
      EXPECT_GT(law_error(at.h.data(), moved.data(), kMu), 1e-3) << at.name;
    }
  }
}

TEST(LawErrorTest, IsThePenetrationWhateverTheFriction) {
  const Vector3d none(0, 0, 0), u(0.8, 0, -0.0981);
  for (const double mu : {0.0, 0.5, 1e4, 1e10, kInfinity})
    EXPECT_EQ(law_error(none.data(), u.data(), mu), 0.0981) << mu;
}

TEST(LawErrorTest, TakesAHalfSpaceForInfiniteFriction) {
  const Vector3d h(3, -4, 1e-3), still(0, 0, 0), slides(-0.3, 0.4, 0), turned(0.4, 0.3, 0), jammed(3, -4, 0);
  EXPECT_EQ(law_error(h.data(), still.data(), kInfinity), 0);
  EXPECT_NEAR(law_error(h.data(), slides.data(), kInfinity), 1e-3, 1e-15);  // it presses, so it may not slip
  EXPECT_LT(law_error(jammed.data(), slides.data(), kInfinity), 1e-15);     // the limit of large friction
  EXPECT_GT(law_error(jammed.data(), turned.data(), kInfinity), 0.4);
  const Vector3d pulled(0, 0, -0.2);
  EXPECT_EQ(law_error(pulled.data(), still.data(), kInfinity), 0.2);
}

// A pair of an impulse and a velocity that obeys the law, with numbers of any size.
Case random_solution(std::mt19937_64& numbers, double mu) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto size = [&] { return std::pow(10.0, 3 * uniform(numbers) - 1); };
  const double angle = M_PI * uniform(numbers), pressure = size();
  const Vector3d t(std::cos(angle), std::sin(angle), 0);
  switch (static_cast<int>(1.5 * (1 + uniform(numbers)))) {
    case 0:
      return {"apart", Vector3d::Zero(), size() * t + size() * Vector3d::UnitZ(), State::kApart, 0};
    case 1: {
      const double friction = std::isinf(mu) ? size() : mu * pressure * std::abs(uniform(numbers));
      return {"stick", friction * t + pressure * Vector3d::UnitZ(), Vector3d::Zero(), State::kStick, 3};
    }
    default: {
      const Vector3d h = mu > 1e6 ? Vector3d(-pressure * t + pressure / mu * Vector3d::UnitZ())
                                  : Vector3d(-mu * pressure * t + pressure * Vector3d::UnitZ());
      return {"slide", h, size() * t, State::kSlide, 2};
    }
  }
}

TEST(LawErrorTest, IsTheDistanceToTheLaw) {
  std::mt19937_64 numbers(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int k = 0; k < 20000; ++k) {
    constexpr double kFriction[] = {0, 0.1, 0.7, 3, 1e4, 1e8, 1e12, kInfinity};
    const double mu = kFriction[k % std::size(kFriction)], error = std::pow(10.0, -1 - 5 * std::abs(uniform(numbers)));
    Case at = random_solution(numbers, mu);
    EXPECT_LE(law_error(at.h.data(), at.u.data(), mu), 1e-14 * (at.h.norm() + at.u.norm())) << at.name << ' ' << mu;
    const auto changed = [&](const Vector3d& x) {
      return Vector3d(x + error / 2 * Vector3d(uniform(numbers), uniform(numbers), uniform(numbers)));
    };
    const Vector3d h = changed(at.h), u = changed(at.u);
    const double found = law_error(h.data(), u.data(), mu), round_off = 1e-14 * (h.norm() + u.norm());
    EXPECT_LE(found, 2 * error + round_off) << at.name << ' ' << mu;
    // What it bounds.
    EXPECT_LE(-u.z(), found + round_off);
    EXPECT_LE(-h.z(), found + round_off);
    EXPECT_LE(std::min(std::abs(h.z()), std::abs(u.z())), found + round_off);
    const double outside = mu > 1 ? h.head<2>().norm() / mu - h.z() : h.head<2>().norm() - mu * h.z();
    EXPECT_LE(outside, 2 * found + round_off);
    // Turning the tangents changes nothing.
    const Eigen::Matrix3d turn = Eigen::AngleAxisd(uniform(numbers), Vector3d::UnitZ()).toRotationMatrix();
    const Vector3d turned_h = turn * h, turned_u = turn * u;
    EXPECT_NEAR(law_error(turned_h.data(), turned_u.data(), mu), found, round_off);
  }
}

TEST(LawErrorTest, IsNanWhereANumberIs) {
  for (int i = 0; i < 6; ++i) {
    Vector3d h(0.1, 0.2, 1), u(0.1, 0, 0);
    (i < 3 ? h : u)[i % 3] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(law_error(h.data(), u.data(), kMu))) << i;
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

TEST(LinearLawTest, TellsAJammedContactFromOneThatIsApart) {
  const double mu = 1e12;
  const Vector3d h(-0.6, -0.8, 1 / mu), u(0.3, 0.4, 0), separate(0, 0, 1 / mu);
  EXPECT_EQ(state_of(h.data(), u.data(), mu, 1e-11), State::kSlide);
  EXPECT_EQ(state_of(separate.data(), u.data(), mu, 1e-11), State::kApart);
  // Along the slip the rows say that the normal impulse stays, and across it that the friction turns with the slip.
  const LinearLaw law(false, h.data(), u.data(), mu);
  const Eigen::Vector2d t(0.6, 0.8), s(-0.8, 0.6);
  Eigen::Matrix2d D, C;
  D << law.D[0][0], law.D[0][1], law.D[1][0], law.D[1][1];
  C << law.C[0][0], law.C[0][1], law.C[1][0], law.C[1][1];
  EXPECT_NEAR(s.dot(D * s), 1, 1e-15);
  EXPECT_NEAR(t.dot(D * t), 1 / mu, 1e-15);
  EXPECT_NEAR(t[0] * law.D[0][2] + t[1] * law.D[1][2], 1, 1e-15);
  EXPECT_NEAR(s.dot(C * s), 1 / 0.5, 1e-14);
  EXPECT_NEAR((C * t).norm(), 0, 1e-14);
}

}  // namespace
}  // namespace lcp::friction
