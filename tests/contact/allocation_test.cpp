// Neither Newton's method nor the derivative allocates.
#include <gtest/gtest.h>

#include "contact/derivative.h"
#include "contact/newton.h"
#include "support/bodies.h"
#include "support/count_allocations.h"

namespace lcp::contact {
namespace {

using Eigen::VectorXd;

TEST(ContactAllocationTest, NothingIsAllocatedInTheLoops) {
  for (const int n : {3, 6, 30, 60}) {
    const int contacts = n / 3, rows = 3 * contacts;
    auto first = testing::random_bodies(n, contacts, 1), second = testing::random_bodies(n, contacts, 2);
    second.R *= 1e-9;
    Newton newton(n, contacts);
    Derivative derivative(n, contacts);
    VectorXd v = first.v_free, y(rows), gamma(rows), g_v = VectorXd::Ones(n), g_c = VectorXd::Ones(rows);
    VectorXd l(n), g_v_free(n), g_v_hat(rows), g_R(rows), g_mu(contacts), at(rows);
    const long before = testing::allocations();
    for (const auto* bodies : {&first, &second}) {
      EXPECT_EQ(newton.solve(bodies->problem(), {1e-10, 100}, v.data(), y.data(), gamma.data()).termination,
                Termination::kSolved);
      derivative.adjoint(bodies->problem(), v.data(), y.data(), {g_v.data(), g_c.data(), g_c.data()},
                         {l.data(), g_v_free.data(), g_v_hat.data(), g_R.data(), g_mu.data(), at.data()});
    }
    EXPECT_EQ(testing::allocations() - before, 0) << n;
  }
}

}  // namespace
}  // namespace lcp::contact
