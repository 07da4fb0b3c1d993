#include "friction/smooth_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "friction/ladder.h"
#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

using testing::RigidContactMaker;
using testing::RigidContacts;
using testing::VectorXd;

// Whether the point of the path is found near the solution, from where it is checked by its definition. kappa:
// relative, in the units of Impulses.
bool finds_point(const RigidContacts& bodies, double kappa) {
  const auto rows = 3 * bodies.contacts();
  Ladder ladder(bodies.n(), bodies.contacts(), {1e-10, std::numeric_limits<std::int64_t>::max()});
  VectorXd v(bodies.n()), gamma(rows), u(rows), h(rows);
  EXPECT_EQ(ladder.solve(bodies.problem(), nullptr, v.data(), gamma.data(), u.data()), Status::kSolved);
  ImpulseProblem problem(bodies.n(), bodies.contacts());
  EXPECT_TRUE(problem.set(bodies.problem()));
  const Impulses& impulses = problem.impulses();
  problem.scaled(gamma.data(), h.data());
  for (Eigen::Index i = 0; i < rows; ++i) u[i] /= impulses.weight[i / 3] * problem.unit();
  SmoothPath path(impulses.contacts);
  if (!path.point(impulses, kappa, h.data(), u.data())) return false;
  VectorXd expected(rows);
  impulses.velocities(h.data(), expected.data());
  EXPECT_LT((u - expected).norm(), 1e-9 * (1 + h.norm()));
  for (int k = 0; k < impulses.contacts; ++k) {
    const double h_n = h[3 * k + 2], u_n = u[3 * k + 2], mu = bodies.mu[k];
    EXPECT_GT(h_n, 0);
    EXPECT_NEAR(h_n * u_n / kappa, 1, 1e-5);
    const double speed = std::hypot(u_n, mu * u.segment<2>(3 * k).norm());
    EXPECT_LT((h.segment<2>(3 * k) + mu * mu * h_n / speed * u.segment<2>(3 * k)).norm(), 1e-5 * h_n);
  }
  return true;
}

TEST(SmoothPathTest, IsFoundNearTheSolutionsOfRandomProblems) {
  for (const double kappa : {1e-1, 1e-3, 1e-6}) {
    RigidContactMaker make(2);
    int lost = 0;  // all of them with a friction at which contacts wedge
    for (int k = 0; k < 300; ++k) {
      const RigidContacts body = make.one_body();
      if (finds_point(body, kappa)) continue;
      ++lost;
      EXPECT_GT(body.mu.maxCoeff(), 1) << k;
    }
    EXPECT_LE(lost, 4) << kappa;
  }
}

TEST(SmoothPathTest, IsFoundForStacks) {
  for (const double kappa : {1e-1, 1e-3, 1e-6}) {
    RigidContactMaker make(3);
    int found = 0;
    for (int k = 0; k < 50; ++k) found += finds_point(make.stack(2 + k % 5), kappa);
    EXPECT_GE(found, 50) << kappa;
  }
}

}  // namespace
}  // namespace lcp::friction
