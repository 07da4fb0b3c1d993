#include "friction/newton.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

using testing::RigidContactMaker;
using testing::RigidContacts;
using testing::VectorXd;

TEST(FrictionNewtonTest, ReturnsTheResidualOfItsBestStep) {
  RigidContactMaker make(1);
  int solved = 0;
  for (int k = 0; k < 200; ++k) {
    const RigidContacts bodies = make.one_body();
    ImpulseProblem problem(bodies.n(), bodies.contacts());
    ASSERT_TRUE(problem.set(bodies.problem()));
    const Impulses& impulses = problem.impulses();
    Newton newton(impulses.contacts);
    VectorXd h = VectorXd::Zero(impulses.size()), u = h;
    std::int64_t steps = 0;
    const double residual =
        newton.solve(impulses, {}, {}, 1e-11, h.data(), steps, std::numeric_limits<std::int64_t>::max());
    impulses.velocities(h.data(), u.data());
    EXPECT_NEAR(impulses.residual(h.data(), u.data()), residual, 1e-13);
    EXPECT_LE(steps, 60);
    solved += residual <= 1e-11;
  }
  EXPECT_GT(solved, 180);  // the rest is for the other methods of the ladder
}

TEST(FrictionNewtonTest, SolvesAProximalStep) {
  RigidContactMaker make(2);
  for (int k = 0; k < 50; ++k) {
    const RigidContacts bodies = make.one_body();
    ImpulseProblem problem(bodies.n(), bodies.contacts());
    ASSERT_TRUE(problem.set(bodies.problem()));
    const Impulses& impulses = problem.impulses();
    Newton newton(impulses.contacts);
    const VectorXd center = VectorXd::Ones(impulses.size());
    const Proximal around = {10, center.data()};
    VectorXd h = center, u = h;
    std::int64_t steps = 0;
    ASSERT_LE(newton.solve(impulses, around, {}, 1e-11, h.data(), steps, std::numeric_limits<std::int64_t>::max()),
              1e-11);
    impulses.velocities(h.data(), u.data());
    u += 10 * (h - center);
    EXPECT_LE(impulses.residual(h.data(), u.data()), 1e-11);
  }
}

}  // namespace
}  // namespace lcp::friction
