// The methods for contact with friction do not allocate.
#include <gtest/gtest.h>

#include <limits>

#include "friction/ladder.h"
#include "friction/smooth_path.h"
#include "support/count_allocations.h"
#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

TEST(FrictionAllocationTest, NothingIsAllocatedInTheLoops) {
  testing::RigidContactMaker make(1);
  for (int k = 0; k < 200; ++k) {
    const testing::RigidContacts bodies = k % 2 == 0 ? make.one_body() : make.stack(3);
    Ladder ladder(bodies.n(), bodies.contacts(), {1e-10, std::numeric_limits<std::int64_t>::max()});
    testing::VectorXd v(bodies.n()), gamma(3 * bodies.contacts()), u(3 * bodies.contacts());
    ImpulseProblem problem(bodies.n(), bodies.contacts());
    SmoothPath path(static_cast<int>(bodies.contacts()));
    const long before = testing::allocations();
    EXPECT_EQ(ladder.solve(bodies.problem(), nullptr, v.data(), gamma.data(), u.data()), Status::kSolved);
    EXPECT_TRUE(problem.set(bodies.problem()));
    path.point(problem.impulses(), 0.1, gamma.data(), u.data());
    EXPECT_EQ(testing::allocations() - before, 0) << k;
  }
}

}  // namespace
}  // namespace lcp::friction
