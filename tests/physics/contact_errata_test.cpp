// Misprints of the notes on the planar block and the point mass, each beside the form that this library builds.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 2.4 and 2.7.
#include <gtest/gtest.h>
#include <torch/nn/functional/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/point_mass.h"
#include "lcp/solve.h"
#include "lcp/solve_mixed.h"
#include "support/tensors.h"

namespace lcp::physics::contact_errata_test {

using testing::number;
using testing::numbers;
using torch::Tensor;

constexpr std::int64_t kSteps = 5000;
constexpr auto kLevel = Stabilization::kVelocity;

double share(const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); }
Tensor uniform(double low, double high) { return torch::rand({kSteps}, torch::kDouble) * (high - low) + low; }

// A point mass in contact, which the notes assume.
struct Contacts {
  PointMassState state;
  Tensor u;
  PointMass mass;
};

Contacts random_contacts(double dt) {
  const Tensor ground = torch::zeros({kSteps, 2}, torch::kDouble);
  const PointMass mass{uniform(0.2, 5), number(dt), uniform(0, 1.5), number(9.81), uniform(0, 1)};
  return {{ground, torch::randn({kSteps, 2}, torch::kDouble) * 9.81 * dt},
          torch::randn({kSteps, 2}, torch::kDouble) * mass.mass.unsqueeze(-1) * 9.81,
          mass};
}

// Steps that have no solution, or one with another velocity than the exact one; v_next = sign x.
Tensor wrong(const MixedProblem& form, const Contacts& c, double sign = 1) {
  const MixedResult result = solve_mixed(form.A, form.B, form.C, form.M, form.p, form.q);
  const Tensor exact = exact_step(c.state, c.u, c.mass, kLevel).next.velocity;
  const Tensor differs = (sign * result.x - exact).abs().amax(-1) > 1e-9 * (1 + exact.abs().amax(-1));
  return (result.status != 0) | differs;
}

class ContactErrataTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(19); }
};

// Section 2.4.

TEST_F(ContactErrataTest, AddsNoRectifiedEncodingsOfVelocityAndInput) {
  // Printed: v and u are encoded by their positive parts along each direction and added part by part. Opposite parts
  // then do not cancel.
  const PlanarBlock block = PlanarBlock::of(1, 1, 1, 0.5);
  const Tensor D = friction_directions(4, torch::kDouble);
  const auto printed = [&](const Tensor& v, const Tensor& u, const PlanarBlock& by) {
    const Tensor t = (v + u) / (v + u).norm(2, -1, true);
    const Tensor along = torch::matmul(t, D).clamp_min(0) * (by.mu * by.gravity);
    const Tensor q = along - torch::matmul(v, D).clamp_min(0) - torch::matmul(u, D).clamp_min(0);
    return read_direction(v, u, solve(torch::eye(4, torch::kDouble), q).z, by).v_next;
  };
  const Tensor v = numbers({1, 0}), u = numbers({-0.8, 0});
  EXPECT_NEAR(printed(v, u, block)[0].item<double>(), -0.3, 1e-15);
  EXPECT_EQ(step(v, u, block).step.v_next.abs().max().item<double>(), 0);
  EXPECT_EQ(exact_step(v, u, block).v_next.abs().max().item<double>(), 0);

  const PlanarBlock rough = PlanarBlock::of(1, 1, 1, 1);
  const Tensor x_axis = numbers({1, 0});
  const Tensor many_v = torch::randn({kSteps, 1}, torch::kDouble) * x_axis;
  const Tensor many_u = torch::randn({kSteps, 1}, torch::kDouble) * x_axis;
  const Tensor exact = exact_step(many_v, many_u, rough).v_next;
  const auto misses = [&](const Tensor& v_next) { return share((v_next - exact).abs().amax(-1) > 1e-12); };
  const double measured = misses(printed(many_v, many_u, rough));
  EXPECT_GT(measured, 0.35);
  EXPECT_LT(measured, 0.45);
  EXPECT_EQ(misses(step(many_v, many_u, rough).step.v_next), 0);
}

TEST_F(ContactErrataTest, DoesNotTrustTheIterationOfDirectionsEverywhere) {
  // The scheme that "would probably work" does not converge where the frictionless speed is less than 2 dt mu g.
  const PlanarBlock block = PlanarBlock::of(1, 1, 1, 0.5);
  const Tensor free = torch::nn::functional::normalize(torch::randn({500, 2}, torch::kDouble)) * 0.75;
  const Tensor v = free + 0.2 * torch::randn({500, 2}, torch::kDouble);
  PlanarBlockOptions options;
  options.formulation = PlanarBlockFormulation::kFixedPoint;
  options.max_passes = 200;
  const Tensor exact = exact_step(v, free - v, block).v_next;
  const auto misses = [&] {
    const auto solution = step(v, free - v, block, options);
    const Tensor off = (solution.step.v_next - exact).abs().amax(-1) > 1e-9;
    EXPECT_EQ((off & solution.converged).sum().item<std::int64_t>(), 0);
    return share(off);
  };
  EXPECT_GT(misses(), 0.95);
  options.relaxed = true;
  EXPECT_EQ(misses(), 0);
}

// Section 2.7.

TEST_F(ContactErrataTest, SolvesEveryContactInTheCorrectedForms) {
  for (const double dt : {1.0, 0.1, 0.01}) {
    const Contacts c = random_contacts(dt);
    EXPECT_EQ(share(wrong(stewart_trinkle_problem(c.state, c.u, c.mass, kLevel), c)), 0);
    EXPECT_EQ(share(wrong(belbute_peres_problem(c.state, c.u, c.mass, kLevel), c, -1)), 0);
  }
}

TEST_F(ContactErrataTest, MultipliesForcesByTheTimeStep) {
  // Printed without dt: right for dt = 1 and no other.
  for (const double dt : {1.0, 0.1, 0.01}) {
    const Contacts c = random_contacts(dt);
    MixedProblem printed = stewart_trinkle_problem(c.state, c.u, c.mass, kLevel);
    const Tensor weight = torch::stack({torch::zeros_like(c.mass.mass), -c.mass.mass * 9.81}, -1);
    printed.p = -(c.mass.mass.unsqueeze(-1) * c.state.velocity + c.u + weight);
    if (dt == 1) {
      EXPECT_EQ(share(wrong(printed, c)), 0);
    } else {
      EXPECT_GT(share(wrong(printed, c)), 0.6);
    }
  }
}

TEST_F(ContactErrataTest, ProjectsVelocitiesByTheTransposeOfTheDirections) {
  // Printed: gamma e + D v, of which the second row is 0 whatever v.
  const Contacts c = random_contacts(0.1);
  MixedProblem printed = stewart_trinkle_problem(c.state, c.u, c.mass, kLevel);
  const Tensor D = numbers({1, -1, 0, 0}).view({2, 2});
  EXPECT_TRUE(torch::equal(printed.C.slice(0, 1, 3), D.t()));
  printed.C = torch::cat({printed.C.slice(0, 0, 1), D, printed.C.slice(0, 3)});
  EXPECT_GT(share(wrong(printed, c)), 0.45);
}

TEST_F(ContactErrataTest, HasTheContactImpulseAmongItsUnknowns) {
  // Printed: (v, lambda_f, gamma), five unknowns for the six columns of the matrix. Without lambda_c nothing carries.
  const Contacts c = random_contacts(0.1);
  const MixedProblem corrected = stewart_trinkle_problem(c.state, c.u, c.mass, kLevel);
  EXPECT_EQ(corrected.A.size(-1) + corrected.B.size(-1), 6);
  const MixedProblem printed{
      corrected.A, corrected.B.slice(-1, 1), corrected.C.slice(-2, 1), corrected.M.slice(-2, 1).slice(-1, 1),
      corrected.p, corrected.q.slice(-1, 1)};
  EXPECT_EQ(printed.A.size(-1) + printed.B.size(-1), 5);
  const Tensor pressed = exact_step(c.state, c.u, c.mass, kLevel).lambda_n > 0;
  ASSERT_GT(share(pressed), 0.4);
  EXPECT_EQ(share(wrong(printed, c).index({pressed})), 1);
  const Tensor sinks = solve_mixed(printed.A, printed.B, printed.C, printed.M, printed.p, printed.q).x.select(-1, 1);
  const Tensor bound = -corrected.q.select(-1, 0);
  EXPECT_TRUE((sinks < bound).index({pressed}).all().item<bool>());
}

TEST_F(ContactErrataTest, BringsMomentumAndForcesToTheOtherSide) {
  // Printed: + (M v + u + (0, -m g)), which drives the mass backwards.
  for (const double dt : {1.0, 0.1, 0.01}) {
    const Contacts c = random_contacts(dt);
    MixedProblem printed = stewart_trinkle_problem(c.state, c.u, c.mass, kLevel);
    printed.p = -printed.p;
    EXPECT_GT(share(wrong(printed, c)), 0.99) << dt;
  }
}

TEST_F(ContactErrataTest, ReboundsOnlyFromAnApproach) {
  // Printed: a constant c for restitution. With c = e n.v also where the mass leaves, the bound n.v_next >= -c lets it
  // turn round into the ground.
  const double e = 0.5;
  const PointMass mass = PointMass::of(1, 0.1, 0.3, 9.81, e);
  const PointMassState leaving{numbers({0, 0}), numbers({0, 1})};
  const Tensor push = numbers({0, -25});
  MixedProblem printed = stewart_trinkle_problem(leaving, push, mass, kLevel);
  EXPECT_EQ(printed.q[0].item<double>(), 0);
  printed.q = numbers({e * 1, 0, 0, 0});
  const auto velocity = [](const MixedProblem& form) {
    return solve_mixed(form.A, form.B, form.C, form.M, form.p, form.q).x[1].item<double>();
  };
  EXPECT_NEAR(velocity(printed), -0.5, 1e-14);
  EXPECT_NEAR(velocity(stewart_trinkle_problem(leaving, push, mass, kLevel)), 0, 1e-14);

  const Contacts c = random_contacts(0.1);
  MixedProblem unclamped = stewart_trinkle_problem(c.state, c.u, c.mass, kLevel);
  const Tensor v_n = c.state.velocity.select(-1, 1);
  unclamped.q = torch::cat({(c.mass.restitution * v_n).unsqueeze(-1), unclamped.q.slice(-1, 1)}, -1);
  const auto sinks = [](const MixedProblem& form) {
    return solve_mixed(form.A, form.B, form.C, form.M, form.p, form.q).x.select(-1, 1) < -1e-12;
  };
  EXPECT_GT(share(sinks(unclamped).index({v_n > 0})), 0.3);
  EXPECT_EQ(share(sinks(unclamped).index({v_n <= 0})), 0);
  EXPECT_EQ(share(sinks(stewart_trinkle_problem(c.state, c.u, c.mass, kLevel))), 0);
}

TEST_F(ContactErrataTest, HasOneRightPairOfSignsInTheFormOfBelbutePeres) {
  // Printed: x = -v with -M v + (0, m g) - u.
  for (const double dt : {1.0, 0.1, 0.01}) {
    const Contacts c = random_contacts(dt);
    const MixedProblem form = belbute_peres_problem(c.state, c.u, c.mass, kLevel);
    const auto share_wrong = [&](double sign_of_p, double sign_of_F) {
      return share(wrong({form.A, form.B, form.C, sign_of_F * form.M, sign_of_p * form.p, form.q}, c, -1));
    };
    EXPECT_EQ(share_wrong(1, 1), 0) << dt;
    EXPECT_GT(share_wrong(1, -1), 0.55) << dt;
    EXPECT_GT(share_wrong(-1, 1), 0.98) << dt;
    EXPECT_GT(share_wrong(-1, -1), 0.98) << dt;
  }
}

}  // namespace lcp::physics::contact_errata_test
