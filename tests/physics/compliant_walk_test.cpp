// Rollouts by lcp::_rollout against loops over lcp::solve_contact.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lcp/physics/compliant_block.h"
#include "lcp/physics/compliant_particle.h"
#include "support/finite_differences.h"

namespace lcp::physics::compliant_walk_test {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

constexpr std::int64_t kCount = 21;
constexpr std::int64_t kSteps = 40;
constexpr std::size_t kInputs = 2;      // the place of the inputs of the steps
constexpr std::size_t kParameters = 3;  // that of the first parameter

/// A body made of its parameters, the inputs from kParameters on.
using Maker = std::function<CompliantProblem(const CompliantState& state, const Tensor& u, const Tensors& inputs)>;

/// Trajectories as functions of the first position and velocity, [count, 3], the inputs of the steps, [steps, count,
/// 3], and the parameters, [count].
struct System {
  std::string name;
  Tensors inputs;
  std::function<CompliantSolution(const Tensors& inputs, const ContactOptions& options)> walk;
  Maker problem;
  std::int64_t contacts;
};

constexpr double kTimeStep = 0.01;

// The same as a walk, as a loop.
CompliantSolution loop(const System& system, const Tensors& in, ContactOptions options) {
  Tensors positions, velocities, impulses, statuses, iterations;
  CompliantState state = {in[0], in[1]};
  for (std::int64_t s = 0; s < in[kInputs].size(0); ++s) {
    const CompliantProblem p = system.problem(state, in[kInputs][s], in);
    options.guess = state.velocity.detach();
    const ContactResult r = solve_contact(p.A, p.v_free, p.J, p.v_hat, p.R, p.mu, options);
    state = {state.position + kTimeStep * r.v, r.v};
    positions.push_back(state.position);
    velocities.push_back(state.velocity);
    impulses.push_back(r.gamma);
    statuses.push_back(r.status);
    iterations.push_back(r.iterations);
  }
  return {{{torch::stack(positions), torch::stack(velocities)}, torch::stack(impulses)},
          torch::stack(statuses),
          torch::stack(iterations)};
}

Tensor numbers_of(const CompliantSolution& all) {
  return torch::cat({all.step.next.position, all.step.next.velocity, all.step.gamma}, -1);
}

Tensor random(std::initializer_list<std::int64_t> shape) { return torch::randn(shape, torch::kDouble); }

Tensor parameter(double smallest, double largest) {
  return smallest + (largest - smallest) * torch::rand({kCount}, torch::kDouble);
}

CompliantGround ground(const Tensors& in, std::size_t first, const RegularizationOptions& regularization) {
  return {in[first], 1e4 * in[first + 1], in[first + 2], regularization};
}

// Particles that fall, slide, stick and are lifted off.
System particle(const RegularizationOptions& regularization) {
  const auto body = [=](const Tensors& in) -> CompliantParticle {
    return {in[3], kTimeStep, in[4], ground(in, 5, regularization)};
  };
  Tensor u = random({kSteps, kCount, 3});
  u.slice(0, 25, 30).select(-1, 2).add_(torch::where(torch::rand({kCount}) < 0.3, 60., 0.));
  const Tensor size = torch::tensor({1., 1., 0.03}, torch::kDouble);
  return {"particle with beta = " + std::to_string(regularization.beta),
          {random({kCount, 3}) * size, random({kCount, 3}) * 0.5, u, parameter(0.5, 2), parameter(5, 10),
           parameter(0.2, 0.6), parameter(0.5, 2), parameter(0, 0.03)},
          [=](const Tensors& in, const ContactOptions& options) {
            return simulate({in[0], in[1]}, in[2], body(in), options);
          },
          [=](const CompliantState& state, const Tensor& force, const Tensors& in) {
            return contact_problem(state, force, body(in));
          },
          1};
}

// Blocks that fall on corners and sides, slide and rest.
System block(const RegularizationOptions& regularization) {
  const auto body = [=](const Tensors& in) -> CompliantBlock {
    return {in[3], in[8], in[9], kTimeStep, in[4], ground(in, 5, regularization)};
  };
  const auto numbers = [](double x, double z, double angle) { return torch::tensor({x, z, angle}, torch::kDouble); };
  const Tensor angle = numbers(0, 0, M_PI / 2) * torch::randint(4, {kCount, 1}, torch::kDouble);
  return {"block with beta = " + std::to_string(regularization.beta),
          {numbers(0, 0.25, 0) + angle + random({kCount, 3}) * numbers(1, 0.02, 0.1),
           random({kCount, 3}) * numbers(1, 0.5, 2), random({kSteps, kCount, 3}) * numbers(5, 5, 0.5), parameter(1, 2),
           parameter(5, 10), parameter(0.2, 0.6), parameter(0.5, 2), parameter(0, 0.03), parameter(0.4, 0.5),
           parameter(0.3, 0.45)},
          [=](const Tensors& in, const ContactOptions& options) {
            return simulate({in[0], in[1]}, in[2], body(in), options);
          },
          [=](const CompliantState& state, const Tensor& force, const Tensors& in) {
            return contact_problem(state, force, body(in));
          },
          4};
}

// With beta = 3 the contacts of some bodies are softer than their stiffness says.
std::vector<System> systems() { return {particle({}), particle({.beta = 3}), block({}), block({.beta = 3})}; }

Tensors leaves_of(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.clone().requires_grad_());
  return leaves;
}

Tensor weighted_sum(const Tensor& x) {
  return (torch::cos(1.3 * torch::arange(x.numel(), x.options())).view(x.sizes()) * x).sum();
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  return (actual - expected).abs().max().item<double>() / std::max(1.0, expected.abs().max().item<double>());
}

class CompliantWalkTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(12); }
};

TEST_F(CompliantWalkTest, HasTheValuesStatusesAndNewtonStepsOfTheLoop) {
  for (const System& system : systems()) {
    const CompliantSolution actual = system.walk(system.inputs, {}), expected = loop(system, system.inputs, {});
    EXPECT_LT(relative_error(numbers_of(actual), numbers_of(expected)), 1e-10) << system.name;
    EXPECT_TRUE(torch::equal(actual.status, expected.status)) << system.name;
    EXPECT_EQ(actual.status.abs().max().item<int>(), 0) << system.name;
    EXPECT_TRUE(torch::equal(actual.iterations, expected.iterations)) << system.name;
    // It reaches contacts that are separated, that slide and that stick.
    const Tensor gamma = actual.step.gamma.unflatten(-1, {system.contacts, 3}), normal = gamma.select(-1, 2);
    const Tensor share = gamma.slice(-1, 0, 2).norm(2, {-1}) / system.inputs[5].unsqueeze(-1) / normal;
    for (const Tensor& kind : {normal == 0, share > 1 - 1e-9, share < 1 - 1e-9}) {
      EXPECT_GE(kind.sum().item<std::int64_t>(), 40) << system.name;
    }
  }
}

TEST_F(CompliantWalkTest, EndsWithTheStatusOfTheLoopWhereNewtonsMethodIsStopped) {
  for (const System& system : systems()) {
    ContactOptions options;
    options.max_iterations = 2;
    options.tolerance = 1e-12;
    const CompliantSolution actual = system.walk(system.inputs, options),
                            expected = loop(system, system.inputs, options);
    EXPECT_TRUE(torch::equal(actual.status, expected.status)) << system.name;
    EXPECT_TRUE(torch::equal(actual.iterations, expected.iterations)) << system.name;
    for (const int status : {0, 3, 4}) EXPECT_TRUE((actual.status == status).any().item<bool>()) << system.name;
    EXPECT_TRUE(torch::equal(numbers_of(actual).isnan().all(-1), actual.status != 0)) << system.name;
  }
}

TEST_F(CompliantWalkTest, HasTheGradientsOfTheLoopInStateInputsAndEveryParameter) {
  for (const System& system : systems()) {
    const auto gradients = [&](const auto& run) {
      const Tensors leaves = leaves_of(system.inputs);
      return torch::autograd::grad({weighted_sum(numbers_of(run(leaves)))}, leaves);
    };
    const auto actual = gradients([&](const Tensors&in) { return system.walk(in, {}); }),
               expected = gradients([&](const Tensors&in) { return loop(system, in, {}); });
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-9) << system.name << ", input " << i;
      EXPECT_GT(expected[i].abs().max().item<double>(), 0) << system.name << ", input " << i;
    }
  }
}

TEST_F(CompliantWalkTest, HasTheGradientsOfFiniteDifferences) {
  for (const System& system : systems()) {
    testing::Inputs few;
    for (std::size_t i = 0; i < system.inputs.size(); ++i) {
      few.push_back(i == kInputs ? system.inputs[i].slice(0, 0, 12).slice(1, 0, 3) : system.inputs[i].slice(0, 0, 3));
    }
    ContactOptions options;
    options.tolerance = 1e-14;
    const auto f = [&](const testing::Inputs& x) { return numbers_of(system.walk(x, options)); };
    EXPECT_LE(testing::gradient_error(f, few), 1e-5) << system.name;
  }
}

TEST_F(CompliantWalkTest, HasTheSecondDerivativesOfTheLoop) {
  for (const System& system : systems()) {
    const auto product = [&](const auto& run) {
      Tensors inputs = system.inputs;
      inputs[kInputs] = inputs[kInputs].slice(0, 0, 8);
      const Tensors leaves = leaves_of(inputs);
      const Tensor y = weighted_sum(numbers_of(run(leaves)).square());
      const auto first = torch::autograd::grad({y}, leaves, {}, true, /*create_graph=*/true);
      Tensor sum = torch::zeros({}, torch::kDouble);
      for (const Tensor& g : first) sum = sum + weighted_sum(g);
      return torch::autograd::grad({sum}, leaves);
    };
    const auto actual = product([&](const Tensors&in) { return system.walk(in, {}); }),
               expected = product([&](const Tensors&in) { return loop(system, in, {}); });
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-8) << system.name << ", input " << i;
    }
  }
}

TEST_F(CompliantWalkTest, HasTheDerivativesOfTheLoopAtTheBoundariesOfTheRegions) {
  // A gap that just closes, so that y = 0; with beta = 0 a y on the boundary between sliding and sticking; with beta =
  // 2 an R_n that is as large as its bound.
  const auto numbers = [](const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); };
  const Tensor position = torch::stack({numbers({0, 0, 1}), numbers({0, 0, 0}), numbers({0, 0, 0})});
  const Tensor velocity = torch::stack({numbers({0, 0, 2}), numbers({2, 0, 0}), numbers({0, 0, 0})});
  const Tensor stiffness = numbers({100, 4, 4 * M_PI * M_PI}), ones = torch::ones({3}, torch::kDouble);
  for (const double beta : {0., 2.}) {
    const auto gradients = [&](bool walks) {
      const Tensors leaves = leaves_of({position, velocity, ones, 8 * ones, 0.5 * ones, stiffness, 0 * ones});
      const CompliantParticle body{
          leaves[2], 0.5, leaves[3], {leaves[4], leaves[5], leaves[6], {.sigma = 1, .beta = beta}}};
      const CompliantState state{leaves[0], leaves[1]};
      const Tensor u = torch::zeros({3, 3}, torch::kDouble);
      const CompliantProblem p = contact_problem(state, u, body);
      const Tensor v = walks ? step(state, u, body).step.next.velocity
                             : solve_contact(p.A, p.v_free, p.J, p.v_hat, p.R, p.mu, {.guess = velocity}).v;
      return torch::autograd::grad({weighted_sum(v)}, leaves);
    };
    const auto actual = gradients(true), expected = gradients(false);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-12) << beta << ", input " << i;
    }
    EXPECT_NE(expected[5][2].item<double>(), 0) << beta;  // half of the derivative of the spring
  }
}

TEST_F(CompliantWalkTest, HasTheGradientsOfWhatTrajectoriesShare) {
  for (const System& system : systems()) {
    const auto gradients = [&](bool shares) {
      Tensors leaves, values;
      for (std::size_t i = 0; i < system.inputs.size(); ++i) {
        const Tensor& x = system.inputs[i];
        const bool shared = i >= kParameters;
        leaves.push_back((shared ? x[0] : x).clone().requires_grad_());
        values.push_back(shared && !shares ? leaves.back().expand_as(x) : leaves.back());
      }
      return torch::autograd::grad({weighted_sum(numbers_of(system.walk(values, {})))}, leaves);
    };
    const auto actual = gradients(true), expected = gradients(false);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-12) << system.name << ", input " << i;
    }
  }
}

TEST_F(CompliantWalkTest, FailsWhereNumbersAreNotFiniteAndLeavesTheOthersAsTheyAre) {
  for (const System& system : systems()) {
    Tensors broken;
    for (const Tensor& x : system.inputs) broken.push_back(x.clone());
    broken[1][2][1] = NAN;
    broken[kInputs][10][5][0] = INFINITY;
    broken[5][7] = -1;  // mu
    const CompliantSolution healthy = system.walk(system.inputs, {});
    const Tensors leaves = leaves_of(broken);
    const CompliantSolution all = system.walk(leaves, {});
    Tensor failed = torch::zeros({kSteps, kCount}, torch::kBool);
    failed.select(1, 2).fill_(true);
    failed.select(1, 5).slice(0, 10).fill_(true);
    failed.select(1, 7).fill_(true);
    EXPECT_TRUE(torch::equal(all.status == 4, failed) && torch::equal(all.status != 0, failed)) << system.name;
    EXPECT_TRUE(torch::equal(numbers_of(all).isnan().all(-1), failed)) << system.name;
    Tensor others = torch::ones({kCount}, torch::kBool);
    for (const int k : {2, 5, 7}) others[k] = false;
    const auto of_others = [&](const Tensor& x) { return x.index({torch::indexing::Slice(), others}); };
    EXPECT_TRUE(torch::equal(of_others(numbers_of(all)), of_others(numbers_of(healthy)))) << system.name;

    const auto gradients = [&](const Tensors& in) {
      const Tensor numbers = numbers_of(system.walk(in, {}));
      return torch::autograd::grad({weighted_sum(torch::where(others.view({1, -1, 1}), numbers, 0))}, in);
    };
    const auto actual = gradients(leaves), expected = gradients(leaves_of(system.inputs));
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(torch::equal(actual[i], expected[i])) << system.name << ", input " << i;
    }
    const auto through = torch::autograd::grad({numbers_of(all)[-1].sum()}, leaves);
    EXPECT_TRUE(through[0][2].isnan().all().item<bool>() && through[3][5].isnan().all().item<bool>()) << system.name;
    EXPECT_FALSE(through[3].index({others}).isnan().any().item<bool>()) << system.name;
    // What comes before the failure does not depend on it.
    const auto before = torch::autograd::grad({numbers_of(system.walk(leaves, {}))[9][5].sum()}, leaves);
    EXPECT_FALSE(before[0].isnan().any().item<bool>()) << system.name;
  }
}

TEST_F(CompliantWalkTest, HasTheSameBitsForEveryBatchPlaceAndNumberOfThreads) {
  for (const System& system : systems()) {
    const auto run = [&](const Tensors& inputs) {
      Tensors leaves = leaves_of(inputs);
      const Tensor numbers = numbers_of(system.walk(leaves, {}));
      const Tensor sum = (numbers * torch::cos(torch::arange(numbers.size(-1), torch::kDouble))).sum();
      Tensors all = torch::autograd::grad({sum}, leaves);
      all[kInputs] = all[kInputs].transpose(0, 1);
      all.push_back(numbers.transpose(0, 1));
      return all;
    };
    const Tensors whole = run(system.inputs);
    for (const int width : {1, 5}) {
      for (std::int64_t from = 0; from < kCount; from += width) {
        const std::int64_t to = std::min(from + width, kCount);
        Tensors part;
        for (std::size_t i = 0; i < system.inputs.size(); ++i) {
          part.push_back(system.inputs[i].slice(i == kInputs ? 1 : 0, from, to));
        }
        const Tensors actual = run(part);
        for (std::size_t i = 0; i < actual.size(); ++i) {
          EXPECT_TRUE(torch::equal(actual[i], whole[i].slice(0, from, to))) << system.name << " " << width << " " << i;
        }
      }
    }
    const auto shared_gradient = [&] {
      Tensors inputs = system.inputs;
      inputs[5] = torch::full({}, 0.3, torch::kDouble).requires_grad_();  // mu
      return torch::autograd::grad({numbers_of(system.walk(inputs, {})).sum()}, {inputs[5]})[0];
    };
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const Tensor one = shared_gradient();
    at::set_num_threads(2);
    EXPECT_TRUE(torch::equal(shared_gradient(), one)) << system.name;
    at::set_num_threads(threads);
  }
}

TEST_F(CompliantWalkTest, WalksOneTrajectoryWithoutABatch) {
  for (const System& system : systems()) {
    Tensors one;
    for (std::size_t i = 0; i < system.inputs.size(); ++i) one.push_back(system.inputs[i].select(i == kInputs, 3));
    const CompliantSolution actual = system.walk(one, {}), all = system.walk(system.inputs, {});
    EXPECT_TRUE(torch::equal(numbers_of(actual), numbers_of(all).select(1, 3))) << system.name;
    EXPECT_TRUE(torch::equal(actual.status, all.status.select(1, 3))) << system.name;
  }
}

TEST_F(CompliantWalkTest, WalksInSinglePrecision) {
  for (const System& system : systems()) {
    const auto run = [&](const auto& walk) {
      Tensors leaves;
      for (std::size_t i = 0; i < system.inputs.size(); ++i) {
        const Tensor& x = system.inputs[i];
        leaves.push_back((i == kInputs ? x.slice(0, 0, 6) : x).to(torch::kFloat).requires_grad_());
      }
      const Tensor numbers = numbers_of(walk(leaves));
      Tensors all = torch::autograd::grad({weighted_sum(numbers)}, leaves);
      all.push_back(numbers);
      return all;
    };
    const Tensors actual = run([&](const Tensors&in) { return system.walk(in, {}); }),
                  expected = run([&](const Tensors&in) { return loop(system, in, {}); });
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].scalar_type(), torch::kFloat);
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-3) << system.name << " " << i;
    }
  }
}

TEST_F(CompliantWalkTest, SolvesTheLeadingContactsThatSizesSays) {
  const System system = block({});
  ContactOptions options;
  options.sizes = torch::full({}, 1, torch::kLong);
  const CompliantSolution actual = system.walk(system.inputs, options);
  EXPECT_LT(relative_error(numbers_of(actual), numbers_of(loop(system, system.inputs, options))), 1e-12);
  EXPECT_EQ(actual.step.gamma.slice(-1, 3).abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace lcp::physics::compliant_walk_test
