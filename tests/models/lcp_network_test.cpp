#include "lcp/nn/lcp_network.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <sstream>
#include <vector>

#include "lcp/certify.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::nn {
namespace {

using testing::everywhere;
using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using testing::numbers;
using testing::second_gradient_error;
using torch::Tensor;

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(3); }

Tensor states(std::int64_t count, std::int64_t inputs) {
  return torch::randn({count, inputs}, generator(), torch::kDouble);
}

std::vector<LcpNetworkOptions> kinds() {
  const LcpNetworkOptions affine(3, 2, 2);
  const auto network = [&](Activation activation) {
    return LcpNetworkOptions(affine)
        .f(Dependence::kNetwork)
        .G(Dependence::kNetwork)
        .q(Dependence::kNetwork)
        .hidden(3)
        .activation(activation);
  };
  return {affine, LcpNetworkOptions(affine).f(Dependence::kConstant),
          LcpNetworkOptions(affine).f(Dependence::kAffine).G(Dependence::kAffine), network(Activation::kTanh),
          network(Activation::kRelu)};
}

// A sliding block with dt = m = mu m g = 1: y = max(0, s - 1) - max(0, -s - 1) with s = v + u.
LcpNetwork sliding_block() {
  LcpNetwork network(LcpNetworkOptions(2, 1, 2).definiteness(1));
  auto parameters = network->named_parameters();
  const torch::NoGradGuard no_grad;
  parameters["G_bias"].copy_(numbers({1, -1}));
  parameters["q_weight"].copy_(numbers({-1, -1, 1, 1}).view({2, 2}));
  parameters["q_bias"].fill_(1);
  return network;
}

TEST(LcpNetworkTest, RepresentsASlidingBlockExactly) {
  const Tensor x = states(200, 2) * 2;
  const Tensor s = x.sum(-1, true);
  const auto step = sliding_block()->step(x);
  const Tensor truth = (s - 1).relu() - (-s - 1).relu();
  EXPECT_LT(largest(step.y - truth), 1e-15);
  EXPECT_TRUE(torch::equal(step.y == 0, truth == 0));
  EXPECT_TRUE(everywhere(step.status == 0));
  EXPECT_EQ(step.y.sizes(), (std::vector<std::int64_t>{200, 1}));
  EXPECT_EQ(step.z.sizes(), (std::vector<std::int64_t>{200, 2}));
}

TEST(LcpNetworkTest, TakesASumThatIsRoundOffForZero) {
  // The same block as v + u less what friction takes: at rest y is a sum that cancels.
  LcpNetwork network(LcpNetworkOptions(2, 1, 2).f(Dependence::kAffine).definiteness(1));
  auto parameters = network->named_parameters();
  {
    const torch::NoGradGuard no_grad;
    // z_1 = max(0, s), z_2 = max(0, -s); with y = s - z_1 + z_2, which is 0.
    parameters["f_weight"].copy_(numbers({1. / 3, 1. / 7}).view({1, 2}));
    parameters["G_bias"].copy_(numbers({-1, 1}));
    parameters["q_weight"].copy_(numbers({-1. / 3, -1. / 7, 1. / 3, 1. / 7}).view({2, 2}));
  }
  const Tensor x = states(200, 2).requires_grad_();
  const Tensor y = network->forward(x);
  EXPECT_TRUE(everywhere(y == 0));
  // Its derivative is that of the sum, which is a function of the parameters.
  const auto gradient = torch::autograd::grad({y.sum()}, {parameters["f_bias"]})[0];
  EXPECT_NEAR(gradient.item<double>(), 200, 1e-12);
}

TEST(LcpNetworkTest, HasOneSolutionForEveryParameter) {
  for (const std::int64_t n : {1, 2, 5, 8}) {
    const LcpNetwork network(LcpNetworkOptions(3, 2, n));
    const Tensor theta = 10 * network->random(50, generator());
    const auto parts = network->parts(states(50, 3), theta);
    const Tensor symmetric = (parts.M + parts.M.mT()) / 2;
    EXPECT_GE(torch::linalg_eigvalsh(symmetric).min().item<double>(), 0.3 - 1e-12);
    EXPECT_TRUE(everywhere(network->step(states(50, 3), theta).status == 0));
  }
}

TEST(LcpNetworkTest, HasTheDerivativesOfItsParts) {
  for (const LcpNetworkOptions& options : kinds()) {
    const LcpNetwork network(options);
    const Tensor theta = network->random(1, generator()), x = states(2, 3);
    const auto y = [&](const Inputs& in) { return network->step(in[0], in[1]).y; };
    EXPECT_LT(gradient_error(y, {x, theta}), 1e-7);
    if (options.activation() == Activation::kTanh) {
      EXPECT_LT(second_gradient_error(y, {x, theta}), 1e-6);
    }
  }
}

TEST(LcpNetworkTest, LinearizesLikeABackwardPass) {
  for (const LcpNetworkOptions& options : kinds()) {
    LcpNetwork network(options);
    network->input_unit.copy_(numbers({2, 1, 0.5}));
    network->output_unit.copy_(numbers({3, 0.2}));
    const Tensor theta = network->random(3, generator()), x = states(5, 3);
    const auto [values, jacobian] = network->linearize(x, theta);
    ASSERT_EQ(values.sizes(), (std::vector<std::int64_t>{3, 5, 3}));
    ASSERT_EQ(jacobian.sizes(), (std::vector<std::int64_t>{3, 5, 3, network->size()}));
    const Tensor each = theta.unsqueeze(1).expand({3, 5, -1}).clone().requires_grad_();
    const auto step = network->step(x, each);
    const Tensor expected = at::cat({step.y / network->output_unit, step.activity.unsqueeze(-1)}, -1);
    EXPECT_LT(largest(step.activity - (network->parts(x, each).G.square().sum(-2).sqrt() * step.z).sum(-1)), 1e-14);
    EXPECT_LT(largest(values - expected), 1e-14);
    for (std::int64_t k = 0; k < 3; ++k) {
      const Tensor row = torch::autograd::grad({expected.select(-1, k).sum()}, {each}, {}, true)[0];
      EXPECT_LT(largest(jacobian.select(2, k) - row), 1e-12);
    }
    EXPECT_FALSE(jacobian.requires_grad());
  }
}

TEST(LcpNetworkTest, GrowsFromASmallerNetwork) {
  for (LcpNetworkOptions options : kinds()) {
    const LcpNetwork small(options);
    const Tensor theta = small->random(1, generator())[0], x = states(20, 3);
    const LcpNetwork same(options);
    EXPECT_TRUE(torch::equal(same->grown(*small, theta, generator()), theta));
    const LcpNetwork large(options.unknowns(3).hidden(5));
    const Tensor grown = large->grown(*small, theta, generator());
    const Tensor M = large->matrix(grown);
    EXPECT_LT(largest(M.slice(0, 0, 2).slice(1, 0, 2) - small->matrix(theta)), 1e-14);
    EXPECT_GE(M[2][2].item<double>(), 1 - 1e-14);
    // Where the new unknown is 0 and the new hidden units have no effect, the map is the same.
    if (options.q() == Dependence::kAffine) {
      const auto step = large->step(x, grown), before = small->step(x, theta);
      const Tensor without = (step.z.select(-1, 2) == 0).nonzero().squeeze(-1);
      EXPECT_GT(without.numel(), 0);
      EXPECT_LT(largest((step.y - before.y).index_select(0, without)), 1e-12);
    }
  }
  // An affine network grows to one whose q is a network.
  LcpNetworkOptions options = kinds().front();
  const LcpNetwork affine(options), network(options.q(Dependence::kNetwork));
  EXPECT_EQ(network->grown(*affine, affine->theta(), generator()).numel(), network->size());
  EXPECT_THROW(network->grown(*affine, torch::zeros({2}), generator()), c10::Error);
}

TEST(LcpNetworkTest, LosesUnknownsThatAreNotActive) {
  for (LcpNetworkOptions options : kinds()) {
    const LcpNetwork network(options.unknowns(4));
    const Tensor theta = network->random(1, generator())[0], kept = torch::tensor({0, 2, 3}, torch::kLong);
    const LcpNetwork smaller(LcpNetworkOptions(options).unknowns(3));
    const Tensor restricted = network->restricted(theta, kept);
    const Tensor M = network->matrix(theta).index_select(0, kept).index_select(1, kept);
    EXPECT_LT(largest(smaller->matrix(restricted) - M), 1e-14);
    const Tensor x = states(50, 3);
    const auto step = network->step(x, theta);
    const Tensor without = (step.z.select(-1, 1) == 0).nonzero().squeeze(-1);
    EXPECT_GT(without.numel(), 0);
    EXPECT_LT(largest((smaller->step(x, restricted).y - step.y).index_select(0, without)), 1e-12);
  }
}

TEST(LcpNetworkTest, ComputesManyNetworksAtOnce) {
  for (const LcpNetworkOptions& options : kinds()) {
    LcpNetwork network(options);
    const Tensor theta = network->random(3, generator()), x = states(5, 3);
    const auto all = network->step(x, theta.unsqueeze(1));
    ASSERT_EQ(all.y.sizes(), (std::vector<std::int64_t>{3, 5, 2}));
    for (std::int64_t k = 0; k < 3; ++k) {
      network->set_theta(theta[k]);
      EXPECT_TRUE(torch::equal(network->theta(), theta[k]));
      EXPECT_TRUE(torch::equal(network->forward(x), all.y[k]));
    }
  }
}

TEST(LcpNetworkTest, MeasuresInItsUnits) {
  LcpNetwork network = sliding_block();
  const Tensor x = states(50, 2), y = network->forward(x);
  network->input_unit.copy_(numbers({2, 4}));
  network->output_unit.fill_(3);
  EXPECT_LT(largest(network->forward(x * network->input_unit) - 3 * y), 1e-14);
}

TEST(LcpNetworkTest, IsExportedAsAModelOfMotion) {
  // One velocity with its input, and two velocities with a position and no input.
  LcpNetwork line(LcpNetworkOptions(2, 1, 2)), plane(LcpNetworkOptions(3, 2, 3).q(Dependence::kNetwork));
  for (LcpNetwork* network : {&line, &plane}) (*network)->set_theta((*network)->random(1, generator())[0]);
  const auto loaded = [](const LcpNetwork& network, const MotionLayout& layout) {
    std::istringstream stream(torchscript_bytes(network, layout));
    return torch::jit::load(stream);
  };
  auto model = loaded(line, {0, 1, 0.1, 2, 9.81});
  const Tensor v = states(7, 1).squeeze(-1), u = states(5, 1);
  const auto results = model.get_method("step")({v, u}).toTuple()->elements();
  const Tensor x = at::stack(at::broadcast_tensors({v, u}), -1);
  const Tensor v_next = line->forward(x).squeeze(-1);
  EXPECT_TRUE(torch::equal(results[0].toTensor(), v_next));
  EXPECT_LT(largest(results[1].toTensor() - (2 * (v_next - v) / 0.1 - u)), 1e-12);
  EXPECT_TRUE(everywhere(results[2].toTensor() == 0));
  EXPECT_TRUE(torch::equal(model.forward({v, u}).toTensor(), v_next));
  EXPECT_EQ(model.attr("mass").toDouble(), 2);
  EXPECT_EQ(model.attr("format_version").toInt(), 2);

  model = loaded(plane, {1, 0, 0.1, 2, 9.81});
  const Tensor velocity = states(6, 2), position = states(6, 1).squeeze(-1);
  const Tensor next = plane->forward(at::cat({position.unsqueeze(-1), velocity}, -1));
  EXPECT_TRUE(torch::equal(model.forward({velocity, torch::zeros({}), position}).toTensor(), next));
  const auto sizes = model.attr("input_sizes").toGenericDict();
  EXPECT_EQ(sizes.at("v").toIntVector(), std::vector<std::int64_t>{2});
  EXPECT_EQ(sizes.at("u").toIntVector(), std::vector<std::int64_t>{0});
  EXPECT_EQ(sizes.at("x").toIntVector(), std::vector<std::int64_t>{});
  EXPECT_THROW(torchscript_bytes(plane, {2, 0, 0.1, 2, 9.81}), c10::Error);

  line->to(torch::kFloat);
  model = loaded(line, {0, 1, 0.1, 2, 9.81});
  const Tensor single = model.forward({v, u}).toTensor();
  EXPECT_EQ(single.scalar_type(), torch::kFloat);
  EXPECT_LT(largest(single.to(torch::kDouble) - v_next), 1e-4);
}

TEST(LcpNetworkTest, NamesWhatIsWrong) {
  const auto expect = [](const LcpNetworkOptions& options, const std::string& text) {
    try {
      const LcpNetwork network(options);
      FAIL() << text;
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  const LcpNetworkOptions good(2, 1, 2);
  expect({0, 1, 2}, "inputs must be > 0; got 0");
  expect({2, 0, 2}, "outputs must be > 0; got 0");
  expect({2, 1, -1}, "unknowns must be > 0; got -1");
  expect(LcpNetworkOptions(good).G(Dependence::kAbsent), "G must not be absent");
  expect(LcpNetworkOptions(good).q(Dependence::kConstant), "q must be affine or a network; got constant");
  expect(LcpNetworkOptions(good).hidden(0), "hidden must be > 0; got 0");
  expect(LcpNetworkOptions(good).definiteness(0), "definiteness must be > 0; got 0");
  LcpNetwork network(good);
  EXPECT_THROW(network->set_theta(torch::zeros({3})), c10::Error);
  std::ostringstream text;
  text << *network;
  EXPECT_EQ(text.str(),
            "lcp::nn::LcpNetwork(inputs=2, outputs=1, unknowns=2, f=absent, G=constant, q=affine, hidden=8)");
}

TEST(LcpNetworkTest, IsCloned) {
  for (const LcpNetworkOptions& options : kinds()) {
    LcpNetwork network(options);
    network->set_theta(network->random(1, generator())[0]);
    network->output_unit.fill_(2);
    const auto copy = std::dynamic_pointer_cast<LcpNetworkImpl>(network->clone());
    const Tensor x = states(5, 3);
    EXPECT_TRUE(torch::equal(copy->forward(x), network->forward(x)));
    const Tensor before = network->theta().clone();
    copy->set_theta(torch::zeros_like(before));
    EXPECT_TRUE(torch::equal(network->theta(), before));
  }
}

}  // namespace
}  // namespace lcp::nn
