#include "lcp/physics/point_mass.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lcp/solve_mixed.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::point_mass_test {

using testing::count;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;
using Formulation = PointMassFormulation;
using List = std::vector<std::int64_t>;

constexpr auto kFormulations = {Formulation::kStewartTrinkle, Formulation::kBelbutePeres};
constexpr auto kLevels = {Stabilization::kPosition, Stabilization::kVelocity};

Tensor uniform(const std::vector<std::int64_t>& shape, double low, double high) {
  return torch::rand(shape, torch::kDouble) * (high - low) + low;
}
Tensor times(const Tensor& M, const Tensor& x) { return torch::matmul(M, x.unsqueeze(-1)).squeeze(-1); }
Tensor x_of(const Tensor& a) { return a.select(-1, 0); }
Tensor y_of(const Tensor& a) { return a.select(-1, 1); }

// Steps of all kinds: flight, impact, sliding, sticking, reversal.
struct Steps {
  PointMassState state;
  Tensor u;
  PointMass mass;
};

Steps random_steps(std::int64_t b, double dt, Stabilization level) {
  const double weight = 9.81 * dt;
  const PointMass mass{uniform({b}, 0.2, 5), number(dt), uniform({b}, 0, 1.5), number(9.81),
                       level == Stabilization::kVelocity ? uniform({b}, 0, 1) : number(0)};
  const Tensor y =
      level == Stabilization::kVelocity ? torch::randn({b}, torch::kDouble) - 0.7 : uniform({b}, 0, 3) * weight * dt;
  return {{torch::stack({torch::randn({b}, torch::kDouble), y}, -1), torch::randn({b, 2}, torch::kDouble) * 2 * weight},
          torch::randn({b, 2}, torch::kDouble) * mass.mass.unsqueeze(-1) * 9.81,
          mass};
}

// The start of the mass, which is dropped or thrown, in the simulations of [Notes, 2.7]: at (0, 1) with (3, 0).
PointMassState thrown() { return {numbers({0, 1}), numbers({3, 0})}; }

// m = 1, g dt = 1, so that hand-made states have no round-off.
PointMass dyadic_mass(double mu = 0.5, double restitution = 0) { return PointMass::of(1, 0.125, mu, 8, restitution); }

class PointMassTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(13); }
};

// The problems.

TEST_F(PointMassTest, PosesTheMixedMatrixOfTheNotes) {
  const Steps s = random_steps(1, 0.1, Stabilization::kVelocity);
  const MixedProblem form = stewart_trinkle_problem(s.state, s.u, s.mass, Stabilization::kVelocity);
  const double m = s.mass.mass.item<double>();
  const double mu = s.mass.mu.item<double>();
  const Tensor printed = numbers({m,  0, 0,  -1, 1,  0,  //
                                  0,  m, -1, 0,  0,  0,  //
                                  0,  1, 0,  0,  0,  0,  //
                                  1,  0, 0,  0,  0,  1,  //
                                  -1, 0, 0,  0,  0,  1,  //
                                  0,  0, mu, -1, -1, 0})
                             .view({1, 6, 6});
  const auto wide = [](const Tensor& x) { return x.expand({1, x.size(-2), x.size(-1)}); };
  EXPECT_TRUE(torch::equal(
      torch::cat({torch::cat({wide(form.A), wide(form.B)}, -1), torch::cat({wide(form.C), wide(form.M)}, -1)}, -2),
      printed));
  EXPECT_LT(largest(form.p + m * s.state.velocity + 0.1 * (s.u + numbers({0, -m * 9.81}))), 1e-13);
  EXPECT_TRUE(torch::equal(form.q.slice(-1, 1), torch::zeros({1, 3}, torch::kDouble)));
}

TEST_F(PointMassTest, ClosesTheGapOrRebounds) {
  const Steps s = random_steps(500, 0.1, Stabilization::kVelocity);
  const Tensor y = y_of(s.state.position);
  const Tensor position = stewart_trinkle_problem(s.state, s.u, s.mass, Stabilization::kPosition).q.select(-1, 0);
  EXPECT_LT(largest(position - y / 0.1), 1e-13);
  const Tensor velocity = stewart_trinkle_problem(s.state, s.u, s.mass, Stabilization::kVelocity).q.select(-1, 0);
  const Tensor rebound = s.mass.restitution * y_of(s.state.velocity).clamp_max(0);
  EXPECT_TRUE(torch::equal(velocity.index({y <= 0}), rebound.index({y <= 0})));
  EXPECT_GT(count(y > 0), 50);
  const PointMassStep next = exact_step(s.state, s.u, s.mass, Stabilization::kVelocity);
  EXPECT_EQ(largest(next.lambda_n.index({y > 0})), 0);
}

TEST_F(PointMassTest, PosesTheFormOfBelbutePeres) {
  const Steps s = random_steps(4, 0.1, Stabilization::kVelocity);
  const MixedProblem form = belbute_peres_problem(s.state, s.u, s.mass, Stabilization::kVelocity);
  const Tensor G = numbers({0, 1, 1, 0, -1, 0, 0, 0}).view({4, 2});
  EXPECT_TRUE(torch::equal(form.A, s.mass.mass.view({4, 1, 1}) * torch::eye(2, torch::kDouble)));
  EXPECT_TRUE(torch::equal(form.B, G.t()));
  EXPECT_TRUE(torch::equal(form.C, -G));
  for (int i = 0; i < 4; ++i) {
    const double mu = s.mass.mu[i].item<double>();
    EXPECT_TRUE(torch::equal(form.M[i], numbers({0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, mu, -1, -1, 0}).view({4, 4})));
  }
  const Tensor weight = torch::stack({torch::zeros({4}, torch::kDouble), -s.mass.mass * 9.81}, -1);
  EXPECT_LT(largest(form.p - s.mass.mass.unsqueeze(-1) * s.state.velocity - 0.1 * (s.u + weight)), 1e-13);
  EXPECT_TRUE(torch::equal(form.q, stewart_trinkle_problem(s.state, s.u, s.mass, Stabilization::kVelocity).q));
}

TEST_F(PointMassTest, EliminatesTheVelocities) {
  const Steps s = random_steps(50, 0.1, Stabilization::kPosition);
  const MixedProblem form = stewart_trinkle_problem(s.state, s.u, s.mass);
  const Problem reduced = reduced_problem(s.state, s.u, s.mass);
  const Tensor inverse = torch::linalg_inv(form.A);
  const Tensor M = form.M - torch::matmul(form.C, torch::matmul(inverse, form.B));
  const Tensor q = form.q - times(form.C, times(inverse, form.p));
  EXPECT_LT(largest(reduced.M - M), 1e-14);
  EXPECT_LT(largest(reduced.q - q), 1e-13);
}

TEST_F(PointMassTest, HasACopositiveP0MatrixThatIsNotSemidefinite) {
  const Steps s = random_steps(300, 0.1, Stabilization::kPosition);
  const Tensor N = reduced_problem(s.state, s.u, s.mass).M;
  const Tensor z = torch::rand({300, 4}, torch::kDouble);
  const Tensor l = z.select(-1, 0), slip = z.select(-1, 1) - z.select(-1, 2);
  const Tensor form = (l.square() + slip.square()) / s.mass.mass + s.mass.mu * z.select(-1, 3) * l;
  EXPECT_LT(largest((z * times(N, z)).sum(-1) - form), 1e-12);

  for (int subset = 1; subset < 16; ++subset) {
    std::vector<std::int64_t> kept;
    for (int i = 0; i < 4; ++i) {
      if (subset >> i & 1) kept.push_back(i);
    }
    const Tensor rows = torch::tensor(kept);
    const Tensor minor = torch::linalg_det(N.index_select(1, rows).index_select(2, rows));
    EXPECT_GE(minor.min().item<double>(), -1e-12) << subset;
  }

  const Tensor halves = reduced_problem(thrown(), numbers({0, 0}), PointMass::of(1, 0.1, 0.5, 9.81)).M;
  EXPECT_NEAR(torch::linalg_eigvalsh((halves + halves.t()) / 2, "L").min().item<double>(), -0.059, 5e-4);
  // Not copositive-plus: z'Nz = 0 does not make (N + N')z = 0.
  const Tensor slack = numbers({0, 0, 0, 1});
  EXPECT_EQ((slack * times(halves, slack)).sum().item<double>(), 0);
  EXPECT_EQ(largest(times(halves + halves.t(), slack)), 0.5);
}

// A Q0-matrix has a solution wherever there is a z >= 0 with w >= 0; here z = (2 / mu, 0, 0, 0) is one.
TEST_F(PointMassTest, HasAMatrixWhoseFeasibleProblemsMayHaveNoSolution) {
  const PointMass mass = PointMass::of(1, 1, 0.5, 8);
  const Tensor M = reduced_problem({numbers({0, 0}), numbers({0, 0})}, numbers({0, 0}), mass).M;
  const Tensor q = numbers({1, 0, 0, -1});
  EXPECT_GE((times(M, numbers({4, 0, 0, 0})) + q).min().item<double>(), 0);
  EXPECT_EQ(solve(M, q).status.item<std::int8_t>(), static_cast<std::int8_t>(Status::kNotFound));
}

// Exactness.

TEST_F(PointMassTest, AgreesWithTheExactStepInEveryForm) {
  for (const double dt : {1.0, 0.1, 0.01}) {
    for (const auto level : kLevels) {
      const Steps s = random_steps(5000, dt, level);
      const PointMassStep exact = exact_step(s.state, s.u, s.mass, level);
      const Tensor slides = x_of(exact.next.velocity) != 0;
      EXPECT_GT(count(exact.lambda_n == 0), 500);
      EXPECT_GT(count((exact.lambda_n > 0) & slides), 500);
      EXPECT_GT(count((exact.lambda_n > 0) & ~slides), 500);
      const auto agrees = [&](const PointMassStep& next) {
        const Tensor friction = next.lambda_plus - next.lambda_minus;
        EXPECT_LT(largest(next.next.velocity - exact.next.velocity), 1e-12 * std::max(1.0, 100 * dt));
        EXPECT_LT(largest(next.next.position - exact.next.position), 1e-12 * std::max(1.0, 100 * dt));
        EXPECT_LT(largest(next.lambda_n - exact.lambda_n), 1e-12 * std::max(1.0, 500 * dt));
        EXPECT_LT(largest(friction - exact.lambda_plus + exact.lambda_minus), 1e-12 * std::max(1.0, 500 * dt));
        EXPECT_TRUE(torch::equal((x_of(next.next.velocity) == 0), ~slides));
      };
      for (const auto formulation : kFormulations) {
        const auto solution = step(s.state, s.u, s.mass, {formulation, level});
        EXPECT_TRUE((solution.status == 0).all().item<bool>());
        EXPECT_LT(solution.residual.max().item<double>(), 1e-11);
        agrees(solution.step);
      }
      const MixedProblem form = stewart_trinkle_problem(s.state, s.u, s.mass, level);
      const MixedResult mixed = solve_mixed(form.A, form.B, form.C, form.M, form.p, form.q);
      EXPECT_TRUE((mixed.status == 0).all().item<bool>());
      agrees(read_point_mass(s.state, s.u, mixed.z, mixed.w, s.mass, level));
      EXPECT_LT(largest(mixed.x - exact.next.velocity), 1e-12 * std::max(1.0, 100 * dt));
    }
  }
}

TEST_F(PointMassTest, ObeysNewtonSignoriniAndCoulomb) {
  for (const auto level : kLevels) {
    const Steps s = random_steps(3000, 0.1, level);
    const Tensor m = s.mass.mass.unsqueeze(-1);
    for (const PointMassStep& next : {exact_step(s.state, s.u, s.mass, level),
                                      step(s.state, s.u, s.mass, {Formulation::kStewartTrinkle, level}).step}) {
      const Tensor friction = next.lambda_plus - next.lambda_minus;
      const Tensor impulse = torch::stack({friction, next.lambda_n}, -1);
      const Tensor weight = torch::stack({torch::zeros_like(s.mass.mass), -s.mass.mass * 9.81}, -1);
      EXPECT_LT(largest(m * (next.next.velocity - s.state.velocity) - 0.1 * (s.u + weight) - impulse), 1e-11);
      EXPECT_LT(largest(next.next.position - s.state.position - 0.1 * next.next.velocity), 1e-13);
      EXPECT_GE(next.lambda_n.min().item<double>(), 0);
      EXPECT_LE((friction.abs() - s.mass.mu * next.lambda_n).max().item<double>(), 1e-11);
      const Tensor v_x = x_of(next.next.velocity);
      const Tensor moving = (v_x != 0) & (next.lambda_n > 0);
      EXPECT_LT(largest((friction + v_x.sign() * s.mass.mu * next.lambda_n).index({moving})), 1e-11);
      EXPECT_LT(largest((next.gamma - v_x.abs()).index({next.lambda_n > 0})), 1e-12);
      const Tensor pressed = next.lambda_n > 0;
      if (level == Stabilization::kVelocity) {
        const Tensor before = y_of(s.state.velocity).clamp_max(0);
        EXPECT_LT(largest((y_of(next.next.velocity) + s.mass.restitution * before).index({pressed})), 1e-13);
      } else {
        EXPECT_LT(largest(y_of(next.next.position).index({pressed})), 1e-15);
        EXPECT_GE(y_of(next.next.position).min().item<double>(), -1e-15);
      }
    }
  }
}

TEST_F(PointMassTest, HasOneVelocityForSeveralBasicSolutions) {
  const Steps s = random_steps(400, 0.1, Stabilization::kPosition);
  const Problem problem = reduced_problem(s.state, s.u, s.mass);
  const Tensor exact = exact_step(s.state, s.u, s.mass).next.velocity;
  Tensor first = torch::full({400, 4}, NAN, torch::kDouble);
  Tensor several = torch::zeros({400}, torch::kBool);
  for (int subset = 0; subset < 16; ++subset) {
    const Tensor in = torch::tensor({subset & 1, subset >> 1 & 1, subset >> 2 & 1, subset >> 3 & 1}, torch::kDouble);
    // Rows of the basis have w_i = 0, the others z_i = 0.
    const Tensor system = in.view({4, 1}) * problem.M + torch::diag(1 - in);
    const Tensor regular = torch::linalg_det(system).abs() > 1e-9;
    const Tensor safe = torch::where(regular.view({-1, 1, 1}), system, torch::eye(4, torch::kDouble));
    const Tensor z = torch::linalg_solve(safe, (-in * problem.q).unsqueeze(-1)).squeeze(-1);
    const Tensor w = times(problem.M, z) + problem.q;
    const Tensor solves = regular & (torch::minimum(z, w).amin(-1) > -1e-12);
    const Tensor v_next = read_point_mass(s.state, s.u, z.clamp_min(0), w.clamp_min(0), s.mass).next.velocity;
    EXPECT_LT(largest(torch::where(solves.unsqueeze(-1), v_next - exact, 0)), 1e-12) << subset;
    several |= solves & ((z - first).abs().amax(-1) > 1e-6);
    first = torch::where((solves & first.isnan().any(-1)).unsqueeze(-1), z, first);
  }
  EXPECT_FALSE(first.isnan().any().item<bool>());
  EXPECT_GT(count(several), 50);
}

// Simulations.

TEST_F(PointMassTest, LandsSlidesAndStopsAtPositionLevel) {
  const PointMass mass = PointMass::of(1, 0.01, 0.5, 9.81);
  const Tensor u = torch::zeros({400, 2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const auto rollout = simulate(thrown(), u, mass, {formulation, Stabilization::kPosition});
    EXPECT_TRUE((rollout.status == 0).all().item<bool>());
    const Tensor impulse = rollout.step.lambda_n;
    EXPECT_EQ(largest(impulse.slice(0, 0, 44)), 0);  // lands in step 45
    EXPECT_NEAR(impulse[44].item<double>(), 1.5335, 5e-5);
    EXPECT_NEAR(impulse[45].item<double>(), 2.9791, 5e-5);
    EXPECT_LT(largest(impulse.slice(0, 46) - 0.0981), 1e-12);
    EXPECT_NEAR(impulse.sum().item<double>(), 39.24, 1e-11);
    const Tensor friction = rollout.step.lambda_plus - rollout.step.lambda_minus;
    EXPECT_NEAR(friction.sum().item<double>(), -3, 1e-12);
    EXPECT_LE((friction.abs() - 0.5 * impulse).max().item<double>(), 1e-14);
    const Tensor v_x = x_of(rollout.step.next.velocity);
    EXPECT_EQ(v_x[43].item<double>(), 3);
    EXPECT_NEAR(v_x[44].item<double>(), 2.23325, 5e-6);
    EXPECT_NEAR(v_x[45].item<double>(), 0.7437, 5e-5);
    EXPECT_GT(v_x[60].item<double>(), 0);
    EXPECT_EQ(largest(v_x.slice(0, 61)), 0);  // t = 0.62
    EXPECT_NEAR(x_of(rollout.step.next.position)[-1].item<double>(), 1.4024645, 5e-8);
    const Tensor y = y_of(rollout.step.next.position);
    EXPECT_EQ(y.min().item<double>(), 0);
    EXPECT_EQ(largest(y.slice(0, 44)), 0);
    EXPECT_EQ(largest(rollout.step.next.velocity.slice(0, 61)), 0);
  }
}

TEST_F(PointMassTest, SinksByLessThanAStepAtVelocityLevel) {
  const PointMass mass = PointMass::of(1, 0.01, 0.5, 9.81);
  const Tensor u = torch::zeros({400, 2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const auto rollout = simulate(thrown(), u, mass, {formulation, Stabilization::kVelocity});
    EXPECT_EQ(largest(rollout.step.lambda_n.slice(0, 0, 45)), 0);
    EXPECT_GT(rollout.step.lambda_n[45].item<double>(), 1);  // lands in step 46
    const Tensor rest = rollout.step.next.position[-1];
    EXPECT_NEAR(rest[0].item<double>(), 1.410132, 5e-7);
    EXPECT_NEAR(rest[1].item<double>(), -0.015335, 5e-7);
    EXPECT_LT(largest(rollout.step.next.position.slice(0, 100) - rest), 1e-15);
  }
}

TEST_F(PointMassTest, Rebounds) {
  const Tensor u = torch::zeros({400, 2}, torch::kDouble);
  for (const double e : {0.5, 0.8, 1.0}) {
    const PointMass mass = PointMass::of(1, 0.01, 0.2, 9.81, e);
    for (const auto formulation : kFormulations) {
      const auto rollout = simulate(thrown(), u, mass, {formulation, Stabilization::kVelocity});
      const Tensor v = rollout.step.next.velocity;
      const Tensor before = torch::cat({thrown().velocity.unsqueeze(0), v.slice(0, 0, -1)});
      const Tensor impacts = (rollout.step.lambda_n > 0) & (y_of(before) < 0);
      ASSERT_GE(count(impacts), e == 1 ? 4 : 3);
      EXPECT_LT(largest((y_of(v) / (-e * y_of(before)) - 1).index({impacts})), 1e-12);
      const Tensor ratio = (rollout.step.lambda_minus - rollout.step.lambda_plus) / rollout.step.lambda_n;
      const Tensor sliding = impacts & (x_of(v) > 0);
      EXPECT_GE(count(sliding), 1);
      EXPECT_LT(largest(ratio.index({sliding}) - 0.2), 1e-12);
      if (e == 1) {
        EXPECT_LT(largest(y_of(v).index({impacts}) - 4.4145), 1e-11);
        EXPECT_NEAR(y_of(rollout.step.next.position).slice(0, 50).max().item<double>(), 1, 1e-12);
      }
    }
  }
}

TEST_F(PointMassTest, StepsATrajectoryAsSingleSteps) {
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      const PointMass mass = PointMass::of(1.3, 0.05, 0.5, 9.81, level == Stabilization::kVelocity ? 0.6 : 0);
      const Tensor u = torch::randn({30, 6, 2}, torch::kDouble) * 8;
      PointMassState now{torch::rand({6, 2}, torch::kDouble) * 0.5, torch::randn({6, 2}, torch::kDouble)};
      const auto rollout = simulate(now, u, mass, {formulation, level});
      EXPECT_GT(count(rollout.step.lambda_n > 0), 30);
      for (int k = 0; k < 30; ++k) {
        const auto next = step(now, u[k], mass, {formulation, level});
        now = next.step.next;
        EXPECT_TRUE(torch::equal(rollout.step.next.position[k], now.position));
        EXPECT_TRUE(torch::equal(rollout.step.next.velocity[k], now.velocity));
        EXPECT_TRUE(torch::equal(rollout.step.lambda_n[k], next.step.lambda_n));
        EXPECT_TRUE(torch::equal(rollout.step.lambda_plus[k], next.step.lambda_plus));
        EXPECT_TRUE(torch::equal(rollout.step.lambda_minus[k], next.step.lambda_minus));
        EXPECT_TRUE(torch::equal(rollout.step.gamma[k], next.step.gamma));
        EXPECT_TRUE(torch::equal(rollout.z[k], next.z));
        EXPECT_TRUE(torch::equal(rollout.status[k], next.status));
      }
      EXPECT_LT(rollout.residual.max().item<double>(), 1e-12);
    }
  }
}

// Shapes, dtypes and batches.

TEST_F(PointMassTest, TakesParametersOfEachElement) {
  for (const auto level : kLevels) {
    const PointMass mass{uniform({4, 1}, 0.5, 2), number(0.05), uniform({3}, 0, 1), uniform({4, 3}, 5, 10),
                         level == Stabilization::kVelocity ? uniform({3}, 0, 1) : torch::zeros({3}, torch::kDouble)};
    const PointMassState state{torch::rand({4, 3, 2}, torch::kDouble) * 0.3, torch::randn({4, 3, 2}, torch::kDouble)};
    const Tensor u = torch::randn({12, 4, 3, 2}, torch::kDouble) * 5;
    for (const auto formulation : kFormulations) {
      const auto rollout = simulate(state, u, mass, {formulation, level});
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 3; ++j) {
          const PointMass own{mass.mass[i][0], mass.dt, mass.mu[j], mass.gravity[i][j], mass.restitution[j]};
          const auto alone = simulate({state.position[i][j], state.velocity[i][j]}, u.select(1, i).select(1, j), own,
                                      {formulation, level});
          const auto mine = [&](const Tensor& x) { return x.select(1, i).select(1, j); };
          EXPECT_LT(largest(mine(rollout.step.next.position) - alone.step.next.position), 1e-13);
          EXPECT_LT(largest(mine(rollout.step.next.velocity) - alone.step.next.velocity), 1e-12);
          EXPECT_LT(largest(mine(rollout.step.lambda_n) - alone.step.lambda_n), 1e-12);
        }
      }
    }
  }
}

TEST_F(PointMassTest, BroadcastsStateInputsAndParameters) {
  // As many parameters as steps: a wrong alignment would go unnoticed by its shape.
  const std::int64_t b = 7;
  const PointMass mass{uniform({b}, 0.5, 2), number(0.05), uniform({b}, 0, 1), number(9.81), number(0)};
  const PointMassState state{numbers({0, 0.05}), numbers({1, -0.5})};
  const PointMassState wide_state{state.position.expand({b, 2}), state.velocity.expand({b, 2})};
  const Tensor u = torch::randn({b, 2}, torch::kDouble) * 5;
  const Tensor wide_u = u.unsqueeze(1).expand({b, b, 2});
  for (const auto formulation : kFormulations) {
    const PointMassOptions options{formulation, Stabilization::kPosition};
    const auto wide = simulate(wide_state, wide_u, mass, options);
    for (const auto& [some_state, some_u] : std::vector<std::pair<PointMassState, Tensor>>{
             {state, wide_u}, {wide_state, u}, {state, u}, {{state.position, wide_state.velocity}, wide_u}}) {
      const auto rollout = simulate(some_state, some_u, mass, options);
      EXPECT_LT(largest(rollout.step.next.position - wide.step.next.position), 1e-13);
      EXPECT_LT(largest(rollout.step.next.velocity - wide.step.next.velocity), 1e-12);
      EXPECT_LT(rollout.residual.max().item<double>(), 1e-12);
      EXPECT_TRUE(torch::equal(certify_rollout(some_state, some_u, mass, options, rollout).kinked,
                               certify_rollout(wide_state, wide_u, mass, options, wide).kinked));
    }
  }
}

TEST_F(PointMassTest, KeepsThePrecisionOfItsState) {
  for (const auto level : kLevels) {
    const Steps s = random_steps(200, 0.1, level);
    const PointMassState single{s.state.position.to(torch::kFloat), s.state.velocity.to(torch::kFloat)};
    for (const auto formulation : kFormulations) {
      const auto exact = step(s.state, s.u, s.mass, {formulation, level});
      for (const Tensor& u : {s.u, s.u.to(torch::kFloat)}) {
        const auto solution = step(single, u, s.mass, {formulation, level});
        EXPECT_TRUE((solution.status == 0).all().item<bool>());
        for (const Tensor& x : {solution.step.next.position, solution.step.next.velocity, solution.step.lambda_n,
                                solution.step.lambda_plus, solution.step.gamma, solution.z, solution.residual}) {
          EXPECT_EQ(x.scalar_type(), torch::kFloat);
        }
        EXPECT_LT(largest(solution.step.next.velocity - exact.step.next.velocity), 2e-5);
        EXPECT_LT(largest(solution.step.next.position - exact.step.next.position), 1e-5);
      }
      EXPECT_EQ(step(s.state, s.u.to(torch::kFloat), s.mass, {formulation, level}).step.next.velocity.scalar_type(),
                torch::kDouble);
    }
    EXPECT_EQ(exact_step(single, s.u, s.mass, level).next.velocity.scalar_type(), torch::kFloat);
    EXPECT_EQ(exact_step(single, s.u, s.mass, level).next.position.scalar_type(), torch::kFloat);
  }
}

TEST_F(PointMassTest, StepsAnEmptyBatch) {
  const PointMass mass = PointMass::of(1, 0.1, 0.5, 9.81);
  const Tensor none = torch::zeros({0, 2}, torch::kDouble);
  const Tensor u = torch::zeros({3, 0, 2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      const auto rollout = simulate({none, none}, u, mass, {formulation, level});
      EXPECT_EQ(rollout.step.next.position.sizes(), (List{3, 0, 2}));
      EXPECT_EQ(rollout.step.lambda_n.sizes(), (List{3, 0}));
      EXPECT_EQ(certify_rollout({none, none}, u, mass, {formulation, level}, rollout).kinked.sizes(), (List{0}));
    }
  }
}

TEST_F(PointMassTest, LeavesTheNeighboursOfABrokenElementAlone) {
  const PointMassState good{torch::rand({5, 2}, torch::kDouble) * 0.2, torch::randn({5, 2}, torch::kDouble)};
  const Tensor good_u = torch::randn({8, 5, 2}, torch::kDouble) * 5;
  const Tensor others = torch::tensor({0, 1, 3, 4});
  for (const auto formulation : kFormulations) {
    for (const auto level : kLevels) {
      const auto run = [&](const PointMassState& state, const Tensor& u, double mass) {
        Tensor masses = torch::full({5}, 1.3, torch::kDouble);
        masses[2] = mass;
        const Inputs in{state.position.clone().requires_grad_(), state.velocity.clone().requires_grad_(),
                        u.clone().requires_grad_(), masses.requires_grad_(),
                        torch::full({5}, 0.3, torch::kDouble).requires_grad_()};
        const auto rollout = simulate({in[0], in[1]}, in[2], {in[3], number(0.05), in[4], number(9.81), number(0)},
                                      {formulation, level});
        const Tensor healthy = (rollout.status == 0).unsqueeze(-1);
        const Tensor loss = torch::where(healthy, rollout.step.next.position, 0).square().sum() +
                            torch::where(healthy, rollout.step.next.velocity, 0).square().sum();
        Inputs seen = torch::autograd::grad({loss}, in);
        seen[2] = seen[2].transpose(0, 1);
        for (const Tensor& x : {rollout.step.next.position, rollout.step.next.velocity, rollout.z, rollout.status}) {
          seen.push_back(x.transpose(0, 1));
        }
        for (Tensor& x : seen) x = x.index_select(0, others);
        seen.push_back((rollout.status != 0).sum(0)[2]);
        return seen;
      };
      PointMassState bad{good.position.clone(), good.velocity.clone()};
      bad.velocity[2][1] = NAN;
      Tensor bad_u = good_u.clone();
      bad_u[1][2][0] = NAN;
      const Inputs healthy = run(good, good_u, 1.3);
      const std::vector<std::pair<Inputs, std::int64_t>> beside_bad = {
          {run(bad, good_u, 1.3), 8}, {run(good, bad_u, 1.3), 7}, {run(good, good_u, NAN), 8}};
      for (const auto& [seen, unsolved] : beside_bad) {
        for (std::size_t i = 0; i + 1 < healthy.size(); ++i) EXPECT_TRUE(torch::equal(seen[i], healthy[i])) << i;
        EXPECT_EQ(seen.back().item<std::int64_t>(), unsolved);
      }
    }
  }
}

TEST_F(PointMassTest, KeepsABrokenElementOutOfTheGradientOfSharedParameters) {
  const PointMassState state{torch::rand({5, 2}, torch::kDouble) * 0.2, torch::randn({5, 2}, torch::kDouble)};
  const Tensor u = torch::randn({8, 5, 2}, torch::kDouble) * 5;
  const Tensor others = torch::tensor({0, 1, 3, 4});
  for (const auto formulation : kFormulations) {
    const auto slopes_of = [&](const Tensor& position, const Tensor& velocity, const Tensor& by) {
      const Inputs in{number(1.3).requires_grad_(), number(0.05).requires_grad_(), number(0.3).requires_grad_(),
                      number(9.81).requires_grad_()};
      const auto rollout = simulate({position, velocity}, by, {in[0], in[1], in[2], in[3], number(0)},
                                    {formulation, Stabilization::kPosition});
      const Tensor healthy = (rollout.status == 0).all(0).unsqueeze(-1);
      return torch::stack(
          torch::autograd::grad({torch::where(healthy, rollout.step.next.velocity, 0).square().sum()}, in));
    };
    const Tensor expected = slopes_of(state.position.index_select(0, others), state.velocity.index_select(0, others),
                                      u.index_select(1, others));
    for (const int y : {0, 1}) {
      Tensor bad = state.velocity.clone();
      bad[2][y] = NAN;
      Tensor bad_u = u.clone();
      bad_u[1][2][y] = NAN;
      EXPECT_LT(largest(slopes_of(state.position, bad, u) - expected), 1e-11) << static_cast<int>(formulation);
      EXPECT_LT(largest(slopes_of(state.position, state.velocity, bad_u) - expected), 1e-11);
    }
    Tensor nowhere = state.position.clone();
    nowhere[2][1] = NAN;
    EXPECT_LT(largest(slopes_of(nowhere, state.velocity, u) - expected), 1e-11) << static_cast<int>(formulation);
  }
}

TEST_F(PointMassTest, GivesTheSameBitsInEveryBatch) {
  for (const auto level : kLevels) {
    const Steps s = random_steps(37, 0.1, level);
    for (const auto formulation : kFormulations) {
      const auto all = step(s.state, s.u, s.mass, {formulation, level});
      for (const int width : {1, 5, 36}) {
        bool same = true;
        for (int from = 0; from < 37; from += width) {
          const auto cut = [&](const Tensor& x) {
            return x.dim() == 0 ? x : x.slice(0, from, std::min(from + width, 37));
          };
          const PointMass own{cut(s.mass.mass), s.mass.dt, cut(s.mass.mu), s.mass.gravity, cut(s.mass.restitution)};
          const auto part = step({cut(s.state.position), cut(s.state.velocity)}, cut(s.u), own, {formulation, level});
          same = same && torch::equal(part.step.next.position, cut(all.step.next.position)) &&
                 torch::equal(part.step.next.velocity, cut(all.step.next.velocity)) && torch::equal(part.z, cut(all.z));
        }
        EXPECT_TRUE(same) << static_cast<int>(formulation) << " " << width;
      }
    }
  }
}

TEST_F(PointMassTest, RefusesImpossibleArguments) {
  const Tensor u = torch::zeros({2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const PointMassOptions position{formulation, Stabilization::kPosition};
    const PointMassOptions velocity{formulation, Stabilization::kVelocity};
    EXPECT_THROW(step(thrown(), u, dyadic_mass(0.5, 0.5), position), c10::Error);
    EXPECT_THROW(simulate(thrown(), u.unsqueeze(0), dyadic_mass(0.5, 0.5), position), c10::Error);
    EXPECT_NO_THROW(step(thrown(), u, dyadic_mass(0.5, 0.5), velocity));
    PointMass some = dyadic_mass();
    some.restitution = numbers({0, 0.1});
    EXPECT_THROW(step(thrown(), u, some, position), c10::Error);
    EXPECT_THROW(simulate(thrown(), u, dyadic_mass(), position), c10::Error);
    EXPECT_THROW(simulate(thrown(), torch::zeros({0, 2}, torch::kDouble), dyadic_mass(), position), c10::Error);
  }
  EXPECT_THROW(PointMass::of(0, 0.1, 0.5, 9.81), c10::Error);
  EXPECT_THROW(PointMass::of(1, -0.1, 0.5, 9.81), c10::Error);
  EXPECT_THROW(PointMass::of(1, 0.1, -0.5, 9.81), c10::Error);
  EXPECT_THROW(PointMass::of(1, 0.1, 0.5, -9.81), c10::Error);
  EXPECT_THROW(PointMass::of(1, 0.1, 0.5, 9.81, -0.1), c10::Error);
  EXPECT_THROW(PointMass::of(1, 0.1, 0.5, 9.81, 1.1), c10::Error);
  EXPECT_THROW(PointMass::of(1, 0.1, 0.5, 9.81, NAN), c10::Error);
  EXPECT_THROW(PointMass::of(NAN, 0.1, 0.5, 9.81), c10::Error);
}

}  // namespace lcp::physics::point_mass_test
