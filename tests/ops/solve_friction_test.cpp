#include "lcp/solve_friction.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lcp/certify_friction.h"
#include "lcp/friction_problem.h"
#include "lcp/solve.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp {
namespace {

using testing::everywhere;
using testing::Inputs;
using testing::largest;
using testing::numbers;
using torch::Tensor;

enum class State { kApart, kSlide, kStick };

const std::vector<State> kEveryState = {State::kApart, State::kSlide, State::kStick};

FrictionResult solve_these(const Inputs& x, const FrictionOptions& options = {}) {
  return solve_friction(x[0], x[1], x[2], x[3], x[4], options);
}

Tensor motion_and_impulses(const Tensor& v, const Tensor& gamma) { return torch::cat({v, gamma}, -1); }

// A, v_free, J, b and mu of a problem whose contacts are in chosen states, and its solution.
struct KnownProblem {
  Inputs inputs;
  Tensor v, gamma;
};

// One contact of a body of 1 kg in the coordinates of the contact, which moves along the angle.
Inputs one_contact(double speed, double angle, double v_n, double mu) {
  const Tensor one = torch::eye(3, torch::kDouble);
  return {one, numbers({speed * std::cos(angle), speed * std::sin(angle), v_n}), one, numbers({0, 0, 0}),
          numbers({mu})};
}

// tests/python/test_solve_friction.py has the rest; here each C++ function is held to known solutions and to
// differences.
class SolveFrictionTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(2); }

  static KnownProblem make(const std::vector<State>& states, std::int64_t batch, std::int64_t n) {
    const auto c = static_cast<std::int64_t>(states.size());
    const auto random = [&](std::initializer_list<std::int64_t> shape) { return torch::randn(shape, torch::kDouble); };
    const Tensor B = random({batch, n, n}), v = random({batch, n}), J = random({batch, 3 * c, n});
    const Tensor A = torch::matmul(B, B.mT()) / n + torch::eye(n, torch::kDouble);
    const Tensor mu = 0.3 + 0.5 * torch::rand({batch, c}, torch::kDouble);
    std::vector<Tensor> u, gamma;
    for (std::int64_t k = 0; k < c; ++k) {
      const Tensor turn = random({batch}), push = 0.5 + random({batch}).abs(), zero = torch::zeros_like(turn);
      const Tensor direction = torch::stack({turn.cos(), turn.sin(), zero}, -1);
      const Tensor normal = torch::stack({zero, zero, zero + 1}, -1);
      const double slip = states[k] == State::kStick ? 0 : 0.8, opening = states[k] == State::kApart ? 0.6 : 0;
      const double used = states[k] == State::kSlide ? 1 : 0.5;  // of the friction that is possible
      u.push_back(slip * direction + opening * normal);
      gamma.push_back(states[k] == State::kApart
                          ? torch::zeros_like(normal)
                          : push.unsqueeze(-1) * (normal - used * mu.select(1, k).unsqueeze(-1) * direction));
    }
    const auto joined = [&](const std::vector<Tensor>& x) {
      return c == 0 ? torch::zeros({batch, 0}, torch::kDouble) : torch::cat(x, -1);
    };
    const Tensor all_u = joined(u), all_gamma = joined(gamma);
    const auto times = [](const Tensor& matrix, const Tensor& x) { return matrix.matmul(x.unsqueeze(-1)).squeeze(-1); };
    const Tensor v_free = v - torch::linalg_solve(A, times(J.mT(), all_gamma));
    return {{A, v_free, J, all_u - times(J, v), mu}, v, all_gamma};
  }
};

TEST_F(SolveFrictionTest, FindsTheMotionAndItsDerivativesInEveryState) {
  const FrictionOptions exact = {.tolerance = 1e-14};
  const auto value = [&](const Inputs& x) {
    const FrictionResult result = solve_these(x, exact);
    return motion_and_impulses(result.v, result.gamma);
  };
  for (const auto& states : {std::vector<State>{}, {State::kApart}, {State::kSlide}, {State::kStick}, kEveryState}) {
    const std::int64_t n = states.size() == 3 ? 9 : 3;
    const auto [inputs, v, gamma] = make(states, 2, n);
    const FrictionResult result = solve_these(inputs);
    EXPECT_TRUE(everywhere(result.status == static_cast<int>(Status::kSolved)));
    EXPECT_LE(largest(motion_and_impulses(result.v - v, result.gamma - gamma)), 1e-9);
    const FrictionCertificate certificate =
        certify_friction(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], result.v, result.gamma);
    EXPECT_LE(largest(certificate.residual), 1e-10);
    EXPECT_TRUE(everywhere((certificate.margin > 0) & certificate.unique));
    EXPECT_LE(testing::gradient_error(value, inputs), 1e-6);
    EXPECT_LE(testing::second_gradient_error(value, inputs), 1e-5);
  }
}

TEST_F(SolveFrictionTest, ASmoothedDerivativeSeesAContactThatIsNotMade) {
  Inputs inputs = one_contact(0, 0, -0.1, 0);
  inputs[3] = numbers({0, 0, 0.3});  // a gap
  inputs[1].requires_grad_();
  const double kappa = 0.01, q = 0.2;
  const Tensor v = solve_these(inputs, {.kappa = kappa}).v;
  EXPECT_TRUE(torch::equal(v, inputs[1]));
  const Tensor slope = torch::autograd::grad({v[2]}, {inputs[1]})[0];
  EXPECT_NEAR(slope[2].item<double>(), (1 + q / std::sqrt(q * q + 4 * kappa)) / 2, 1e-9);
}

// A body that slides along t1, which dry friction of a row holds, or slows as far as it may.
TEST_F(SolveFrictionTest, TakesRowsBesideContacts) {
  const Inputs x = one_contact(1, 0, -1, 0.3);
  const auto with = [](double upper) {
    return FrictionRows{numbers({1, 0, 0}).view({1, 3}), {}, numbers({-upper}), numbers({upper})};
  };
  FrictionOptions options;
  options.rows = with(2);
  const FrictionResult held = solve_these(x, options);
  EXPECT_EQ(held.status.item<int>(), 0);
  EXPECT_LT(largest(held.v), 1e-15);
  EXPECT_LT(largest(held.gamma[0] + held.gamma[3] - numbers({-1})), 1e-15);  // both hold it
  options.rows = with(0.5);
  const FrictionResult slows = solve_these(x, options);
  EXPECT_LT(largest(slows.v - numbers({0.2, 0, 0})), 1e-15);
  EXPECT_LT(largest(slows.gamma - numbers({-0.3, 0, 1, -0.5})), 1e-15);
  const FrictionCertificate found =
      certify_friction(x[0], x[1], x[2], x[3], x[4], slows.v, slows.gamma, {}, options.rows);
  EXPECT_LT(found.residual.item<double>(), 1e-15);
  EXPECT_EQ(found.rank.item<int>(), 4);
  options.rows->lower = Tensor();
  EXPECT_THROW(solve_these(x, options), c10::Error);
}

TEST_F(SolveFrictionTest, APyramidIsExactAlongItsDirectionsAndDifferentiable) {
  constexpr double kTurn = 0.4, kPi = 3.14159265358979323846;
  const auto pyramid = [](const Inputs& x, const FrictionDirections& directions) {
    const auto [M, q] = friction_problem(x[0], x[1], x[2], x[3], x[4], directions);
    const auto [v, gamma] = friction_motion(x[0], x[1], x[2], solve(M, q).z, directions);
    return motion_and_impulses(v, gamma);
  };
  const Inputs sliding = one_contact(1, kTurn, -1, 0.5);
  const FrictionResult cone = solve_these(sliding);
  const Tensor exact = motion_and_impulses(cone.v, cone.gamma);
  for (const std::int64_t count : {3, 4, 7}) {  // friction acts against the motion
    EXPECT_LE(largest(pyramid(sliding, {count, kTurn + kPi}) - exact), 1e-9) << count;
  }
  EXPECT_GT(largest(pyramid(sliding, {4, kTurn + kPi / 4}) - exact), 0.05);
  const FrictionDirections directions = {.count = 5, .angle = 0.2};
  const Inputs inputs = make(kEveryState, 1, 9).inputs;
  const auto value = [&](const Inputs& x) { return pyramid(x, directions); };
  EXPECT_LE(testing::gradient_error(value, inputs), 1e-5);
  EXPECT_LE(testing::second_gradient_error(value, inputs), 1e-4);
}

TEST_F(SolveFrictionTest, SaysWhatItCannotDo) {
  const KnownProblem made = make(kEveryState, 3, 9);
  Inputs bad = made.inputs;
  bad[4] = bad[4].clone();
  bad[4][1][0] = -0.1;
  const FrictionResult result = solve_these(bad), good = solve_these(made.inputs);
  EXPECT_EQ(result.status[1].item<int>(), static_cast<int>(Status::kBadInput));
  EXPECT_TRUE(everywhere(result.v[1].isnan()) && everywhere(result.gamma[1].isnan()));
  for (const std::int64_t b : {0, 2}) EXPECT_TRUE(torch::equal(result.v[b], good.v[b]));
  EXPECT_TRUE(
      everywhere(solve_these(made.inputs, {.max_iterations = 0}).status == static_cast<int>(Status::kPivotLimit)));
  const Tensor one = torch::eye(3, torch::kDouble);  // between two walls that approach each other
  const FrictionResult none =
      solve_friction(one, one[0], torch::cat({one, -one}), -torch::ones(6, torch::kDouble), numbers({1, 1}));
  EXPECT_EQ(none.status.item<int>(), static_cast<int>(Status::kInfeasible));
}

TEST_F(SolveFrictionTest, RefusesWhatDoesNotFit) {
  const Inputs x = one_contact(1, 0, -1, 0.5);
  EXPECT_NE(testing::error_of([&] {
              solve_friction(x[0], x[1], x[2], x[3], numbers({1, 1}));
            }).find("mu must be [..., c] with J's c = 1; got [2]"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] {
              friction_problem(x[0], x[1], x[2], x[3], x[4], {.count = 2});
            }).find("directions must be >= 3; got 2"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] {
              friction_motion(x[0], x[1], x[2], torch::ones(5, torch::kDouble));
            }).find("z must be [..., 6] for 1 contacts with 4 directions; got [5]"),
            std::string::npos);
}

}  // namespace
}  // namespace lcp
