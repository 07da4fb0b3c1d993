// Rollouts with a linear feedback of the state against loops over single steps with the inputs that it makes.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "lcp/physics/compliant_block.h"
#include "lcp/physics/compliant_particle.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/point_mass.h"
#include "lcp/physics/sliding_block.h"
#include "lcp/physics/tripod.h"
#include "lcp/simulate_lcs.h"
#include "support/finite_differences.h"

namespace lcp::physics::feedback_test {
namespace {

using testing::Function;
using testing::Inputs;
using torch::Tensor;

constexpr std::int64_t kSteps = 4;

Tensor normal(std::vector<std::int64_t> shape, double scale = 1) { return scale * torch::randn(shape, torch::kDouble); }

Tensor numbers(std::vector<double> x) { return torch::tensor(x, torch::kDouble); }

/// The states at the ends of all steps, [steps, ..., k], as functions of the first state, [..., k], u, [steps, ..., m],
/// K, [steps, ..., m, k], and the reference, [steps, ..., k].
struct System {
  std::string name;
  Tensor x;
  std::int64_t m;
  Function closed;
  std::function<Tensor(const Tensor& x, const Tensor& u)> step;
};

// A system whose state is a pose and a velocity of `size` numbers each.
template <class State, class Simulate>
System of_poses(std::string name, const Tensor& x, std::int64_t m, const Simulate& simulate) {
  const auto state_of = [](const Tensor& both) {
    const auto half = both.chunk(2, -1);
    return State{half[0], half[1]};
  };
  const auto ends = [](const State& next) {
    const auto& [pose, velocity] = next;
    return torch::cat({pose, velocity}, -1);
  };
  const Function closed = [=](const Inputs& in) {
    return ends(simulate(state_of(in[0]), in[1], Feedback<State>{in[2], state_of(in[3])}).step.next);
  };
  const auto step = [=](const Tensor& now, const Tensor& u) {
    return ends(simulate(state_of(now), u.unsqueeze(0), std::nullopt).step.next)[0];
  };
  return {std::move(name), x, m, closed, step};
}

template <class Simulate>
System of_velocities(std::string name, const Tensor& v, const Simulate& simulate) {
  const Function closed = [=](const Inputs& in) {
    return simulate(in[0], in[1], Feedback<Tensor>{in[2], in[3]}).step.v_next;
  };
  const auto step = [=](const Tensor& now, const Tensor& u) {
    return simulate(now, u.unsqueeze(0), std::nullopt).step.v_next[0];
  };
  return {std::move(name), v, v.size(-1), closed, step};
}

std::vector<System> systems() {
  std::vector<System> all;
  const SolveOptions by_loop = [] {
    SolveOptions options;
    options.method = "lemke";
    return options;
  }();
  for (const SolveOptions& options : {SolveOptions(), by_loop}) {
    const std::string by = " by " + std::string(options.method);
    all.push_back(of_velocities("planar block" + by, numbers({2, 1}), [=](const auto&... x) {
      const auto planar = [&](const Tensor& v, const Tensor& u, const std::optional<Feedback<Tensor>>& feedback) {
        return simulate(v, u, PlanarBlock::of(2, 0.1, 0.3, 9.81), {}, options, feedback);
      };
      return planar(x...);
    }));
    all.push_back(of_poses<PointMassState>("point mass" + by, numbers({0, 0.05, 2, -1}), 2, [=](const auto&... x) {
      const auto mass = [&](const PointMassState& state, const Tensor& u,
                            const std::optional<Feedback<PointMassState>>& feedback) {
        return simulate(state, u, PointMass::of(2, 0.1, 0.3, 9.81), {}, options, feedback);
      };
      return mass(x...);
    }));
    all.push_back(of_poses<TripodState>("tripod" + by, numbers({0, 0, 0.3, 0.5, -0.2, 2}), 3, [=](const auto&... x) {
      const auto tripod = [&](const TripodState& state, const Tensor& u,
                              const std::optional<Feedback<TripodState>>& feedback) {
        return simulate(state, u, Tripod::of(2, 0.01, 0.01, 0.3, 9.81), 8, options, feedback);
      };
      return tripod(x...);
    }));
  }
  const CompliantGround ground = CompliantGround::of(0.3, 1e4, 0.05);
  const auto compliant = [&](const std::string& name, const Tensor& x, const auto& body) {
    all.push_back(of_poses<CompliantState>(name, x, 3, [=](const auto&... given) {
      const auto roll_out = [&](const CompliantState& state, const Tensor& u,
                                const std::optional<Feedback<CompliantState>>& feedback) {
        return simulate(state, u, body, ContactOptions{}, feedback);
      };
      return roll_out(given...);
    }));
  };
  compliant("particle", numbers({0, 0, -1e-3, 1, 0.5, -0.2}), CompliantParticle::of(2, 0.01, 9.81, ground));
  compliant("block", numbers({0, 0.099, 0.01, 1, -1, 0}), CompliantBlock::of(2, 0.4, 0.2, 0.01, 9.81, ground));
  return all;
}

Inputs inputs_of(const System& system) {
  const std::int64_t k = system.x.size(-1);
  return {system.x, normal({kSteps, system.m}), normal({kSteps, system.m, k}, 0.2),
          system.x + normal({kSteps, k}, 0.1)};
}

Tensor loop(const System& system, const Inputs& in) {
  std::vector<Tensor> ends;
  Tensor x = in[0];
  for (std::int64_t s = 0; s < kSteps; ++s) {
    x = system.step(x, in[1][s] + torch::matmul(in[2][s], in[3][s] - x));
    ends.push_back(x);
  }
  return torch::stack(ends);
}

class FeedbackTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

TEST_F(FeedbackTest, IsThatOfALoopOfSteps) {
  for (const System& system : systems()) {
    SCOPED_TRACE(system.name);
    const Inputs in = inputs_of(system);
    EXPECT_TRUE(torch::allclose(system.closed(in), loop(system, in), 1e-9, 1e-9));
  }
}

TEST_F(FeedbackTest, HasTheDerivativesOfDifferences) {
  for (const System& system : systems()) {
    SCOPED_TRACE(system.name);
    const Inputs in = inputs_of(system);
    EXPECT_LT(testing::gradient_error(system.closed, in), 1e-6);
    EXPECT_LT(testing::second_gradient_error(system.closed, in), 1e-5);
  }
}

TEST_F(FeedbackTest, HoldsASlidingBlockAtASpeed) {
  const SlidingBlock block = SlidingBlock::of(2, 0.1, 0.3, 9.81);
  const Tensor u = torch::full({200}, 0.3 * 2 * 9.81, torch::kDouble), v = torch::zeros({}, torch::kDouble);
  const Feedback<Tensor> feedback = {torch::full({1, 1}, 4., torch::kDouble), torch::full({}, 1.5, torch::kDouble)};
  const auto rollout = simulate(v, u, block, SlidingBlockFormulation::kTraditional, {}, feedback);
  EXPECT_NEAR(rollout.step.v_next[-1].item<double>(), 1.5, 1e-9);
  SolveOptions by_loop;
  by_loop.method = "lemke";
  const auto looped = simulate(v, u, block, SlidingBlockFormulation::kTraditional, by_loop, feedback);
  EXPECT_TRUE(torch::allclose(looped.step.v_next, rollout.step.v_next, 1e-12, 1e-12));
  EXPECT_LT(looped.residual.max().item<double>(), 1e-9);
}

TEST_F(FeedbackTest, IsTakenByALinearComplementaritySystem) {
  const Tensor one = torch::ones({1, 1}, torch::kDouble), none = torch::zeros({1}, torch::kDouble);
  // x_next = x + u while that is positive.
  const LinearComplementaritySystem system = {0 * one, 0 * one, 0 * one, one, none, one, one, one, none};
  const Function closed = [&](const Inputs& in) {
    return simulate_lcs(system, in[0], in[1], {}, Feedback<Tensor>{in[2], in[3]}).x_next;
  };
  const Inputs in = {normal({1}).abs() + 1, normal({kSteps, 1}, 0.1), normal({kSteps, 1, 1}, 0.2), normal({kSteps, 1})};
  Tensor x = in[0];
  std::vector<Tensor> ends;
  for (std::int64_t s = 0; s < kSteps; ++s) {
    x = torch::relu(x + in[1][s] + in[2][s][0] * (in[3][s] - x));
    ends.push_back(x);
  }
  EXPECT_TRUE(torch::allclose(closed(in), torch::stack(ends), 1e-12, 1e-12));
  EXPECT_LT(testing::gradient_error(closed, in), 1e-7);
  EXPECT_LT(testing::second_gradient_error(closed, in), 1e-6);
}

TEST_F(FeedbackTest, NamesWhatDoesNotFit) {
  const SlidingBlock block = SlidingBlock::of(2, 0.1, 0.3, 9.81);
  const Tensor u = torch::zeros({3}, torch::kDouble), v = torch::zeros({}, torch::kDouble);
  const auto message = [&](const Tensor& K, const Tensor& reference) -> std::string {
    try {
      simulate(v, u, block, SlidingBlockFormulation::kTraditional, {}, Feedback<Tensor>{K, reference});
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  EXPECT_EQ(message(torch::ones({1, 2}), v), "K must be [1, 1] or [3, ..., 1, 1]; got [1, 2]");
  EXPECT_EQ(message(torch::ones({1, 1}), torch::zeros({2})), "reference must be [] or [3, ...]; got [2]");
}

}  // namespace
}  // namespace lcp::physics::feedback_test
