#include "lcp/nn/lcp_network.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

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
    const Tensor theta = network->random(4, generator()), x = states(4, 3);
    const auto y = [&](const Inputs& in) { return network->step(in[0], in[1]).y; };
    EXPECT_LT(gradient_error(y, {x, theta}), 1e-7);
    if (options.activation() == Activation::kTanh) {
      EXPECT_LT(second_gradient_error(y, {x, theta}), 1e-6);
    }
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

}  // namespace
}  // namespace lcp::nn
