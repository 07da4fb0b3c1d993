#include "lcp/physics/tripod.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "lcp/physics/friction_cone.h"
#include "support/errors.h"
#include "support/tensors.h"
#include "tripod_blocks.h"

namespace lcp::physics::tripod_test {

using testing::count;
using testing::error_of;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;
using List = std::vector<std::int64_t>;

// The objective that a step minimises, |nu - nu*|_M^2 / 2 + dt mu sum_i N_i s(v_i), with the loads N_i at its end.
struct Objective {
  Tensor free;     // [b, 3]
  Tensor inertia;  // [b, 3]
  Tensor J;        // [b, 3, 2, 3]
  Tensor limit;    // [b, 3], dt mu N_i

  // s(v) is |v|, or max_j -d_j.v of n directions. nu: [..., b, 3].
  Tensor at(const Tensor& nu, int n = 0) const {
    const Tensor v = torch::matmul(J, nu.unsqueeze(-2).unsqueeze(-1)).squeeze(-1);
    const Tensor speed = n == 0 ? v.norm(2, -1) : torch::matmul(v, -friction_directions(n, torch::kDouble)).amax(-1);
    return (inertia * (nu - free).square()).sum(-1) / 2 + (limit * speed).sum(-1);
  }
};

// One element for each row of the state. The loads follow from the forces that led to nu_next.
Objective objective_of(const TripodState& state, const Tensor& u, const Tripod& tripod, const Tensor& nu_next) {
  const Tensor one = torch::ones({nu_next.size(0)}, torch::kDouble);
  const Tensor inertia = torch::stack({one * tripod.mass, one * tripod.mass, one * tripod.inertia}, -1);
  const Tensor dt = (one * tripod.dt).unsqueeze(-1);
  const Tensor free = state.velocity + dt * u / inertia;
  const Tensor arms = arms_of(state.pose.select(-1, 2), tripod.supports);
  const Tensor x = arms.select(-1, 0), y = arms.select(-1, 1);
  const Tensor ones = torch::ones_like(x), zeros = torch::zeros_like(x);
  const Tensor J = torch::stack({torch::stack({ones, zeros, -y}, -1), torch::stack({zeros, ones, x}, -1)}, -2);
  const Tensor force = (inertia * (nu_next - free) / dt).slice(-1, 0, 2);
  const Tensor weight = (one * tripod.mass * tripod.gravity).unsqueeze(-1);
  const Tensor moments = torch::cat({weight, -(one * tripod.com_height).unsqueeze(-1) * force}, -1);
  const Tensor load = torch::linalg_solve(torch::stack({ones, x, y}, -2), moments.unsqueeze(-1)).squeeze(-1);
  return {free, inertia, J, dt * (one * tripod.mu).unsqueeze(-1) * load};
}

// Since f is strongly convex, f(nu + d) >= f(nu) + |d|_M^2 / 2 holds for every d if nu is the minimiser, and for no
// other nu. Returns the largest violation over many d of all sizes, relative to the size of the terms: [b].
Tensor optimality_violation(const Objective& f, const Tensor& nu, int n = 0) {
  Tensor worst = torch::zeros({nu.size(0)}, torch::kDouble);
  for (double scale = 1; scale > 1e-8; scale *= 0.1) {
    const Tensor d = torch::randn({100, nu.size(0), 3}, torch::kDouble) * scale / f.inertia.sqrt();
    const Tensor convexity = (f.inertia * d.square()).sum(-1) / 2;
    const Tensor size = f.at(torch::zeros_like(nu), n) + f.at(nu, n) + convexity;
    worst = torch::maximum(worst, ((f.at(nu, n) + convexity - f.at(nu + d, n)) / size).amax(0));
  }
  return worst;
}

// Loads.

TEST_F(TripodTest, RestsOnThreeLoads) {
  EXPECT_LT(largest(static_normals(block()) - numbers({3.924, 2.943, 2.943})), 1e-14);
  EXPECT_TRUE(torch::equal(static_normals(dyadic_block()), numbers({4, 2, 2})));
  Tripod many = block();
  many.mass = torch::rand({4, 1}, torch::kDouble) + 0.5;
  many.supports = many.supports + torch::randn({5, 3, 2}, torch::kDouble) * 0.005;
  const Tensor N = static_normals(many);
  ASSERT_EQ(N.sizes(), (List{4, 5, 3}));
  EXPECT_LT(largest(N.sum(-1) - many.mass * 9.81), 1e-13);
  EXPECT_LT(largest((N.unsqueeze(-1) * many.supports).sum(-2)), 1e-14);
}

TEST_F(TripodTest, ShiftsItsLoadsByTheMomentOfFriction) {
  for (const double height : {0.0, 0.01, 0.02, 0.03}) {
    const Tripod tripod = block(height);
    const TripodState state = random_states(60, tripod);
    const Tensor u = torch::randn({60, 3}, torch::kDouble) * numbers({1, 1, 0.03});
    const auto solution = step(state, u, tripod);
    EXPECT_TRUE((solution.status == 0).all().item<bool>());
    const Tensor arms = arms_of(state.pose.select(-1, 2), tripod.supports);
    const Tensor moment = (solution.step.normal.unsqueeze(-1) * arms).sum(-2) + height * solution.step.friction.sum(-2);
    EXPECT_LT(largest(solution.step.normal.sum(-1) - 9.81), 1e-12);
    EXPECT_LT(largest(moment), 1e-13);
    EXPECT_GT(solution.step.normal.min().item<double>(), 0.5);
    if (height == 0) {
      EXPECT_LT(largest(solution.step.normal - static_normals(tripod)), 1e-12);
    } else {
      EXPECT_GT(largest(solution.step.normal - static_normals(tripod)), 0.3);
    }
  }
}

TEST_F(TripodTest, RefusesACentreOfMassBesideTheTriangle) {
  Tripod tripod = block();
  tripod.supports = tripod.supports + numbers({0.05, 0});
  EXPECT_LT(static_normals(tripod).min().item<double>(), 0);
  const std::string expected = "supports must carry the centre of mass";
  EXPECT_NE(error_of([&] { step(launched(), none(1)[0], tripod); }).find(expected), std::string::npos);
  EXPECT_NE(error_of([&] { simulate(launched(), none(2), tripod); }).find(expected), std::string::npos);
  // On an edge two supports carry it.
  tripod.supports = numbers({0, 0.05, 0, -0.05, 0.05, 0}).view({3, 2});
  EXPECT_NO_THROW(step(launched(), none(1)[0], tripod));
}

// The problem.

TEST_F(TripodTest, PosesThePolyhedralProblem) {
  const std::int64_t b = 4, n = 6;
  const Tripod tripod{torch::rand({b}, torch::kDouble) + 0.5,
                      torch::rand({b}, torch::kDouble) * 1e-3 + 1e-3,
                      number(0.01),
                      torch::rand({b}, torch::kDouble) * 0.5,
                      number(9.81),
                      block().supports,
                      torch::rand({b}, torch::kDouble) * 0.02};
  const TripodState state{torch::randn({b, 3}, torch::kDouble), torch::randn({b, 3}, torch::kDouble)};
  const Tensor u = torch::randn({b, 3}, torch::kDouble);
  const Problem problem = polyhedral_problem(state, u, tripod, n);
  const Tensor z = torch::rand({b, 3 * n + 3}, torch::kDouble);
  const Tensor w = torch::matmul(problem.M, z.unsqueeze(-1)).squeeze(-1) + problem.q;

  const Tensor D = friction_directions(n, torch::kDouble);
  const Tensor lambda = z.slice(-1, 0, 3 * n).unflatten(-1, {3, n});
  const Tensor slip = z.slice(-1, 3 * n);
  const Tensor force = torch::matmul(lambda, D.t());
  const Tensor arms = arms_of(state.pose.select(-1, 2), tripod.supports);
  const Tensor cross = arms.select(-1, 0) * force.select(-1, 1) - arms.select(-1, 1) * force.select(-1, 0);
  const Tensor wrench = torch::cat({force.sum(-2), cross.sum(-1, true)}, -1);
  const Tensor inertia = torch::stack({tripod.mass, tripod.mass, tripod.inertia}, -1);
  const Tensor nu = state.velocity + 0.01 * (u + wrench) / inertia;
  const Tensor across = torch::stack({-arms.select(-1, 1), arms.select(-1, 0)}, -1);
  const Tensor v = nu.slice(-1, 0, 2).unsqueeze(-2) + nu.slice(-1, 2).unsqueeze(-1) * across;
  EXPECT_LT(largest(w.slice(-1, 0, 3 * n).unflatten(-1, {3, n}) - slip.unsqueeze(-1) - torch::matmul(v, D)), 1e-10);

  const TripodStep next = read_polyhedral(state, u, z, tripod);
  EXPECT_LT(largest(w.slice(-1, 3 * n) - tripod.mu.unsqueeze(-1) * next.normal + lambda.sum(-1)), 1e-12);
  EXPECT_LT(largest(next.friction - force), 1e-14);
  EXPECT_LT(largest(next.next.velocity - nu), 1e-10);
  EXPECT_LT(largest(next.next.pose - state.pose - 0.01 * nu), 1e-12);
  EXPECT_TRUE(torch::equal(next.slip, slip));
}

TEST_F(TripodTest, IsSemidefiniteWithItsCentreOfMassOnTheGround) {
  const auto smallest = [](double height) {
    const Tensor M = polyhedral_problem(launched(), none(1)[0], block(height), 8).M;
    return torch::linalg_eigvalsh(M + M.mT(), "L").min().item<double>();
  };
  EXPECT_GT(smallest(0), -1e-13);
  EXPECT_LT(smallest(0.02), -0.1);
}

// Properties of a step.

TEST_F(TripodTest, MinimisesKineticEnergyAndDissipation) {
  for (const double height : {0.0, 0.02}) {
    const Tripod tripod = block(height);
    for (const int n : {4, 8, 32}) {
      const TripodState state = random_states(90, tripod);
      const Tensor u = torch::randn({90, 3}, torch::kDouble) * numbers({1, 1, 0.02});
      const auto solution = step(state, u, tripod, n);
      const Tensor nu = solution.step.next.velocity;
      const Objective f = objective_of(state, u, tripod, nu);
      EXPECT_LT(largest(optimality_violation(f, nu, n)), 1e-13) << height << " " << n;
      const Tensor sticking = (solution.step.slip == 0).sum(-1);
      for (const int supports : {0, 1, 3}) EXPECT_GT(count(sticking == supports), 5) << supports;

      const Tensor beside = nu + 1e-5 * torch::randn_like(nu) / f.inertia.sqrt();
      EXPECT_GT(optimality_violation(f, beside, n).min().item<double>(), 1e-12);
    }
  }
}

// The forces on a block at rest are not unique: where they reach the limit of a support, its slip may be round-off.
TEST_F(TripodTest, HoldsABlockThatLessFrictionWouldHoldExactly) {
  constexpr std::int64_t kBlocks = 3000;
  std::int64_t slips = 0;
  const auto between = [](double smallest, double largest) {
    return smallest + (largest - smallest) * torch::rand({kBlocks}, torch::kDouble);
  };
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    for (const int n : {4, 8}) {
      Tripod tripod = block();
      tripod.mass = between(0.8, 1.2);
      tripod.mu = between(0.3, 0.4);
      tripod.com_height = between(0, 0.02);
      const Tensor scale = numbers({0.002, 0.002, 0.1}), force = numbers({0.5, 0.5, 0.02});
      const TripodState state{torch::randn({kBlocks, 3}, torch::kDouble).to(dtype),
                              (scale * (2 * torch::rand({kBlocks, 3}, torch::kDouble) - 1)).to(dtype)};
      const Tensor u = force * (2 * torch::rand({kBlocks, 3}, torch::kDouble) - 1);
      const auto solution = step(state, u, tripod, n);
      EXPECT_EQ(count(solution.step.next.velocity != 0), 0) << dtype << " " << n;
      const auto reread = read_polyhedral(state, u, solution.z, tripod);
      EXPECT_EQ(count(reread.next.velocity != 0), 0) << dtype << " " << n;
      slips += count(solution.step.slip != 0);
    }
  }
  EXPECT_GT(slips, 0);
}

TEST_F(TripodTest, HasAnIsotropicStepThatIsAMinimiser) {
  const Tripod tripod = block();
  const TripodState state = random_states(90, tripod);
  const Tensor u = torch::randn({90, 3}, torch::kDouble) * numbers({1, 1, 0.02});
  const Tensor nu = exact_step(state, u, tripod).velocity;
  const Objective f = objective_of(state, u, tripod, nu);
  EXPECT_LT(largest(optimality_violation(f, nu)), 1e-13);
  const Tensor v = torch::matmul(f.J, nu.view({90, 1, 3, 1})).norm(2, {-2, -1});
  EXPECT_GT(count((v < 1e-9).sum(-1) == 1), 10);
  EXPECT_GT(count((nu == 0).all(-1)), 3);
  const Tensor beside = nu + 1e-5 * torch::randn_like(nu) / f.inertia.sqrt();
  EXPECT_GT(optimality_violation(f, beside).min().item<double>(), 1e-12);
}

TEST_F(TripodTest, HasAnIsotropicStepThatShiftsItsLoads) {
  for (const double height : {0.01, 0.02, 0.03}) {
    const Tripod tripod = block(height);
    const TripodState state = random_states(60, tripod);
    const Tensor u = torch::zeros({60, 3}, torch::kDouble);
    const Tensor nu = exact_step(state, u, tripod).velocity;
    EXPECT_LT(largest(optimality_violation(objective_of(state, u, tripod, nu), nu)), 1e-12) << height;
  }
}

TEST_F(TripodTest, ConvergesToTheIsotropicStep) {
  const Tripod tripod = block();
  const TripodState state{torch::randn({60, 3}, torch::kDouble),
                          torch::randn({60, 3}, torch::kDouble) * numbers({0.3, 0.3, 6})};
  const Tensor u = torch::zeros({60, 3}, torch::kDouble);
  const Tensor exact = exact_step(state, u, tripod).velocity;
  const Objective f = objective_of(state, u, tripod, exact);
  const Tensor least = f.at(exact);
  const auto error = [&](int n) {
    const Tensor nu = step(state, u, tripod, n).step.next.velocity;
    // The polygon underestimates a speed, and so f, by a factor of at least cos(pi / n); its minimiser is therefore
    // near.
    const Tensor gap =
        (1 - std::cos(std::numbers::pi / n)) * (least - (f.inertia * (exact - f.free).square()).sum(-1) / 2);
    const Tensor below = least - f.at(nu, n);
    EXPECT_GE(below.min().item<double>(), -1e-12);
    EXPECT_LE((below - gap).max().item<double>(), 1e-12);
    const Tensor distance = (f.inertia * (nu - exact).square()).sum(-1).sqrt();
    EXPECT_LE((distance - (2 * gap).sqrt()).max().item<double>(), 1e-8);
    return distance.mean().item<double>();
  };
  const double coarse = error(8);
  const double fine = error(16);
  const double finer = error(32);
  const double finest = error(64);
  EXPECT_NEAR(coarse / fine, 2, 0.5);
  EXPECT_NEAR(fine / finer, 2, 0.5);
  EXPECT_NEAR(finer / finest, 2, 0.5);
}

TEST_F(TripodTest, HasAnIsotropicStepInDoublePrecisionWithoutGradient) {
  TripodState state{launched().pose.to(torch::kFloat), launched().velocity.to(torch::kFloat).requires_grad_()};
  const TripodState next = exact_step(state, none(1)[0], block());
  EXPECT_EQ(next.velocity.scalar_type(), torch::kDouble);
  EXPECT_FALSE(next.velocity.requires_grad());
  EXPECT_LT(largest(next.pose - 0.005 * next.velocity), 1e-15);
}

// The test case.

TEST_F(TripodTest, StopsWhereTheTestCaseDoes) {
  const auto rollout = simulate(launched(), none(80), block());
  EXPECT_TRUE((rollout.status == 0).all().item<bool>());
  EXPECT_LE(rollout.residual.max().item<double>(), 1e-13);
  const Tensor v = rollout.step.next.velocity;
  EXPECT_GT(largest(v[69]), 0);
  EXPECT_EQ(largest(v.slice(0, 70)), 0);  // t = 0.355
  EXPECT_LT(largest(rollout.step.next.pose[-1] - numbers({0.172465, 0.048428, 1.307901})), 5e-7);

  const Tensor energy = (numbers({1, 1, 0.01 / 6}) * v.square()).sum(-1) / 2;
  EXPECT_LT(energy[0].item<double>(), 0.545 + 0.5 * 64 * 0.01 / 6);
  EXPECT_LT(energy.slice(0, 0, 71).diff().max().item<double>(), 0);

  // The loss of kinetic energy is the work of friction at the supports.
  const Tensor before = torch::cat({launched().velocity.unsqueeze(0), v.slice(0, 0, -1)});
  const Tensor force = (v - before).slice(-1, 0, 2) / 0.005;
  EXPECT_LT(largest(force - rollout.step.friction.sum(-2)), 1e-11);
}

TEST_F(TripodTest, ConvergesInTheDirectionsOfTheTestCase) {
  const auto poses = [](int n) { return simulate(launched(), none(75), block(), n).step.next.pose; };
  const Tensor limit = poses(256);
  EXPECT_LT(largest(limit[-1] - numbers({0.167350, 0.048711, 1.491087})), 5e-7);
  for (const auto& [n, deviation] :
       std::vector<std::pair<int, double>>{{4, 0.249}, {6, 0.283}, {8, 0.183}, {16, 0.053}, {32, 0.039}, {64, 0.008}}) {
    EXPECT_NEAR(largest(poses(n) - limit), deviation, 5e-4) << n;
  }
  EXPECT_NEAR(largest(poses(128) - limit), 6e-4, 5e-5);
  TripodState now = launched();
  for (int k = 0; k < 75; ++k) now = exact_step(now, none(1)[0], block());
  EXPECT_LT(largest(limit[-1] - now.pose), 2e-3);
}

TEST_F(TripodTest, TranslatesWithoutTurning) {
  TripodState state = launched();
  state.velocity = numbers({1, 0, 0});
  for (const int n : {4, 8, 16}) {
    const Tensor v = simulate(state, none(60), block(), n).step.next.velocity;
    const Tensor expected = 1 - torch::arange(1, 61, torch::kDouble) * (0.33 * 9.81 * 0.005);
    EXPECT_LT(largest(v.select(-1, 0) - expected), 1e-14);
    EXPECT_LT(largest(v.slice(-1, 1)), 2e-13);
  }
}

TEST_F(TripodTest, TurnsAboutItsCentreOfMass) {
  TripodState state = launched();
  state.velocity = numbers({0, 0, 8});
  const Tripod tripod = block();
  const double arm = (static_normals(tripod) * tripod.supports.norm(2, -1)).sum().item<double>();
  const double slowed = 0.005 * 0.33 * arm / (0.01 / 6);
  EXPECT_NEAR(slowed, 0.443432, 5e-7);
  const auto slowed_by = [&](int n) {
    const Tensor v = step(state, none(1)[0], tripod, n).step.next.velocity;
    return 8 - v[2].item<double>();
  };
  EXPECT_NEAR(slowed_by(256), slowed, 1.5e-6);
  EXPECT_NEAR(slowed_by(8), 0.44264, 5e-6);
  // Its friction moves the centre of mass a little, and with it the point that it turns about.
  EXPECT_NEAR(8 - exact_step(state, none(1)[0], tripod).velocity[2].item<double>(), slowed, 2e-8);
}

TEST_F(TripodTest, SolvesEveryStepOfARaisedBlock) {
  for (const double height : {0.01, 0.02, 0.03}) {
    const auto rollout = simulate(launched(), none(90), block(height));
    EXPECT_TRUE((rollout.status == 0).all().item<bool>());
    EXPECT_LE(rollout.residual.max().item<double>(), 1e-13);
    EXPECT_EQ(largest(rollout.step.next.velocity[-1]), 0);
    EXPECT_GT(rollout.step.normal.min().item<double>(), 0);
    EXPECT_GT(largest(rollout.step.next.pose[-1] - numbers({0.172465, 0.048428, 1.307901})), 1e-3);
  }
}

TEST_F(TripodTest, StepsATrajectoryAsSingleSteps) {
  const Tripod tripod = block(0.01);
  TripodState now = random_states(6, tripod);
  const Tensor u = torch::randn({10, 6, 3}, torch::kDouble) * numbers({2, 2, 0.05});
  const auto rollout = simulate(now, u, tripod, 6);
  for (int k = 0; k < 10; ++k) {
    const auto next = step(now, u[k], tripod, 6);
    now = next.step.next;
    EXPECT_TRUE(torch::equal(rollout.step.next.pose[k], now.pose));
    EXPECT_TRUE(torch::equal(rollout.step.next.velocity[k], now.velocity));
    EXPECT_TRUE(torch::equal(rollout.step.friction[k], next.step.friction));
    EXPECT_TRUE(torch::equal(rollout.step.normal[k], next.step.normal));
    EXPECT_TRUE(torch::equal(rollout.step.slip[k], next.step.slip));
    EXPECT_TRUE(torch::equal(rollout.z[k], next.z));
    EXPECT_TRUE(torch::equal(rollout.residual[k], next.residual));
    EXPECT_TRUE(torch::equal(rollout.status[k], next.status));
  }
}

}  // namespace lcp::physics::tripod_test
