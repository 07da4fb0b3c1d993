#include "friction/interior_point.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

using testing::RigidContactMaker;
using testing::RigidContacts;
using testing::VectorXd;

constexpr double kGoal = 1e-11;
constexpr std::int64_t kMostSteps = 1000;

// Solves from both paths, and checks what is returned. Adds to the numbers of problems that they solve.
struct Solved {
  int cone = 0, smooth = 0, either = 0;

  void add(const RigidContacts& bodies) {
    ImpulseProblem problem(bodies.n(), bodies.contacts());
    ASSERT_TRUE(problem.set(bodies.problem()));
    const Impulses& impulses = problem.impulses();
    InteriorPoint method(bodies.n(), impulses.contacts);
    method.set(bodies.problem(), impulses);
    const auto solve = [&](Path path) {
      VectorXd h(impulses.size()), u(impulses.size());
      std::int64_t steps = 0;
      const double residual = method.solve({path, 1}, kGoal, h.data(), steps, kMostSteps);
      EXPECT_GT(steps, 0);
      impulses.velocities(h.data(), u.data());
      EXPECT_NEAR(impulses.residual(h.data(), u.data()), residual, 1e-13 + 1e-3 * residual);
      return residual <= kGoal;
    };
    const bool by_cone = solve(Path::kCone), by_smooth = solve(Path::kSmooth);
    cone += by_cone;
    smooth += by_smooth;
    either += by_cone || by_smooth;
  }
};

TEST(InteriorPointTest, SolvesBodiesAlsoWithoutFriction) {
  RigidContactMaker make(1);
  Solved solved;
  for (int k = 0; k < 200; ++k) {
    RigidContacts bodies = make.one_body();
    if (k % 4 == 0) bodies.mu.setZero();
    if (k % 4 == 1) bodies.mu[0] = 0;
    solved.add(bodies);
  }
  EXPECT_GE(solved.cone, 190);
  EXPECT_GE(solved.smooth, 190);
  EXPECT_GE(solved.either, 198);
}

TEST(InteriorPointTest, SolvesStacksWithGapsThatDifferByLittle) {
  for (const double gap : {1e-10, 1e-8, 1e-6}) {
    RigidContactMaker make(2);
    Solved solved;
    for (int k = 0; k < 100; ++k) solved.add(make.stack_with_gaps(4, gap));
    EXPECT_GE(solved.cone, 70) << gap;
    EXPECT_GE(solved.smooth, 70) << gap;
    EXPECT_GE(solved.either, 90) << gap;
  }
}

TEST(InteriorPointTest, StopsWhereItsStepsRunOut) {
  RigidContactMaker make(3);
  const RigidContacts stack = make.stack(4);
  ImpulseProblem problem(stack.n(), stack.contacts());
  ASSERT_TRUE(problem.set(stack.problem()));
  InteriorPoint method(stack.n(), problem.impulses().contacts);
  method.set(stack.problem(), problem.impulses());
  VectorXd h(problem.impulses().size());
  std::int64_t steps = 2;
  method.solve({Path::kCone, 1}, kGoal, h.data(), steps, 5);
  EXPECT_EQ(steps, 5);
  EXPECT_TRUE(h.allFinite());
}

}  // namespace
}  // namespace lcp::friction
