// The methods for contact with friction do not allocate.
#include <gtest/gtest.h>

#include <limits>

#include "friction/active_set.h"
#include "friction/interior_point.h"
#include "friction/ladder.h"
#include "friction/smooth_path.h"
#include "support/count_allocations.h"
#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

TEST(FrictionAllocationTest, NothingIsAllocatedInTheLoops) {
  testing::RigidContactMaker make(1);
  int allocating = 0;  // problems that need the interior point method, which the ladder makes for the first of them
  for (int k = 0; k < 200; ++k) {
    const testing::RigidContacts bodies = k % 2 == 0 ? make.one_body() : make.stack(3);
    Ladder ladder(bodies.n(), bodies.contacts(), {1e-10, std::numeric_limits<std::int64_t>::max()});
    testing::VectorXd v(bodies.n()), gamma(3 * bodies.contacts()), u(3 * bodies.contacts());
    ImpulseProblem problem(bodies.n(), bodies.contacts());
    SmoothPath path(static_cast<int>(bodies.contacts()));
    InteriorPoint interior(bodies.n(), static_cast<int>(bodies.contacts()));
    ActiveSet active_set(static_cast<int>(bodies.contacts()));
    long before = testing::allocations();
    EXPECT_EQ(ladder.solve(bodies.problem(), nullptr, v.data(), gamma.data(), u.data()), Status::kSolved);
    allocating += testing::allocations() > before ? 1 : 0;
    before = testing::allocations();
    EXPECT_TRUE(problem.set(bodies.problem()));
    interior.set(bodies.problem(), problem.impulses());
    std::int64_t steps = 0;
    interior.solve({Path::kCone, 1}, 1e-11, gamma.data(), steps, 1000);
    steps = 0;
    active_set.solve(problem.impulses(), bodies.mu.data(), 1e-11, gamma.data(), steps, 100);
    active_set.enumerate(problem.impulses(), 1e-11, gamma.data(), steps, 100);
    path.point(problem.impulses(), 0.1, gamma.data(), u.data());
    EXPECT_EQ(testing::allocations() - before, 0) << k;
  }
  EXPECT_LE(allocating, 1);
}

}  // namespace
}  // namespace lcp::friction
