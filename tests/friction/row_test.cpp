// Rows beside contacts, constraints in one dimension, by the ladder and its derivative.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "friction/derivative.h"
#include "friction/interior_point.h"
#include "friction/ladder.h"
#include "friction/pyramid.h"
#include "support/contacts_and_rows.h"

namespace lcp::friction {
namespace {

using testing::ContactsAndRows;
using testing::RigidContacts;
using testing::RowMaker;
using testing::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kTolerance = 1e-10;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct Found {
  Status status;
  VectorXd v, gamma, u;
};

Found solved(const ContactsAndRows& all, double tolerance = kTolerance) {
  const Eigen::Index n = all.contacts.n();
  Ladder ladder(n, all.contacts.contacts(), {tolerance, kUnlimited}, all.rows());
  Found found = {Status::kNotFound, VectorXd(n), VectorXd(all.size()), VectorXd(all.size())};
  found.status = ladder.solve(all.problem(), nullptr, found.v.data(), found.gamma.data(), found.u.data());
  return found;
}

// A mass of 2 kg that moves along one axis, and rows that hold it.
ContactsAndRows mass_with_row(double v, double lower, double upper, double b = 0) {
  ContactsAndRows all;
  all.contacts.A.resize(1, 1);
  all.contacts.A << 2;
  all.contacts.J.resize(1, 1);
  all.contacts.J << 1;
  all.contacts.v_free = VectorXd::Constant(1, v);
  all.contacts.b = VectorXd::Constant(1, b);
  all.contacts.mu.resize(0);
  all.lower = VectorXd::Constant(1, lower);
  all.upper = VectorXd::Constant(1, upper);
  return all;
}

TEST(RowTest, HoldsAMassByEachKindOfSet) {
  const auto expect = [](const ContactsAndRows& all, double v, double h) {
    const Found found = solved(all);
    ASSERT_EQ(found.status, Status::kSolved);
    EXPECT_NEAR(found.v[0], v, 1e-14);
    EXPECT_NEAR(found.gamma[0], h, 1e-14);
  };
  expect(mass_with_row(0.3, -1, 1), 0, -0.6);                   // dry friction holds
  expect(mass_with_row(0.8, -1, 1), 0.3, -1);                   // and slips
  expect(mass_with_row(-0.8, -1, 1), -0.3, 1);                  // both ways
  expect(mass_with_row(-0.3, 0, kInfinity), 0, 0.6);            // a stop
  expect(mass_with_row(0.3, 0, kInfinity), 0.3, 0);             // from which the mass leaves
  expect(mass_with_row(0.3, -kInfinity, 0), 0, -0.6);           // a stop on the other side
  expect(mass_with_row(-0.3, 0, kInfinity, 0.1), -0.1, 0.4);    // a stop at a distance
  expect(mass_with_row(5, -kInfinity, kInfinity, 1), -1, -12);  // an equation
  expect(mass_with_row(1, 0.5, 0.5), 1.25, 0.5);                // a given impulse
  expect(mass_with_row(0.3, 0, 0), 0.3, 0);
}

TEST(RowTest, SolvesRandomProblemsTruly) {
  RowMaker make(1);
  int failed = 0;
  constexpr int kProblems = 20000;
  for (int k = 0; k < kProblems; ++k) {
    const RigidContacts bodies = k % 3 < 2 ? make.contacts().one_body() : make.contacts().bodies();
    ContactsAndRows all = make.with_rows(bodies, 1 + k % 5);
    const Found found = solved(all);
    if (found.status != Status::kSolved) {
      ++failed;
      continue;
    }
    // The library's unit is the largest velocity of all, with the least impulses; that of the contacts may be smaller.
    const RigidContacts alone = all.without_rows();
    ImpulseProblem problem(bodies.n(), bodies.contacts(), all.rows());
    ASSERT_TRUE(problem.set(all.problem()));
    const double unit = problem.unit(), weight = problem.impulses().row_weight;
    const double of_contacts = (alone.J * alone.v_free + alone.b).cwiseAbs().maxCoeff();
    RigidContacts balanced = all.contacts;
    EXPECT_LE(balanced.imbalance(found.v, found.gamma), 1e-9) << k;
    EXPECT_LE(alone.residual(found.v, found.gamma.head(3 * bodies.contacts())), 2 * kTolerance * unit / of_contacts)
        << k;
    EXPECT_LE(all.row_violation(found.v, found.gamma), 1.1 * kTolerance * unit / weight) << k;
    for (Eigen::Index r = 0; r < all.rows(); ++r) {
      const double h = found.gamma[3 * bodies.contacts() + r];
      EXPECT_TRUE(h >= all.lower[r] && h <= all.upper[r]) << k;
    }
  }
  EXPECT_LE(failed, kProblems / 1000);
}

ContactsAndRows with_compliance(ContactsAndRows all, RowMaker& make) {
  all.compliance = VectorXd::NullaryExpr(all.rows(), [&] { return std::pow(10.0, 4 * make.contacts().uniform() - 2); });
  for (Eigen::Index r = 0; r < all.rows(); ++r) {
    all.compliance[r] *= all.contacts.J.row(3 * all.contacts.contacts() + r).squaredNorm();
  }
  return all;
}

TEST(RowTest, CompliantRowsYield) {
  ContactsAndRows all = mass_with_row(0.8, -1, 1);
  all.compliance = VectorXd::Constant(1, 0.5);
  const Found held = solved(all);  // (1/2 + 1/2) h = -0.8
  ASSERT_EQ(held.status, Status::kSolved);
  EXPECT_NEAR(held.gamma[0], -0.8, 1e-14);
  EXPECT_NEAR(held.v[0], 0.4, 1e-14);
  EXPECT_NEAR(held.u[0], 0, 1e-14);
  all.contacts.v_free[0] = 1.5;  // too fast for an impulse of at most 1
  const Found slips = solved(all);
  ASSERT_EQ(slips.status, Status::kSolved);
  EXPECT_EQ(slips.gamma[0], -1);
  EXPECT_NEAR(slips.v[0], 1, 1e-14);
  EXPECT_NEAR(slips.u[0], 0.5, 1e-14);
  for (const double wrong : {-1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    all.compliance[0] = wrong;
    EXPECT_EQ(solved(all).status, Status::kBadInput);
  }
}

TEST(RowTest, ACompliantRowMovesAMassOfItsOwn) {
  RowMaker make(5);
  int compared = 0, different = 0, by_interior = 0;
  constexpr int kProblems = 1000;
  for (int k = 0; k < kProblems; ++k) {
    const RigidContacts bodies = k % 2 == 0 ? make.contacts().one_body() : make.contacts().bodies();
    const ContactsAndRows all = with_compliance(make.with_rows(bodies, 1 + k % 5), make), same = all.with_masses();
    const Eigen::Index n = bodies.n(), c = bodies.contacts(), rows = all.rows();
    const Found a = solved(all, 1e-13), b = solved(same, 1e-13);
    if (a.status != Status::kSolved || b.status != Status::kSolved) continue;
    // Newton's method on the path has the compliance, too.
    ImpulseProblem problem(n, c, rows);
    const friction::Problem given = all.problem(), other = same.problem();
    ASSERT_TRUE(problem.set(given));
    InteriorPoint interior(n, static_cast<int>(c), static_cast<int>(rows));
    interior.set(given, problem.impulses());
    VectorXd h(all.size());
    std::int64_t steps = 0;
    by_interior += interior.solve({Path::kCone, 1}, 1e-11, h.data(), steps, kUnlimited) <= 1e-10;
    Derivative derivative(n, c, 1e-10, false, rows), of_masses(n + rows, c, 1e-10, false, rows);
    const Solution at = {a.v.data(), a.gamma.data(), a.u.data()}, there = {b.v.data(), b.gamma.data(), b.u.data()};
    Certificate certificate;
    ASSERT_TRUE(derivative.certify(given, at, certificate));
    EXPECT_LE(certificate.residual, 1e-9) << k;
    if (certificate.margin < 1e-3 || certificate.rank < all.size()) continue;
    // Coulomb's law may have several solutions.
    if ((a.v - b.v.head(n)).norm() > 1e-8 * (1 + a.v.norm())) {
      ++different;
      continue;
    }
    const VectorXd dp = VectorXd::Random(n), ds = VectorXd::Random(all.size()), dmu = VectorXd::Random(c),
                   none = VectorXd::Zero(rows);
    VectorXd wide_dp = VectorXd::Zero(n + rows), dv(n), dgamma(all.size()), wide_dv(n + rows), wide_dgamma(all.size());
    wide_dp.head(n) = dp;
    derivative.tangent(given, at, {dp.data(), ds.data(), dmu.data(), none.data(), none.data()}, dv.data(),
                       dgamma.data());
    of_masses.tangent(other, there, {wide_dp.data(), ds.data(), dmu.data(), none.data(), none.data()}, wide_dv.data(),
                      wide_dgamma.data());
    EXPECT_LE((dv - wide_dv.head(n)).norm(), 1e-6 * (1 + dv.norm())) << k;
    // The adjoint is the transpose, also in u, of which a part is compliance times gamma.
    const VectorXd g_v = VectorXd::Random(n), g_gamma = VectorXd::Random(all.size()),
                   g_u = VectorXd::Random(all.size());
    VectorXd du = all.contacts.J * dv + ds;
    du.tail(rows) += all.compliance.cwiseProduct(dgamma.tail(rows));
    VectorXd g_p(n), g_s(all.size()), g_mu(c), g_lower(rows), g_upper(rows);
    derivative.adjoint(given, at, {g_v.data(), g_gamma.data(), g_u.data()},
                       {g_p.data(), g_s.data(), g_mu.data(), g_lower.data(), g_upper.data()});
    EXPECT_NEAR(g_v.dot(dv) + g_gamma.dot(dgamma) + g_u.dot(du), g_p.dot(dp) + g_s.dot(ds) + g_mu.dot(dmu),
                1e-7 * (1 + g_gamma.cwiseAbs().dot(dgamma.cwiseAbs()) + g_u.cwiseAbs().dot(du.cwiseAbs())))
        << k;
    ++compared;
  }
  EXPECT_LE(different, kProblems / 200);
  EXPECT_GE(compared, kProblems / 4);
  EXPECT_GE(by_interior, kProblems * 8 / 10);
}

// The slower methods are for problems that Newton's method does not solve; here they get all of them.
TEST(RowTest, SlowerMethodsSolveRows) {
  RowMaker make(2);
  int by_interior = 0, by_pyramid = 0;
  constexpr int kProblems = 300;
  for (int k = 0; k < kProblems; ++k) {
    const RigidContacts bodies = make.contacts().one_body();
    const ContactsAndRows all = make.with_rows(bodies, 1 + k % 5);
    ImpulseProblem problem(bodies.n(), bodies.contacts(), all.rows());
    const friction::Problem given = all.problem();
    ASSERT_TRUE(problem.set(given));
    const Impulses& impulses = problem.impulses();
    InteriorPoint interior(bodies.n(), impulses.contacts, impulses.rows);
    interior.set(given, impulses);
    VectorXd h(impulses.size()), u(impulses.size());
    std::int64_t steps = 0;
    by_interior += interior.solve({Path::kCone, 1}, 1e-11, h.data(), steps, kUnlimited) <= 1e-10;
    // Without friction a pyramid is exact.
    Impulses smooth = impulses;
    const std::vector<double> no_friction(impulses.contacts);
    smooth.mu = smooth.given_mu = no_friction.data();
    Pyramid pyramid(impulses.contacts, impulses.rows);
    if (!pyramid.solve(smooth, smooth.mu, h.data())) continue;
    smooth.velocities(h.data(), u.data());
    EXPECT_LE(smooth.residual(h.data(), u.data()), 1e-8) << k;
    ++by_pyramid;
  }
  EXPECT_GE(by_interior, kProblems * 9 / 10);
  EXPECT_GE(by_pyramid, kProblems * 95 / 100);
}

TEST(RowTest, ProvesThatRowsContradictEachOther) {
  ContactsAndRows all = mass_with_row(1, -kInfinity, kInfinity, 1);
  all.contacts.J.resize(2, 1);
  all.contacts.J << 1, 2;
  all.contacts.b = Eigen::Vector2d(1, 3);
  all.lower = Eigen::Vector2d(-kInfinity, -kInfinity);
  all.upper = -all.lower;
  EXPECT_EQ(solved(all).status, Status::kInfeasible);  // v = -1 and v = -1.5
  all.lower[1] = 0;                                    // v >= -1.5
  EXPECT_EQ(solved(all).status, Status::kSolved);
  all.lower[1] = -kInfinity;
  all.upper[1] = 0;  // v <= -1.5
  EXPECT_EQ(solved(all).status, Status::kInfeasible);
  all.upper[1] = -kInfinity;
  EXPECT_EQ(solved(all).status, Status::kBadInput);
}

TEST(RowTest, DoesNotDependOnTheUnitsOfARow) {
  RowMaker make(3);
  for (int k = 0; k < 200; ++k) {
    const ContactsAndRows all = make.with_rows(make.contacts().one_body(), 3);
    ContactsAndRows other = all;
    const Eigen::Index i = 3 * all.contacts.contacts() + 1;
    constexpr double kUnit = 1 << 20;
    other.contacts.J.row(i) *= kUnit;
    other.contacts.b[i] *= kUnit;
    other.lower[1] /= kUnit;
    other.upper[1] /= kUnit;
    const Found a = solved(all), b = solved(other);
    ASSERT_EQ(a.status, b.status);
    EXPECT_TRUE((a.v.array() == b.v.array()).all()) << k;
  }
}

struct Change {
  VectorXd v_free, b, mu, lower, upper;
};

Change random_change(const ContactsAndRows& all, RowMaker& make) {
  const auto numbers = [&](Eigen::Index size) {
    return VectorXd(VectorXd::NullaryExpr(size, [&] { return 2 * make.contacts().uniform() - 1; }));
  };
  Change change = {numbers(all.contacts.n()), numbers(all.size()), numbers(all.contacts.contacts()),
                   numbers(all.rows()), numbers(all.rows())};
  for (Eigen::Index r = 0; r < all.rows(); ++r) {
    if (!std::isfinite(all.lower[r])) change.lower[r] = 0;
    if (!std::isfinite(all.upper[r])) change.upper[r] = 0;
    if (all.lower[r] == all.upper[r]) change.lower[r] = change.upper[r];
  }
  return change;
}

ContactsAndRows moved(ContactsAndRows all, const Change& change, double length) {
  all.contacts.v_free += length * change.v_free;
  all.contacts.b += length * change.b;
  all.contacts.mu += length * change.mu;
  for (Eigen::Index r = 0; r < all.rows(); ++r) {
    if (change.lower[r] != 0) all.lower[r] += length * change.lower[r];
    if (change.upper[r] != 0) all.upper[r] += length * change.upper[r];
  }
  return all;
}

TEST(RowTest, DerivativesAreThoseOfFiniteDifferences) {
  RowMaker make(4);
  int compared = 0;
  for (int k = 0; k < 600; ++k) {
    const RigidContacts bodies = make.contacts().bodies();
    const ContactsAndRows all = make.with_rows(bodies, 1 + k % 4);
    const Eigen::Index n = bodies.n(), c = bodies.contacts(), rows = all.rows();
    const Found at = solved(all, 1e-14);
    if (at.status != Status::kSolved || bodies.mu.minCoeff() == 0) continue;
    Derivative derivative(n, c, 1e-10, false, rows);
    const friction::Problem problem = all.problem();
    const Solution solution = {at.v.data(), at.gamma.data(), at.u.data()};
    Certificate certificate;
    ASSERT_TRUE(derivative.certify(problem, solution, certificate));
    EXPECT_LE(certificate.residual, 1e-9) << k;
    if (certificate.margin < 1e-3 || certificate.rank < all.size()) continue;
    const Change change = random_change(all, make);
    const VectorXd dp = all.contacts.A * change.v_free, ds = change.b;
    VectorXd dv(n), dgamma(all.size());
    derivative.tangent(problem, solution,
                       {dp.data(), ds.data(), change.mu.data(), change.lower.data(), change.upper.data()}, dv.data(),
                       dgamma.data());
    constexpr double kLength = 1e-6;
    const Found ahead = solved(moved(all, change, kLength), 1e-14),
                behind = solved(moved(all, change, -kLength), 1e-14);
    if (ahead.status != Status::kSolved || behind.status != Status::kSolved) continue;
    const VectorXd of_v = (ahead.v - behind.v) / (2 * kLength);
    if ((of_v - dv).norm() > 1e-4 * (1 + dv.norm())) {
      // The states must differ between both ends.
      const VectorXd forward = (ahead.v - at.v) / kLength, backward = (at.v - behind.v) / kLength;
      EXPECT_GT((forward - backward).norm(), 1e-4 * (1 + dv.norm())) << k;
      continue;
    }
    ++compared;
    // The adjoint is the transpose.
    const VectorXd g_v = VectorXd::Random(n), g_gamma = VectorXd::Random(all.size()), none = VectorXd::Zero(all.size());
    VectorXd g_p(n), g_s(all.size()), g_mu(c), g_lower(rows), g_upper(rows);
    derivative.adjoint(problem, solution, {g_v.data(), g_gamma.data(), none.data()},
                       {g_p.data(), g_s.data(), g_mu.data(), g_lower.data(), g_upper.data()});
    const double forward = g_v.dot(dv) + g_gamma.dot(dgamma);
    const double reverse =
        g_p.dot(dp) + g_s.dot(ds) + g_mu.dot(change.mu) + g_lower.dot(change.lower) + g_upper.dot(change.upper);
    EXPECT_NEAR(forward, reverse, 1e-7 * (1 + g_gamma.cwiseAbs().dot(dgamma.cwiseAbs()))) << k;
  }
  EXPECT_GE(compared, 100);
}

}  // namespace
}  // namespace lcp::friction
