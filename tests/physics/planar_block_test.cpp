#include "lcp/physics/planar_block.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/functional/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "lcp/physics/friction_cone.h"
#include "physics/planar_block_options.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::planar_block_test {

using testing::count;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;
using Formulation = PlanarBlockFormulation;

Tensor unit_vectors(std::int64_t b) { return torch::nn::functional::normalize(torch::randn({b, 2}, torch::kDouble)); }

// Blocks whose free velocity is `ratio` times what friction can take, moved there from elsewhere by the input.
struct Push {
  Tensor v, u, free;
};

Push push(std::int64_t b, const Tensor& ratio, const PlanarBlock& block) {
  const Tensor S = block.dt * block.mu * block.gravity;
  const Tensor free = unit_vectors(b) * (ratio * S).view({-1, 1});
  const Tensor v = unit_vectors(b) * S * torch::rand({b, 1}, torch::kDouble) * 6;
  return {v, (free - v) * block.mass / block.dt, free};
}

// The same with one ratio, from a velocity that has a positive component along the free velocity but is not parallel to
// it.
Push push_ahead(std::int64_t b, double ratio, const PlanarBlock& block) {
  const Tensor S = block.dt * block.mu * block.gravity;
  const Tensor angle = torch::rand({b}, torch::kDouble) * 2 * std::numbers::pi;
  const Tensor turn = torch::rand({b}, torch::kDouble) + 0.1;
  const Tensor free = ratio * S * torch::stack({angle.cos(), angle.sin()}, -1);
  const Tensor v = 2 * S * torch::stack({(angle + turn).cos(), (angle + turn).sin()}, -1);
  return {v, (free - v) * block.mass / block.dt, free};
}

class PlanarBlockTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(11); }
};

// The exact direction.

TEST_F(PlanarBlockTest, IsExactWithTheDirectionOfTheFreeVelocity) {
  for (const double dt : {1.0, 0.1, 0.01}) {
    const PlanarBlock block{torch::rand({3000}, torch::kDouble) * 4.8 + 0.2, number(dt),
                            torch::rand({3000}, torch::kDouble) * 1.5, number(9.81)};
    const Tensor limit = (block.mu * block.mass * 9.81).unsqueeze(-1);
    const Tensor v = torch::randn({3000, 2}, torch::kDouble) * dt * 10;
    const Tensor u = torch::randn({3000, 2}, torch::kDouble) * limit;
    const PlanarBlockStep exact = exact_step(v, u, block);
    EXPECT_GT(count((exact.v_next == 0).all(-1)), 300);
    EXPECT_LT(count((exact.v_next == 0).all(-1)), 2700);
    for (const int n : kNumbersOfDirections) {
      const auto solution = step(v, u, block, options_of(Formulation::kExactDirection, n));
      EXPECT_TRUE((solution.status == 0).all().item<bool>());
      EXPECT_LT(largest(solution.step.v_next - exact.v_next), 1e-12) << n;
      EXPECT_LT(largest((solution.step.force - exact.force) / (limit + 1)), 1e-12) << n;
      EXPECT_TRUE(torch::equal((solution.step.v_next == 0).all(-1), (exact.v_next == 0).all(-1)));
      EXPECT_TRUE((solution.passes == 1).all().item<bool>());
      EXPECT_TRUE(solution.converged.all().item<bool>());
    }
  }
}

TEST_F(PlanarBlockTest, MovesAndHoldsAsCoulombSays) {
  const PlanarBlock block = PlanarBlock::of(2.5, 0.1, 0.3, 9.81);
  const double limit = 0.3 * 2.5 * 9.81;
  const Push p = push(3000, torch::rand({3000}, torch::kDouble) * 3, block);
  const PlanarBlockStep next = exact_step(p.v, p.u, block);
  EXPECT_LT(largest(2.5 * (next.v_next - p.v) / 0.1 - p.u - next.force), 1e-11);
  EXPECT_LE(next.force.norm(2, -1).max().item<double>(), limit * (1 + 1e-12));
  const Tensor speed = next.v_next.norm(2, -1, true);
  const Tensor sliding = (speed > 0).squeeze(-1);
  ASSERT_GT(count(sliding), 1000);
  EXPECT_LT(largest((next.force + limit * next.v_next / speed).index({sliding})), 1e-11);
  EXPECT_TRUE(torch::equal(sliding, p.free.norm(2, -1) > 0.1 * 0.3 * 9.81));
}

TEST_F(PlanarBlockTest, PosesForcesBesideVelocities) {
  const PlanarBlock block{torch::rand({5}, torch::kDouble) + 0.5, number(0.1), number(0.4), number(9.81)};
  const Tensor v = torch::randn({5, 2}, torch::kDouble);
  const Tensor u = torch::randn({5, 2}, torch::kDouble) * 5;
  const Tensor t = unit_vectors(5);
  const int n = 6;
  const Problem problem = direction_problem(v, u, t, block, n);
  const Tensor z = torch::rand({5, n}, torch::kDouble);
  const Tensor w = torch::matmul(problem.M, z.unsqueeze(-1)).squeeze(-1) + problem.q;
  const Tensor D = friction_directions(n, torch::kDouble);
  const Tensor free = v + 0.1 / block.mass.unsqueeze(-1) * u;
  const Tensor expected = (block.mass / 0.1).unsqueeze(-1) *
                          (z - torch::matmul(free, D) + 0.1 * 0.4 * 9.81 * torch::matmul(t, D).clamp_min(0));
  EXPECT_LT(largest(w - expected), 1e-12);
  EXPECT_LT(largest(read_direction(v, u, z, block).v_next - torch::matmul(z, D.t()) * 4 / n), 1e-15);
}

TEST_F(PlanarBlockTest, HoldsABlockWithoutDirection) {
  const PlanarBlock block = dyadic_block();
  const Tensor rest = torch::zeros({2}, torch::kDouble);
  const Problem problem = direction_problem(rest, rest, rest, block, 8);
  // S in every direction.
  EXPECT_TRUE(torch::equal(problem.q, torch::full({8}, 8.0, torch::kDouble)));
}

// The fixed-point scheme of the notes.

TEST_F(PlanarBlockTest, ContractsByWhatFrictionTakesOverWhatItLeaves) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  for (const auto& [ratio, passes] : std::vector<std::pair<double, int>>{{2.5, 30}, {4, 16}, {10, 9}}) {
    const Push p = push_ahead(50, ratio, block);
    const Tensor exact = p.free / p.free.norm(2, -1, true);
    const auto error = [&](int made) { return (step(p.v, p.u, block, passes_of(made)).direction - exact).norm(2, -1); };
    EXPECT_LT(largest(error(passes) / error(passes - 1) * (ratio - 1) - 1), 0.05) << ratio;
  }
}

TEST_F(PlanarBlockTest, ConvergesWhereTheFreeSpeedIsTwiceWhatFrictionTakes) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  for (const double ratio : {1.05, 1.3, 1.6, 1.9}) {
    const Push p = push_ahead(100, ratio, block);
    const auto solution = step(p.v, p.u, block, passes_of(200));
    EXPECT_EQ(count(solution.converged), 0) << ratio;
    EXPECT_TRUE((solution.passes == 200).all().item<bool>());
    EXPECT_GT((solution.step.v_next - exact_step(p.v, p.u, block).v_next).norm(2, -1).min().item<double>(), 1e-6);
  }
  for (const auto& [ratio, passes] : std::vector<std::pair<double, int>>{{2.5, 73}, {4, 28}, {10, 15}}) {
    const Push p = push_ahead(100, ratio, block);
    const auto solution = step(p.v, p.u, block, passes_of(200));
    EXPECT_EQ(count(solution.converged), 100) << ratio;
    EXPECT_NEAR(static_cast<double>(solution.passes.max().item<std::int64_t>()), passes, 5) << ratio;
    EXPECT_LT(largest(solution.step.v_next - exact_step(p.v, p.u, block).v_next), 1e-12);
  }
  // Slowly where it is only just so.
  const Push slow = push_ahead(100, 2.1, block);
  EXPECT_EQ(count(step(slow.v, slow.u, block, passes_of(200)).converged), 0);
  EXPECT_EQ(count(step(slow.v, slow.u, block, passes_of(400)).converged), 100);
}

TEST_F(PlanarBlockTest, ConvergesInTwoPassesWhereTheBlockIsThrownBack) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  const Push p = push_ahead(300, 1.3, block);
  // No d_i has a positive component along both -v* and v*, so that the first pass has no friction and finds v*.
  const auto solution = step(-p.free, (p.free + p.free) / 0.1, block, passes_of(30));
  EXPECT_TRUE((solution.passes == 2).all().item<bool>());
  EXPECT_TRUE(solution.converged.all().item<bool>());
  EXPECT_LT(largest(solution.step.v_next - p.free * (1 - 1 / 1.3)), 1e-12);
}

TEST_F(PlanarBlockTest, ConvergesInAFewRelaxedPassesWhereverItSlides) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  for (const int n : kNumbersOfDirections) {
    for (const double ratio : {1.05, 1.3, 2.0, 4.0, 10.0}) {
      const Push p = push_ahead(300, ratio, block);
      const auto solution = step(p.v, p.u, block, passes_of(300, true, n));
      EXPECT_EQ(count(solution.converged), 300) << n << " " << ratio;
      EXPECT_LT(largest(solution.step.v_next - exact_step(p.v, p.u, block).v_next), 1e-12);
      EXPECT_LE(solution.passes.median().item<std::int64_t>(), 8) << n << " " << ratio;
      if (ratio >= 4) {
        EXPECT_LE(solution.passes.max().item<std::int64_t>(), 8) << n << " " << ratio;
      }
    }
  }
}

TEST_F(PlanarBlockTest, ReportsThePassesOfEachElement) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  const Push p = push_ahead(6, 4, block);
  const Push slow = push_ahead(6, 1.5, block);
  const Tensor v = torch::cat({p.v, slow.v});
  const Tensor u = torch::cat({p.u, slow.u});
  for (const bool relaxed : {false, true}) {
    const auto together = step(v, u, block, passes_of(12, relaxed));
    for (int i = 0; i < 12; ++i) {
      const auto alone = step(v[i], u[i], block, passes_of(12, relaxed));
      const auto passes = alone.passes.item<std::int64_t>();
      EXPECT_EQ(together.passes[i].item<std::int64_t>(), passes);
      EXPECT_EQ(together.converged[i].item<bool>(), alone.converged.item<bool>());
      if (!alone.converged.item<bool>()) {
        EXPECT_EQ(passes, 12);
      }
      // That many passes and no fewer.
      EXPECT_EQ(step(v[i], u[i], block, passes_of(passes, relaxed)).converged.item<bool>(),
                alone.converged.item<bool>());
      if (passes > 1) {
        EXPECT_FALSE(step(v[i], u[i], block, passes_of(passes - 1, relaxed)).converged.item<bool>());
      }
    }
  }
}

TEST_F(PlanarBlockTest, HasConvergedWhereTheDirectionStays) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.2, 9.81);
  const Push p = push_ahead(100, 4, block);
  const Tensor exact = p.free / p.free.norm(2, -1, true);
  for (const double tolerance : {1e-2, 1e-6}) {
    PlanarBlockOptions options = passes_of(200);
    options.direction_tolerance = tolerance;
    const auto solution = step(p.v, p.u, block, options);
    EXPECT_TRUE(solution.converged.all().item<bool>());
    EXPECT_LT(largest((solution.direction - exact).norm(2, -1)), 2 * tolerance);
    EXPECT_GT(largest((solution.direction - exact).norm(2, -1)), tolerance / 10);
  }
}

TEST_F(PlanarBlockTest, LagsBehindByThePassesThatItSpares) {
  struct Case {
    double dt;
    int passes;
    double least, most;
  };
  // Measured: 0.238, 0.0638, 0.00126, 3e-13; 0.0511, 0.00222, 2.5e-7.
  for (const Case& c :
       {Case{0.1, 1, 0.236, 0.240}, Case{0.1, 2, 0.063, 0.065}, Case{0.1, 5, 0.0012, 0.0014}, Case{0.1, 30, 0, 1e-11},
        Case{0.02, 1, 0.050, 0.052}, Case{0.02, 2, 0.0021, 0.0023}, Case{0.02, 5, 0, 1e-5}}) {
    const PlanarBlock block = PlanarBlock::of(1, c.dt, 0.2, 9.81);
    const Tensor t = torch::arange(std::lround(4 / c.dt), torch::kDouble) * c.dt;
    const Tensor u = 3 * torch::stack({(2 * t).cos(), (2 * t).sin()}, -1);
    const Tensor v = numbers({2, 0});
    const auto rollout = simulate(v, u, block, passes_of(c.passes));
    const double error = largest(rollout.step.v_next - exact_rollout(v, u, block));
    EXPECT_GE(error, c.least) << c.dt << " " << c.passes;
    EXPECT_LE(error, c.most) << c.dt << " " << c.passes;
    EXPECT_LT(largest(simulate(v, u, block).step.v_next - exact_rollout(v, u, block)), 1e-12);
  }
}

// The polyhedral cone.

TEST_F(PlanarBlockTest, PosesThePolyhedralCone) {
  const PlanarBlock block{torch::rand({5}, torch::kDouble) + 0.5, number(0.1), number(0.4), number(9.81)};
  const Tensor v = torch::randn({5, 2}, torch::kDouble);
  const Tensor u = torch::randn({5, 2}, torch::kDouble) * 5;
  const int n = 6;
  const Problem problem = polyhedral_problem(v, u, block, n);
  const Tensor z = torch::rand({5, n + 1}, torch::kDouble);
  const Tensor w = torch::matmul(problem.M, z.unsqueeze(-1)).squeeze(-1) + problem.q;
  const Tensor D = friction_directions(n, torch::kDouble);
  const Tensor force = torch::matmul(z.slice(1, 0, n), D.t());
  const Tensor v_next = v + 0.1 / block.mass.unsqueeze(-1) * (u + force);
  EXPECT_LT(largest(w.slice(1, 0, n) - torch::matmul(v_next, D) - z.slice(1, n)), 1e-12);
  EXPECT_LT(largest(w.select(1, n) - 0.4 * block.mass * 9.81 + z.slice(1, 0, n).sum(-1)), 1e-12);
  const PlanarBlockStep next = read_polyhedral(z, w);
  EXPECT_LT(largest(next.v_next - v_next), 1e-12);
  EXPECT_LT(largest(next.force - force), 1e-12);
  const Tensor symmetric = problem.M + problem.M.mT();
  EXPECT_GT(torch::linalg_eigvalsh(symmetric, "L").min().item<double>(), -1e-12);
}

TEST_F(PlanarBlockTest, MakesPolygonErrors) {
  const double mass = 1.5;
  const PlanarBlock block = PlanarBlock::of(mass, 0.1, 0.2, 9.81);
  const double S = 0.1 * 0.2 * 9.81;
  const double limit = 0.2 * mass * 9.81;
  const Push p = push(3000, torch::rand({3000}, torch::kDouble).square() * 20, block);
  const PlanarBlockStep exact = exact_step(p.v, p.u, block);
  const Tensor slides = (exact.v_next != 0).any(-1);
  std::int64_t before = 3000;
  for (const int n : kNumbersOfDirections) {
    const auto solution = step(p.v, p.u, block, options_of(Formulation::kPolyhedral, n));
    EXPECT_TRUE((solution.status == 0).all().item<bool>());
    EXPECT_LT(solution.residual.max().item<double>(), 1e-12);
    const Tensor& force = solution.step.force;
    EXPECT_LT(largest(mass * (solution.step.v_next - p.free) / 0.1 - force), 1e-12);

    // A vertex half an angle of the polygon away, at most. Measured for 4, 8, 16, 32, 64: .70, .34, .17, .078, .041.
    const double error = largest((solution.step.v_next - exact.v_next).norm(2, -1)) / S;
    const double half_angle = std::numbers::pi / n;
    EXPECT_LE(error, 2 * std::sin(half_angle / 2) + 1e-12) << n;
    EXPECT_GE(error, 1.6 * std::sin(half_angle / 2)) << n;

    const Tensor moves = (solution.step.v_next != 0).any(-1);
    const Tensor size = force.norm(2, -1);
    const Tensor cosine = (force * exact.force).sum(-1) / (size * exact.force.norm(2, -1));
    EXPECT_GE(cosine.index({slides & moves}).min().item<double>(), std::cos(half_angle) - 1e-12) << n;
    EXPECT_GE(size.index({moves}).min().item<double>(), limit * std::cos(half_angle) * (1 - 1e-12)) << n;
    EXPECT_LE(size.index({moves}).min().item<double>(), limit * std::cos(half_angle) * 1.01) << n;
    EXPECT_LE(size.max().item<double>(), limit * (1 + 1e-12)) << n;

    // What the polygon cannot hold slides: it has n sides at cos(pi / n).
    const Tensor angle = torch::arange(n, torch::kDouble) * (2 * half_angle) + half_angle;
    const Tensor across = torch::matmul(p.free, torch::stack({angle.cos(), angle.sin()})).amax(-1);
    EXPECT_TRUE(torch::equal(moves, across > S * std::cos(half_angle)));
    const std::int64_t wrong = count(slides != moves);
    EXPECT_LE(wrong, before);
    before = wrong;
  }
  EXPECT_LE(before, 3);
  EXPECT_GE(count(slides != (step(p.v, p.u, block, options_of(Formulation::kPolyhedral, 4)).step.v_next != 0).any(-1)),
            60);
}

TEST_F(PlanarBlockTest, RestsExactly) {
  const PlanarBlock block = PlanarBlock::of(1.5, 0.1, 0.2, 9.81);
  const Push p = push(500, torch::rand({500}, torch::kDouble) * 0.7, block);
  for (const auto formulation : {Formulation::kExactDirection, Formulation::kPolyhedral}) {
    const auto solution = step(p.v, p.u, block, options_of(formulation));
    EXPECT_TRUE((solution.step.v_next == 0).all().item<bool>());
    EXPECT_LT(largest(solution.step.force + 15 * p.free), 1e-12);
  }
}

// Shapes, dtypes and batches.

TEST_F(PlanarBlockTest, StepsATrajectoryAsSingleSteps) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn({6, 2}, torch::kDouble);
  const Tensor u = torch::randn({15, 6, 2}, torch::kDouble) * 5;
  for (const auto formulation : kFormulations) {
    const auto rollout = simulate(v, u, block, options_of(formulation));
    Tensor now = v;
    for (int k = 0; k < 15; ++k) {
      const auto next = step(now, u[k], block, options_of(formulation));
      now = next.step.v_next;
      EXPECT_TRUE(torch::equal(rollout.step.v_next[k], now));
      EXPECT_LT(largest(rollout.step.force[k] - next.step.force), 1e-13);
      EXPECT_TRUE(torch::equal(rollout.z[k], next.z));
      EXPECT_TRUE(torch::equal(rollout.status[k], next.status));
      EXPECT_TRUE(torch::equal(rollout.direction[k], next.direction));
      EXPECT_TRUE(torch::equal(rollout.passes[k], next.passes));
      EXPECT_TRUE(torch::equal(rollout.converged[k], next.converged));
    }
    EXPECT_LT(rollout.residual.max().item<double>(), 1e-12);
  }
}

TEST_F(PlanarBlockTest, TakesParametersOfEachElement) {
  const PlanarBlock block{torch::rand({4, 1}, torch::kDouble) + 0.5, number(0.1), torch::rand({3}, torch::kDouble),
                          torch::rand({4, 3}, torch::kDouble) * 5 + 5};
  const Tensor v = torch::randn({4, 3, 2}, torch::kDouble);
  const Tensor u = torch::randn({6, 4, 3, 2}, torch::kDouble) * 5;
  for (const auto formulation : kFormulations) {
    const auto rollout = simulate(v, u, block, options_of(formulation));
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 3; ++j) {
        const PlanarBlock own{block.mass[i][0], block.dt, block.mu[j], block.gravity[i][j]};
        const auto alone = simulate(v[i][j], u.select(1, i).select(1, j), own, options_of(formulation));
        EXPECT_LT(largest(rollout.step.v_next.select(1, i).select(1, j) - alone.step.v_next), 1e-13);
        EXPECT_LT(largest(rollout.step.force.select(1, i).select(1, j) - alone.step.force), 1e-12);
      }
    }
  }
}

TEST_F(PlanarBlockTest, BroadcastsStateInputsAndParameters) {
  // As many parameters as steps: a wrong alignment would go unnoticed by its shape.
  const std::int64_t b = 5;
  const PlanarBlock block{torch::rand({b}, torch::kDouble) + 0.5, number(0.1), torch::rand({b}, torch::kDouble),
                          number(9.81)};
  const Tensor v = torch::randn({2}, torch::kDouble);
  const Tensor u = torch::randn({b, 2}, torch::kDouble) * 5;
  const Tensor wide_v = v.expand({b, 2}).contiguous();
  const Tensor wide_u = u.unsqueeze(1).expand({b, b, 2}).contiguous();
  for (const auto formulation : kFormulations) {
    const PlanarBlockOptions options = options_of(formulation);
    const auto wide = simulate(wide_v, wide_u, block, options);
    for (const auto& [some_v, some_u] : std::vector<std::pair<Tensor, Tensor>>{{v, wide_u}, {wide_v, u}, {v, u}}) {
      const auto rollout = simulate(some_v, some_u, block, options);
      EXPECT_LT(largest(rollout.step.v_next - wide.step.v_next), 1e-13) << static_cast<int>(formulation);
      EXPECT_LT(largest(rollout.step.force - wide.step.force), 1e-12) << static_cast<int>(formulation);
      EXPECT_LT(rollout.residual.max().item<double>(), 1e-12) << static_cast<int>(formulation);
      EXPECT_TRUE(torch::equal(certify_rollout(some_v, some_u, block, options, rollout).kinked,
                               certify_rollout(wide_v, wide_u, block, options, wide).kinked));
    }
  }
}

TEST_F(PlanarBlockTest, KeepsThePrecisionOfItsState) {
  const PlanarBlock block = PlanarBlock::of(1.5, 0.1, 0.3, 9.81);
  const Push p = push(200, torch::rand({200}, torch::kDouble) * 6 + 2.5, block);
  for (const auto formulation : kFormulations) {
    const PlanarBlockOptions options = options_of(formulation);
    const auto exact = step(p.v, p.u, block, options);
    for (const Tensor& u : {p.u, p.u.to(torch::kFloat)}) {
      const auto solution = step(p.v.to(torch::kFloat), u, block, options);
      EXPECT_TRUE((solution.status == 0).all().item<bool>());
      EXPECT_EQ(solution.step.v_next.scalar_type(), torch::kFloat);
      EXPECT_EQ(solution.step.force.scalar_type(), torch::kFloat);
      EXPECT_EQ(solution.direction.scalar_type(), torch::kFloat);
      EXPECT_LT(largest(solution.step.v_next - exact.step.v_next), 1e-4);
    }
    EXPECT_EQ(step(p.v, p.u.to(torch::kFloat), block, options).step.v_next.scalar_type(), torch::kDouble);
    EXPECT_EQ(exact.step.v_next.scalar_type(), torch::kDouble);
    EXPECT_EQ(exact.passes.scalar_type(), torch::kLong);
    EXPECT_EQ(exact.converged.scalar_type(), torch::kBool);
    EXPECT_EQ(exact.status.scalar_type(), torch::kChar);
  }
  EXPECT_EQ(exact_step(p.v.to(torch::kFloat), p.u, block).v_next.scalar_type(), torch::kFloat);
}

TEST_F(PlanarBlockTest, DifferentiatesParametersInTheirOwnPrecision) {
  PlanarBlock block = PlanarBlock::of(1.5, 0.1, 0.3, 9.81);
  const Push p = push(20, torch::full({20}, 3, torch::kDouble), block);
  block.mu.requires_grad_();
  for (const auto formulation : kFormulations) {
    const auto slope = [&](const Tensor& v) {
      return torch::autograd::grad({step(v, p.u, block, options_of(formulation)).step.v_next.sum()}, {block.mu})[0];
    };
    EXPECT_EQ(slope(p.v.to(torch::kFloat)).scalar_type(), torch::kDouble);
    EXPECT_NEAR(slope(p.v.to(torch::kFloat)).item<double>(), slope(p.v).item<double>(), 1e-3);
  }
}

TEST_F(PlanarBlockTest, StepsAnEmptyBatch) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::zeros({0, 2}, torch::kDouble);
  const Tensor u = torch::zeros({3, 0, 2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const PlanarBlockOptions options = options_of(formulation);
    PlanarBlockSolution rollout;
    ASSERT_NO_THROW(rollout = simulate(v, u, block, options));
    EXPECT_EQ(rollout.step.v_next.sizes(), (std::vector<std::int64_t>{3, 0, 2}));
    EXPECT_EQ(rollout.step.force.sizes(), (std::vector<std::int64_t>{3, 0, 2}));
    EXPECT_EQ(certify_rollout(v, u, block, options, rollout).kinked.sizes(), (std::vector<std::int64_t>{0}));
  }
}

TEST_F(PlanarBlockTest, LeavesTheNeighboursOfABrokenElementAlone) {
  const Tensor good_v = torch::randn({5, 2}, torch::kDouble);
  const Tensor good_u = torch::randn({4, 5, 2}, torch::kDouble) * 5;
  const Tensor others = torch::tensor({0, 1, 3, 4});
  for (const auto formulation : kFormulations) {
    const auto run = [&](const Tensor& v, const Tensor& u) {
      const Inputs in{v.clone().requires_grad_(), u.clone().requires_grad_(),
                      torch::full({5}, 1.3, torch::kDouble).requires_grad_(),
                      torch::full({5}, 0.3, torch::kDouble).requires_grad_()};
      const auto rollout = simulate(in[0], in[1], {in[2], number(0.1), in[3], number(9.81)}, options_of(formulation));
      const Tensor healthy = (rollout.status == 0).unsqueeze(-1);
      const Tensor loss = torch::where(healthy, rollout.step.v_next, 0).square().sum();
      Inputs seen = torch::autograd::grad({loss}, in);
      seen[1] = seen[1].transpose(0, 1);
      for (const Tensor& x : {rollout.step.v_next, rollout.step.force, rollout.status}) {
        seen.push_back(x.transpose(0, 1));
      }
      for (Tensor& x : seen) x = x.index_select(0, others);
      return seen;
    };
    Tensor bad_v = good_v.clone();
    bad_v[2][1] = NAN;
    Tensor bad_u = good_u.clone();
    bad_u[1][2][0] = NAN;
    const Inputs good = run(good_v, good_u);
    const std::vector<Inputs> beside_bad = {run(bad_v, good_u), run(good_v, bad_u)};
    for (const Inputs& seen : beside_bad) {
      for (std::size_t i = 0; i < good.size(); ++i) EXPECT_TRUE(torch::equal(seen[i], good[i])) << i;
    }
    EXPECT_EQ(count(simulate(bad_v, good_u, PlanarBlock::of(1, 0.1, 0.3, 9.81), options_of(formulation)).status != 0),
              4);
    EXPECT_EQ(count(simulate(good_v, bad_u, PlanarBlock::of(1, 0.1, 0.3, 9.81), options_of(formulation)).status != 0),
              3);
  }
}

TEST_F(PlanarBlockTest, KeepsABrokenElementOutOfTheGradientOfSharedParameters) {
  const Tensor v = torch::randn({5, 2}, torch::kDouble);
  const Tensor u = torch::randn({4, 5, 2}, torch::kDouble) * 5;
  const Tensor others = torch::tensor({0, 1, 3, 4});
  for (const auto formulation : kFormulations) {
    const auto slopes_of = [&](const Tensor& from, const Tensor& by) {
      const Inputs in{number(1.3).requires_grad_(), number(0.1).requires_grad_(), number(0.3).requires_grad_(),
                      number(9.81).requires_grad_()};
      const auto rollout = simulate(from, by, {in[0], in[1], in[2], in[3]}, options_of(formulation));
      const Tensor healthy = (rollout.status == 0).all(0).unsqueeze(-1);
      return torch::stack(torch::autograd::grad({torch::where(healthy, rollout.step.v_next, 0).square().sum()}, in));
    };
    const Tensor expected = slopes_of(v.index_select(0, others), u.index_select(1, others));
    Tensor bad_v = v.clone();
    bad_v[2][1] = NAN;
    Tensor bad_u = u.clone();
    bad_u[1][2][0] = NAN;
    EXPECT_LT(largest(slopes_of(bad_v, u) - expected), 1e-12) << static_cast<int>(formulation);
    EXPECT_LT(largest(slopes_of(v, bad_u) - expected), 1e-12) << static_cast<int>(formulation);
  }
}

TEST_F(PlanarBlockTest, GivesTheSameBitsInEveryBatch) {
  const PlanarBlock block = PlanarBlock::of(1.3, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn({37, 2}, torch::kDouble);
  const Tensor u = torch::randn({37, 2}, torch::kDouble) * 5;
  for (const auto formulation : kFormulations) {
    for (const int n : {8, 16}) {
      const PlanarBlockOptions options = options_of(formulation, n);
      const auto all = step(v, u, block, options);
      for (const int width : {1, 5, 36}) {
        bool same = true;
        for (int from = 0; from < 37; from += width) {
          const int to = std::min(from + width, 37);
          const auto part = step(v.slice(0, from, to), u.slice(0, from, to), block, options);
          same = same && torch::equal(part.step.v_next, all.step.v_next.slice(0, from, to)) &&
                 torch::equal(part.step.force, all.step.force.slice(0, from, to));
        }
        EXPECT_TRUE(same) << static_cast<int>(formulation) << " " << n << " " << width;
      }
    }
  }
}

TEST_F(PlanarBlockTest, RefusesImpossibleArguments) {
  const PlanarBlock block = PlanarBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::zeros({2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    for (const int n : {-2, 0, 2, 3, 7}) {
      EXPECT_THROW(step(v, v, block, options_of(formulation, n)), c10::Error);
      EXPECT_THROW(simulate(v, v.unsqueeze(0), block, options_of(formulation, n)), c10::Error);
    }
    PlanarBlockOptions options = options_of(formulation);
    options.max_passes = 0;
    EXPECT_THROW(step(v, v, block, options), c10::Error);
    options.max_passes = 1;
    options.direction_tolerance = -1e-9;
    EXPECT_THROW(step(v, v, block, options), c10::Error);
    options.direction_tolerance = NAN;
    EXPECT_THROW(step(v, v, block, options), c10::Error);
    EXPECT_THROW(simulate(v, v, block, options_of(formulation)), c10::Error);
    EXPECT_THROW(simulate(v, torch::zeros({0, 2}, torch::kDouble), block, options_of(formulation)), c10::Error);
  }
  EXPECT_THROW(direction_problem(v, v, v, block, 5), c10::Error);
  EXPECT_THROW(polyhedral_problem(v, v, block, 2), c10::Error);
  EXPECT_THROW(PlanarBlock::of(0, 0.1, 0.3, 9.81), c10::Error);
  EXPECT_THROW(PlanarBlock::of(1, 0, 0.3, 9.81), c10::Error);
  EXPECT_THROW(PlanarBlock::of(1, 0.1, -0.3, 9.81), c10::Error);
  EXPECT_THROW(PlanarBlock::of(1, 0.1, 0.3, -9.81), c10::Error);
  EXPECT_THROW(PlanarBlock::of(1, INFINITY, 0.3, 9.81), c10::Error);
  EXPECT_THROW(PlanarBlock::of(1, 0.1, NAN, 9.81), c10::Error);
}

}  // namespace lcp::physics::planar_block_test
