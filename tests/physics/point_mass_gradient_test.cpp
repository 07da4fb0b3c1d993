#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <vector>

#include "lcp/physics/point_mass.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::point_mass_gradient_test {

using testing::count;
using testing::Inputs;
using testing::jacobians;
using testing::largest;
using testing::list;
using testing::number;
using testing::numbers;
using testing::Slopes;
using testing::slopes;
using torch::Tensor;
using Formulation = PointMassFormulation;
using List = std::vector<std::int64_t>;

constexpr auto kFormulations = {Formulation::kStewartTrinkle, Formulation::kBelbutePeres};
constexpr auto kLevels = {Stabilization::kPosition, Stabilization::kVelocity};

Tensor x_of(const Tensor& a) { return a.select(-1, 0); }
Tensor y_of(const Tensor& a) { return a.select(-1, 1); }

// m = 1, g dt = 1, so that hand-made states have no round-off.
PointMass dyadic_mass(double mu = 0.5, double restitution = 0) { return PointMass::of(1, 0.125, mu, 8, restitution); }

class PointMassGradientTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(13); }
};

// Gradients.

// A mass that lands and slides, one that lands and sticks, one that is pushed back, and one that is lifted off.
struct Drive {
  PointMassState state{numbers({0, 0.21, 0.1, 0.13, 0, 0.011, 0, 0.007}).view({4, 2}),
                       numbers({3.1, -0.4, 0.21, -0.3, 0.9, -1.1, -0.6, -0.9}).view({4, 2})};
  Tensor u = torch::cat({numbers({0.4, 0.3, 0.2, -0.1, -15, -0.6, 0.3, 0.2}).view({1, 4, 2}).expand({6, 4, 2}),
                         numbers({-0.2, 0.7, 0.1, 0.4, -13, -0.9, 1.9, 29}).view({1, 4, 2}).expand({6, 4, 2})})
                 .contiguous();
  Tensor mass = numbers({1.3, 0.9, 1.1, 1.2});
  Tensor mu = numbers({0.3, 0.8, 0.4, 0.35});
};

TEST_F(PointMassGradientTest, DifferentiatesARolloutInStateInputsAndParameters) {
  const Drive drive;
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      const bool bounces = level == Stabilization::kVelocity;
      const auto simulated = [&](const Inputs& in) {
        const PointMass mass{in[3], in[4], in[5], in[6], bounces ? in[7] : number(0)};
        return simulate({in[0], in[1]}, in[2], mass, {formulation, level}).step;
      };
      const auto motion = [&](const Inputs& in) {
        const PointMassStep s = simulated(in);
        return torch::cat({s.next.position, s.next.velocity}, -1);
      };
      const auto impulses = [&](const Inputs& in) {
        const PointMassStep s = simulated(in);
        return torch::stack({s.lambda_n, s.lambda_plus - s.lambda_minus}, -1);
      };
      Inputs in{drive.state.position, drive.state.velocity, drive.u, drive.mass, number(0.05), drive.mu, number(9.81)};
      if (bounces) in.push_back(numbers({0.5, 0.4, 0.6, 0.3}));
      EXPECT_LT(testing::gradient_error(motion, in), 1e-6) << static_cast<int>(formulation) << " " << bounces;
      EXPECT_LT(testing::gradient_error(impulses, in), 1e-6) << static_cast<int>(formulation) << " " << bounces;

      const PointMassStep s = simulated(in);
      const Tensor pressed = s.lambda_n > 0;
      const Tensor v_x = x_of(s.next.velocity);
      for (const int flies : {0, 1, 3}) EXPECT_GT(count(~pressed.select(1, flies)), 0);
      EXPECT_TRUE(pressed.any(0).all().item<bool>());
      EXPECT_GT(count((pressed & (v_x != 0)).select(1, 0)), 0);
      EXPECT_GT(count((pressed & (v_x == 0)).select(1, 1)), bounces ? 0 : 5);
      EXPECT_LT(v_x[-1][2].item<double>(), 0);
      EXPECT_GT(y_of(s.next.position)[-1][3].item<double>(), 0.01);
    }
  }
}

TEST_F(PointMassGradientTest, DifferentiatesTheExactStep) {
  const Drive drive;
  for (const auto level : kLevels) {
    const auto next = [&](const Inputs& in) {
      PointMassState now{in[0], in[1]};
      std::vector<Tensor> all;
      for (int k = 0; k < 12; ++k) {
        const PointMass mass{in[3], in[4], in[5], in[6], level == Stabilization::kVelocity ? in[7] : number(0)};
        now = exact_step(now, in[2][k], mass, level).next;
        all.push_back(torch::cat({now.position, now.velocity}, -1));
      }
      return torch::stack(all);
    };
    EXPECT_LT(testing::gradient_error(next, {drive.state.position, drive.state.velocity, drive.u, drive.mass,
                                             number(0.05), drive.mu, number(9.81), numbers({0.5, 0.4, 0.6, 0.3})}),
              1e-6);
  }
}

// (x, y, v_x, v_y) to the same after a step without input.
std::function<Tensor(const Tensor&)> after_a_step(const PointMass& mass, const PointMassOptions& options,
                                                  const SolveOptions& solve_options = {}) {
  return [=](const Tensor& x) {
    const PointMassState next =
        step({x.slice(-1, 0, 2), x.slice(-1, 2)}, torch::zeros({2}, torch::kDouble), mass, options, solve_options)
            .step.next;
    return torch::cat({next.position, next.velocity}, -1);
  };
}

TEST_F(PointMassGradientTest, HasTheGradientOfFreeFallWhereItFallsStraight) {
  // v_x = 0 in the air: no contact holds it there.
  const Tensor x = numbers({0, 1, 0, 0, 0, 1, 0, -2, 0.5, 1, 0.25, 0}).view({-1, 4});
  const Tensor flight =
      numbers({1, 0, 0.125, 0, 0, 1, 0, 0.125, 0, 0, 1, 0, 0, 0, 0, 1}).view({4, 4}).expand({3, 4, 4});
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      for (const char* ties : {"inactive", "midpoint", "active"}) {
        SolveOptions options;
        options.ties = ties;
        const Tensor J = jacobians(after_a_step(dyadic_mass(), {formulation, level}, options), x);
        EXPECT_LT(largest(J - flight), 1e-14) << static_cast<int>(formulation) << " " << ties;
      }
    }
  }
  for (const auto level : kLevels) {
    const auto exact = [&](const Tensor& s) {
      const PointMassState next =
          exact_step({s.slice(-1, 0, 2), s.slice(-1, 2)}, torch::zeros({2}, torch::kDouble), dyadic_mass(), level).next;
      return torch::cat({next.position, next.velocity}, -1);
    };
    EXPECT_LT(largest(jacobians(exact, x) - flight), 1e-14);
  }
}

TEST_F(PointMassGradientTest, HasNoGradientAtRest) {
  for (const auto formulation : kFormulations) {
    const Tensor J = jacobians(after_a_step(dyadic_mass(), {formulation, Stabilization::kPosition}),
                               torch::zeros({1, 4}, torch::kDouble));
    // x stays where it is put, and y is what the ground is.
    const Tensor expected = numbers({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -8, 0, 0}).view({1, 4, 4});
    EXPECT_EQ(largest(J - expected), 0);
  }
}

TEST_F(PointMassGradientTest, HasTheOneSidedGradientOfATouchThatTiesSelects) {
  // y + dt v_y_next = 0 without a force.
  const Tensor touching = numbers({0, 0.375, 0.5, -2}).view({1, 4});
  const double h = 1e-7;
  for (const auto formulation : kFormulations) {
    const auto slope = [&](const char* ties) {
      SolveOptions options;
      options.ties = ties;
      return jacobians(after_a_step(dyadic_mass(), {formulation, Stabilization::kPosition}, options), touching)[0]
          .slice(1, 1, 2)
          .squeeze(1);
    };
    const auto next = after_a_step(dyadic_mass(), {formulation, Stabilization::kPosition});
    const Tensor dy = numbers({0, h, 0, 0});
    const Tensor above = ((next(touching + dy) - next(touching)) / h).squeeze(0);
    const Tensor below = ((next(touching) - next(touching - dy)) / h).squeeze(0);
    EXPECT_LT(largest(slope("inactive") - above), 1e-6);
    EXPECT_LT(largest(slope("active") - below), 1e-6);
    EXPECT_LT(largest(slope("midpoint") - (above + below) / 2), 1e-6);
    EXPECT_GT(largest(above - below), 1);
  }
}

TEST_F(PointMassGradientTest, SmoothsTheGradientOfAMassThatSticks) {
  SolveOptions smooth;
  smooth.kappa = 1e-2;
  for (const auto formulation : kFormulations) {
    const auto next = [&](const Tensor& mu) {
      PointMass mass = dyadic_mass();
      mass.mu = mu.squeeze(-1);
      const PointMassState state{numbers({0, 0}), numbers({0.25, 0})};
      return step(state, numbers({0, 0}), mass, {formulation, Stabilization::kPosition}, smooth)
          .step.next.velocity.expand({1, 2});
    };
    EXPECT_LT(jacobians(next, numbers({0.5}).view({1, 1}))[0][0][0].item<double>(), -1e-4);
  }
}

// Certificates.

// Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008: a particle that
// falls from 3 m, pushed by 5 N, lands and slides.
PointMassSolution falls_and_slides(const Tensor& mu) {
  PointMass mass = PointMass::of(1, 0.05, 0, 9.81);
  mass.mu = mu;
  return simulate({numbers({0, 3}), numbers({0, 0})}, numbers({5, 0}).expand({100, 2}), mass);
}

TEST_F(PointMassGradientTest, DependsOnFrictionWhereItSlides) {
  const Tensor mu = number(0.2).requires_grad_();
  const auto step = falls_and_slides(mu).step;
  const Tensor force = step.lambda_n / 0.05, v = step.next.velocity.select(-1, 0), x = step.next.position.select(-1, 0);
  EXPECT_EQ((step.lambda_n > 0).nonzero()[0].item<std::int64_t>() + 1, 16);  // the step in which it lands
  EXPECT_LT(largest(force.slice(0, 15, 18) - numbers({134.16, 32.61, 9.81})), 0.005);
  EXPECT_LT(largest(v.slice(0, 14, 17) - numbers({3.75, 2.6584, 2.5823})), 5e-5);
  EXPECT_NEAR(x[-1].item<double>(), 38.95475, 5e-6);
  EXPECT_NEAR(v[-1].item<double>(), 15.19, 0.005);
  EXPECT_NEAR(step.lambda_minus[-1].item<double>() / 0.05, 1.962, 1e-12);
  const Tensor last = torch::autograd::grad({x[-1]}, {mu}, {}, true)[0];
  EXPECT_NEAR(last.item<double>(), -120.851, 5e-4);
  const auto track = [](const Inputs& in) { return falls_and_slides(in[0]).step.next.position.select(-1, 0); };
  EXPECT_LT(testing::gradient_error(track, {number(0.2)}), 1e-6);
}

// For mu > 0.5963 it sticks when it lands, so that its track does not depend on mu: the exact gradient is 0.
TEST_F(PointMassGradientTest, DoesNotDependOnFrictionWhereItSticksAtOnce) {
  const auto effect = [](double value) {
    const Tensor mu = number(value).requires_grad_();
    const Tensor x = falls_and_slides(mu).step.next.position.select(-1, 0);
    // v' dx/dmu is linear in v, so its gradient in v is dx/dmu.
    const Tensor v = torch::ones_like(x).requires_grad_();
    const Tensor product = torch::autograd::grad({x}, {mu}, {v}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({product}, {v})[0].norm().item<double>();
  };
  EXPECT_NEAR(effect(0.2), 539.995, 1e-3);
  EXPECT_NEAR(effect(0.596), 3.09, 0.01);
  EXPECT_EQ(effect(0.5965), 0);
  EXPECT_EQ(effect(1), 0);
}

TEST_F(PointMassGradientTest, CountsUnsolvedTiedAndKinkedSteps) {
  const Tensor position = numbers({
                                      0, 1,     // lands in step 4, sticks at once, rests
                                      0, 1,     // the same at the edge of sticking
                                      0, 0.75,  // touches in step 3, lands in step 4
                                      0, 0,     // carried by its input to the last newton
                                      0, 0,     // slides
                                      0, 8,     // flies
                                      0, 1,     // has no velocity
                                  })
                              .view({7, 2});
  const Tensor velocity = numbers({0.5, 0, 1, 0, 0.5, 0, 0, 0, 6, 0, 1, 0, NAN, 0}).view({7, 2});
  Tensor u = torch::zeros({6, 7, 2}, torch::kDouble);
  y_of(u.select(1, 3)).fill_(8);
  for (const auto formulation : kFormulations) {
    const PointMassOptions options{formulation, Stabilization::kPosition};
    const auto rollout = simulate({position, velocity}, u, dyadic_mass(), options);
    const auto certificate = certify_rollout({position, velocity}, u, dyadic_mass(), options, rollout);
    EXPECT_EQ(list(certificate.unsolved), (List{0, 0, 0, 0, 0, 0, 6}));
    EXPECT_EQ(list(certificate.tied), (List{6, 6, 6, 6, 0, 6, 0}));
    EXPECT_EQ(list(certificate.kinked), (List{0, 1, 1, 6, 0, 0, 0}));
  }
}

TEST_F(PointMassGradientTest, CountsTheKinkOfARestitution) {
  // -e v_y where it falls, 0 where it rises: both meet at rest.
  const PointMassOptions options{Formulation::kStewartTrinkle, Stabilization::kVelocity};
  const PointMassState rest{numbers({0, 0}), numbers({0, 0})};
  const Tensor u = torch::zeros({1, 2}, torch::kDouble);
  const auto kinked = [&](double restitution) {
    const PointMass mass = dyadic_mass(0.5, restitution);
    return certify_rollout(rest, u, mass, options, simulate(rest, u, mass, options)).kinked.item<std::int64_t>();
  };
  EXPECT_EQ(kinked(0), 0);
  EXPECT_EQ(kinked(0.5), 1);
}

TEST_F(PointMassGradientTest, CallsAStepTiedWithinATolerance) {
  const PointMassState state{numbers({0, 0}), numbers({0.5 + 1e-8, 0})};
  const Tensor u = torch::zeros({1, 2}, torch::kDouble);
  const auto rollout = simulate(state, u, dyadic_mass());
  EXPECT_EQ(certify_rollout(state, u, dyadic_mass(), {}, rollout).kinked.item<std::int64_t>(), 0);
  EXPECT_EQ(certify_rollout(state, u, dyadic_mass(), {}, rollout, 1e-6).kinked.item<std::int64_t>(), 1);
}

TEST_F(PointMassGradientTest, CallsATouchKinkedWithinEveryTolerance) {
  // It arrives at y = 0 but for the rounding of q_0.
  const PointMass mass = PointMass::of(1, 0.1, 0.5, 9.81);
  const PointMassState state{numbers({0, 0.3}), numbers({1, -3 + 0.981})};
  const Tensor u = torch::zeros({1, 2}, torch::kDouble);
  const auto rollout = simulate(state, u, mass);
  for (const double tolerance : {1e-14, 1e-12, 1e-6, 1e-3}) {
    EXPECT_EQ(certify_rollout(state, u, mass, {}, rollout, tolerance).kinked.item<std::int64_t>(), 1) << tolerance;
  }
  const PointMassState above{numbers({0, 0.3001}), numbers({1, -3 + 0.981})};
  const auto flight = simulate(above, u, mass);
  EXPECT_EQ(certify_rollout(above, u, mass, {}, flight, 1e-6).kinked.item<std::int64_t>(), 0);
  EXPECT_EQ(certify_rollout(above, u, mass, {}, flight, 1e-3).kinked.item<std::int64_t>(), 1);
}

TEST_F(PointMassGradientTest, CallsAStepKinkedWhereItIs) {
  const Tensor grid =
      torch::stack(torch::meshgrid({numbers({0, 0.125, 0.25}), numbers({-1, -0.5, 0, 0.5, 1}),
                                    numbers({-2, -1, 0, 0.5, 1, 2}), numbers({-8, 0, 8}), numbers({-8, 0, 8, 16})},
                                   "ij"),
                   -1)
          .view({-1, 5});
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      for (const double restitution : {0.0, 0.5}) {
        if (restitution > 0 && level == Stabilization::kPosition) continue;
        const PointMass mass = dyadic_mass(0.5, restitution);
        const auto state = [&](const Tensor& x) {
          // At velocity level a contact begins with a jump of the velocity, which no derivative describes.
          const Tensor y = level == Stabilization::kVelocity ? grid.select(-1, 0) : x.select(-1, 0);
          return PointMassState{torch::stack({torch::zeros_like(y), y}, -1), x.slice(-1, 1, 3)};
        };
        const auto next = [&](const Tensor& x) {
          const PointMassState s = step(state(x), x.slice(-1, 3), mass, {formulation, level}).step.next;
          return torch::cat({s.position, s.velocity}, -1);
        };
        const Tensor u = grid.slice(-1, 3).unsqueeze(0);
        const auto rollout = simulate(state(grid), u, mass, {formulation, level});
        const Tensor kinked = certify_rollout(state(grid), u, mass, {formulation, level}, rollout).kinked > 0;
        const Slopes slope = slopes(next, grid);
        EXPECT_GT(count(kinked), 20);
        EXPECT_EQ(count(~kinked & (slope.error > 1e-4)), 0)
            << "smooth, but not with this gradient: " << static_cast<int>(level) << " " << restitution;
        EXPECT_EQ(count(kinked & (slope.jump < 1e-4)), 0)
            << "kinked, but smooth: " << static_cast<int>(level) << " " << restitution;
      }
    }
  }
}

}  // namespace lcp::physics::point_mass_gradient_test
