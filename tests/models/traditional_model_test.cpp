#include "lcp/nn/traditional_model.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "lcp/physics/sliding_block.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::nn {
namespace {

using testing::everywhere;
using testing::largest;
using torch::Tensor;

constexpr Parameters kAll[] = {Parameters::kFriction, Parameters::kRows, Parameters::kStructured,
                               Parameters::kNetworks};

class TraditionalModelTest : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override { torch::manual_seed(7); }

  // The block below, in units of 3 N, with noise on its parameters. The tanh layers of networks have an effect.
  static TraditionalModel model_near_the_truth(Parameters parameters, double noise) {
    TraditionalModel model(TraditionalModelOptions()
                               .mass(0.5)
                               .dt(0.2)
                               .gravity(9.81)
                               .force_unit(3)
                               .parameters(parameters)
                               .basis(SymmetricBasis::kDiagonal)
                               .hidden(3));
    model->to(torch::kDouble);
    model->start(0.6, noise);
    const torch::NoGradGuard no_grad;
    if (parameters == Parameters::kStructured) model->named_parameters()["matrix.alpha"].fill_(noise);
    if (parameters == Parameters::kNetworks) {
      for (const char* map : {"phi", "beta", "f"}) {
        model->named_parameters()[std::string(map) + ".hidden_out.weight"].normal_(0, noise + 1e-300);
      }
    }
    return model;
  }

  const physics::SlidingBlock block_ = physics::SlidingBlock::of(0.5, 0.2, 0.6, 9.81);
  const Tensor v_ = torch::linspace(-2, 2, 60, torch::kDouble);
  const Tensor u_ = 4 * torch::sin(torch::linspace(0, 9, 60, torch::kDouble));
};

TEST_P(TraditionalModelTest, StepsLikeTheBlockWhoseParametersItHas) {
  TraditionalModel model = model_near_the_truth(GetParam(), 0);
  const auto step = model->step(v_, u_);
  const auto exact = physics::exact_step(v_, u_, block_);
  EXPECT_EQ(step.status.count_nonzero().item<int>(), 0);
  EXPECT_LT(largest(step.v_next - exact.v_next), 1e-14);
  EXPECT_LT(largest(step.gamma - exact.gamma), 1e-14);
  EXPECT_LT(largest(step.lambda.select(-1, 0) - step.lambda.select(-1, 1) - step.force), 1e-13);
  EXPECT_GT(exact.v_next.eq(0).sum().item<int>(), 5);
  if (GetParam() == Parameters::kFriction) {
    EXPECT_TRUE(torch::equal(step.v_next == 0, exact.v_next == 0));
  }
}

TEST_P(TraditionalModelTest, HasTheGradientOfCentralDifferences) {
  TraditionalModel model = model_near_the_truth(GetParam(), 0.05);
  const std::vector<Tensor> parameters = model->parameters();
  const auto next = [&](const testing::Inputs& in) { return model->step(in[0], in[1]).v_next; };
  EXPECT_LT(testing::gradient_error(next, {v_, u_}), 1e-6);

  const Tensor value = model->forward(v_, u_), weights = testing::weights_like(value);
  const auto gradients = torch::autograd::grad({(weights * value).sum()}, parameters);
  const torch::NoGradGuard no_grad;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const Tensor flat = parameters[k].view(-1), gradient = gradients[k].flatten();
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const double x = flat[i].item<double>(), h = 1e-6;
      const auto at = [&](double shifted) {
        flat[i] = shifted;
        return (weights * model->forward(v_, u_)).sum().item<double>();
      };
      const double numeric = (at(x + h) - at(x - h)) / (2 * h);
      flat[i] = x;
      EXPECT_NEAR(gradient[i].item<double>(), numeric, 1e-6 * std::max(1.0, std::abs(numeric)));
    }
  }
}

TEST_P(TraditionalModelTest, IsTheSameAsTorchScript) {
  TraditionalModel model = model_near_the_truth(GetParam(), 0.05);
  if (GetParam() == Parameters::kRows || GetParam() == Parameters::kStructured) {
    Tensor mask = torch::zeros({3, 6}, torch::kBool);
    mask[0][2] = mask[2][3] = true;
    model->hold(mask, TraditionalModelImpl::true_rows(1));
  }
  const auto file = std::filesystem::temp_directory_path() / ("torchlcp_traditional_" + std::to_string(::getpid()));
  save_torchscript(model, file.string());
  torch::jit::Module script = torch::jit::load(file.string());
  std::filesystem::remove(file);
  const auto step = model->step(v_, u_);
  const auto loaded = script.run_method("step", v_, u_).toTuple()->elements();
  EXPECT_LT(largest(loaded[0].toTensor() - step.v_next), 1e-15);
  EXPECT_LT(largest(loaded[1].toTensor() - step.force), 1e-13);
  EXPECT_TRUE(torch::equal(loaded[2].toTensor(), step.status));
  EXPECT_TRUE(torch::equal(script.forward({v_, u_}).toTensor(), loaded[0].toTensor()));
  EXPECT_EQ(script.attr("dt").toDouble(), 0.2);
  EXPECT_EQ(script.attr("mass").toDouble(), 0.5);
  EXPECT_EQ(script.attr("gravity").toDouble(), 9.81);
  EXPECT_EQ(script.attr("format_version").toInt(), 2);
  EXPECT_EQ(script.hasattr("mu"), GetParam() == Parameters::kFriction);
  EXPECT_EQ(script.forward({v_.view({12, 5}), u_[0]}).toTensor().sizes(), (std::vector<std::int64_t>{12, 5}));
  EXPECT_EQ(script.forward({v_[0], u_[0]}).toTensor().dim(), 0);

  // It has the same gradients, so that it can be trained further.
  step.v_next.square().sum().backward();
  loaded[0].toTensor().square().sum().backward();
  double norm = 0, loaded_norm = 0;
  for (const Tensor& p : model->parameters()) norm += p.grad().square().sum().item<double>();
  for (const Tensor& p : script.parameters()) loaded_norm += p.grad().square().sum().item<double>();
  EXPECT_NEAR(loaded_norm / norm, 1, 1e-12);

  // Its dtype can be changed.
  script.to(torch::kFloat);
  EXPECT_LT(largest(script.forward({v_, u_}).toTensor() - step.v_next), 1e-3);
}

TEST_P(TraditionalModelTest, StepsWithManyParametersAtOnce) {
  const torch::NoGradGuard no_grad;
  TraditionalModel model = model_near_the_truth(GetParam(), 0.05);
  const Tensor theta = model->theta() + 0.05 * torch::randn({3, model->size()}, torch::kDouble);
  const Tensor each = theta.unsqueeze(1);
  const auto all = model->step(v_, u_, model->G_of(v_, u_, each), model->f_of(v_, u_, each));
  ASSERT_EQ(all.v_next.sizes(), (std::vector<std::int64_t>{3, 60}));
  for (std::int64_t k = 0; k < 3; ++k) {
    model->set_theta(theta[k]);
    EXPECT_TRUE(torch::equal(model->theta(), theta[k]));
    EXPECT_TRUE(torch::equal(model->step(v_, u_).v_next, all.v_next[k]));
  }
  EXPECT_THROW(model->set_theta(theta), c10::Error);
}

TEST_P(TraditionalModelTest, StartsAsAnotherModelsFile) {
  const auto file = std::filesystem::temp_directory_path() / ("torchlcp_start_" + std::to_string(::getpid()));
  const TraditionalModel saved = model_near_the_truth(GetParam(), 0.05);
  save_torchscript(saved, file.string());
  const TraditionalModel model = model_near_the_truth(GetParam(), 0);
  load_torchscript(model, file.string());
  EXPECT_TRUE(torch::equal(model->theta(), saved->theta()));
  for (const Parameters other : kAll) {
    if (other == GetParam()) continue;
    const TraditionalModel different = model_near_the_truth(other, 0);
    const Tensor before = different->theta();
    EXPECT_THROW(load_torchscript(different, file.string()), c10::Error);
    EXPECT_TRUE(torch::equal(different->theta(), before));
  }
  const TraditionalModel heavy(
      TraditionalModelOptions().mass(5).dt(0.2).gravity(9.81).force_unit(3).parameters(GetParam()));
  EXPECT_THROW(load_torchscript(heavy, file.string()), c10::Error);
  std::filesystem::remove(file);
  EXPECT_THROW(load_torchscript(model, file.string()), c10::Error);
}

std::string name_of(const ::testing::TestParamInfo<Parameters>& tested) {
  constexpr const char* kNames[] = {"Friction", "Rows", "Structured", "Networks"};
  return kNames[static_cast<int>(tested.param)];
}

INSTANTIATE_TEST_SUITE_P(Of, TraditionalModelTest, ::testing::ValuesIn(kAll), name_of);

// Learning through the solution of the LCP [Notes, 3.2.3].
TEST(TraditionalModelGradientTest, VanishesWhereAllIsPredictedToStick) {
  torch::manual_seed(0);
  TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kFriction));
  model->to(torch::kDouble);
  const Tensor v = torch::randn({400}, torch::kDouble), u = torch::randn({400}, torch::kDouble);
  const Tensor truth = physics::exact_step(v, u, physics::SlidingBlock::of(1, 1, 1, 1)).v_next;
  const double largest_free = largest(v + u);
  const auto gradient = [&](double mu) {
    model->start(mu, 0);
    const Tensor loss = (model->forward(v, u) - truth).square().mean();
    return torch::autograd::grad({loss}, {model->parameters()[0]})[0].item<double>();
  };
  for (const double factor : {1.0, 1.001, 1.5, 10.0}) EXPECT_EQ(gradient(factor * largest_free), 0);
  for (const double factor : {0.3, 0.6, 0.99}) EXPECT_GT(gradient(std::max(1.1, factor * largest_free)), 0);
  EXPECT_LT(gradient(0.9), 0);

  // mean 2 (v_hat - v) (-sgn v*) [|v*| > mu_hat]
  const Tensor free = v + u;
  const Tensor predicted = free.sign() * (free.abs() - 1.3).relu();
  const double expected = (2 * (predicted - truth) * -free.sign() * (free.abs() > 1.3)).mean().item<double>();
  EXPECT_NEAR(gradient(1.3), expected, 1e-15);
}

// Errors of f shift gamma of a block that sticks, but not what its active set says [Notes, 4].
TEST(TraditionalModelRestTest, IsExactByTheActiveSetWhereRowsHaveErrors) {
  torch::manual_seed(2);
  TraditionalModel model{TraditionalModelOptions()};
  model->to(torch::kDouble);
  model->held[2][2] = 1;  // M33 = 0: with M33 < 0 there is a second solution, with a large gamma and without forces
  const Tensor v = torch::randn({4000}, torch::kDouble), u = torch::randn({4000}, torch::kDouble);
  const Tensor truth = physics::exact_step(v, u, physics::SlidingBlock::of(1, 1, 1, 1)).v_next;
  const Tensor rests = truth == 0;
  const auto fraction = [](const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); };
  for (int k = 0; k < 5; ++k) {
    model->start(1, 0.01);
    const auto learned = model->step(v, u);
    const Tensor sticks = TraditionalModelImpl::sticks(learned.lambda, learned.gamma);
    EXPECT_EQ(fraction(learned.v_next.index({rests}) == 0), 0);
    EXPECT_GT(fraction(sticks.index({rests})), 0.97);
    EXPECT_LT(fraction(sticks.index({~rests})), 0.02);
    EXPECT_LT(largest(truth.index({sticks})), 0.1);  // where it errs the block hardly moves
    model->exact_rest = true;
    const Tensor exact = model->forward(v, u);
    EXPECT_TRUE(torch::equal(exact, learned.v_next.masked_fill(sticks, 0)));
    EXPECT_TRUE(torch::equal(std::dynamic_pointer_cast<TraditionalModelImpl>(model->clone())->forward(v, u), exact));
    model->exact_rest = false;
  }
}

TEST(TraditionalModelRestTest, HasTheGradientOfCentralDifferences) {
  torch::manual_seed(2);
  TraditionalModel model{TraditionalModelOptions()};
  model->to(torch::kDouble);
  model->start(1, 0.01);
  model->exact_rest = true;
  const auto next = [&](const testing::Inputs& in) { return model->forward(in[0], in[1]); };
  const Tensor v = testing::numbers({2, -2, 0.3, -0.3}), u = testing::numbers({0.5, -0.1, 0.2, 0.1});
  EXPECT_TRUE(torch::equal(model->forward(v, u) == 0, torch::tensor({false, false, true, true})));
  EXPECT_LT(testing::gradient_error(next, {v, u}), 1e-8);
}

TEST(TraditionalModelRestTest, IsNotThatOfUnsolvedSteps) {
  TraditionalModel model{TraditionalModelOptions()};
  model->exact_rest = true;
  const Tensor G = -torch::eye(3), f = -torch::ones({3});
  const auto step = model->step(torch::zeros({}), torch::zeros({}), G, f);
  EXPECT_NE(step.status.item<int>(), 0);
  EXPECT_TRUE(everywhere(step.v_next.isnan()));
}

TEST(TraditionalModelRowsTest, HoldWhatIsHeld) {
  TraditionalModel model{TraditionalModelOptions()};
  Tensor mask = torch::zeros({3, 6}, torch::kBool);
  mask[1][4] = true;
  model->hold(mask, torch::full({3, 6}, 5.0));
  const Tensor rows = model->rows();
  EXPECT_EQ(rows[1][4].item<double>(), 5);
  EXPECT_TRUE(torch::equal(rows.masked_select(~mask), model->parameters()[0].masked_select(~mask)));
  rows.sum().backward();
  EXPECT_TRUE(torch::equal(model->parameters()[0].grad() != 0, ~mask));
}

TEST(TraditionalModelRowsTest, MeasureHowFarAMatrixIsFromItsHeldEntries) {
  TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kStructured));
  model->to(torch::kDouble);
  model->start(1, 0);
  Tensor mask = torch::zeros({3, 6}, torch::kBool);
  mask[0][2] = mask[2][0] = true;
  model->hold(mask, TraditionalModelImpl::true_rows(1) + 0.25);
  const Tensor G = model->G_of(torch::zeros({}), torch::zeros({}));
  EXPECT_DOUBLE_EQ(model->missed(G).abs().sum().item<double>(), 0.5);
  EXPECT_DOUBLE_EQ(model->missed(G.expand({7, 3, 3})).abs().sum().item<double>(), 7 * 0.5);
}

TEST(TraditionalModelRowsTest, AreMonotoneWhateverTheParametersAre) {
  const torch::NoGradGuard no_grad;
  TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kRows).monotone(true));
  model->to(torch::kDouble);
  const auto M_of = [&](const Tensor& theta) { return model->rows(theta).slice(-1, 0, 3); };
  const Tensor theta = model->random(200, at::detail::createCPUGenerator(3));
  const Tensor symmetric = M_of(theta) + M_of(theta).mT();
  EXPECT_GE(at::linalg_eigvalsh(symmetric).min().item<double>(), -1e-12);
  EXPECT_TRUE(everywhere(M_of(theta).select(-1, 2).select(-1, 2) == 0));
  EXPECT_TRUE(everywhere(M_of(theta).select(-1, 0).select(-1, 2) != 0));
  const Tensor projected = model->projected(theta);
  EXPECT_EQ(largest(model->rows(projected) - model->rows(theta)), 0);
  EXPECT_EQ(largest(model->projected(projected) - projected), 0);
  model->start(0.5, 0);  // a true block is monotone
  EXPECT_EQ(largest(model->rows() - TraditionalModelImpl::true_rows(0.5)), 0);

  Tensor mask = torch::zeros({3, 6}, torch::kBool);
  mask[0][2] = mask[2][1] = true;  // held entries determine their partners
  model->hold(mask, TraditionalModelImpl::true_rows(1));
  EXPECT_TRUE(everywhere(M_of(theta).select(-2, 2).slice(-1, 0, 2) == -1));
  EXPECT_TRUE(everywhere(M_of(theta).select(-1, 2).slice(-1, 0, 2) == 1));
}

TEST(TraditionalModelRowsTest, MayHaveAMatrixThatIsAffineInTheState) {
  torch::manual_seed(3);
  TraditionalModel model(TraditionalModelOptions().mass(0.5).dt(0.2).force_unit(3).affine_matrix(true));
  model->to(torch::kDouble);
  EXPECT_EQ(model->size(), 18 + 18);
  Tensor mask = torch::zeros({3, 6}, torch::kBool);
  mask[0][2] = true;
  model->hold(mask, TraditionalModelImpl::true_rows(1));
  const Tensor v = torch::randn({5}, torch::kDouble), u = torch::randn({5}, torch::kDouble);
  const Tensor slopes = model->named_parameters()["slopes"], rows = model->rows(), G = model->G_of(v, u);
  for (std::int64_t k = 0; k < 5; ++k) {
    Tensor expected = rows.slice(1, 0, 3) + slopes.select(-1, 0) * (v[k] / model->velocity_unit()) +
                      slopes.select(-1, 1) * (u[k] / 3);
    expected[0][2] = 1;
    EXPECT_LT(largest(G[k] - expected), 1e-15);
  }
  EXPECT_TRUE(torch::equal(model->nonlinear(model->theta()), slopes.flatten()));
  const auto of_theta = [&](const testing::Inputs& in) { return model->G_of(in[0], in[1], in[2]); };
  EXPECT_LT(testing::gradient_error(of_theta, {v, u, model->theta().detach()}), 1e-8);

  model->start(0.6, 0);  // a true block, whose G is constant
  EXPECT_TRUE(everywhere(model->G_of(v, u) == model->rows().slice(1, 0, 3)));
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().affine_matrix(true).monotone(true)), c10::Error);
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().affine_matrix(true).relu_pairs(true)), c10::Error);
}

TEST(TraditionalModelRowsTest, AreThoseOfTheStructure) {
  for (const auto basis : {SymmetricBasis::kNone, SymmetricBasis::kDiagonal, SymmetricBasis::kNonnegative}) {
    TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kStructured).basis(basis));
    const auto matrix = std::dynamic_pointer_cast<StructuredMatrixImpl>(model->children()[0]);
    EXPECT_TRUE(torch::equal(model->rows().slice(1, 0, 3), matrix->forward()));
  }
  TraditionalModel networks(TraditionalModelOptions().parameters(Parameters::kNetworks));
  EXPECT_THROW(networks->rows(), c10::Error);
}

TEST(TraditionalModelRowsTest, AreReachedByNetworksWithoutNonlinearity) {
  TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kNetworks).hidden(4));
  EXPECT_FALSE(everywhere(model->nonlinear(model->theta()) == 0));
  model->start(1, 0);
  EXPECT_TRUE(everywhere(model->nonlinear(model->theta()) == 0));
  EXPECT_TRUE(everywhere(model->nonlinear(model->random(5, at::detail::createCPUGenerator(1))) == 0));
}

TEST(TraditionalModelOptionsTest, AreChecked) {
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().mass(0)), c10::Error);
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().dt(-1)), c10::Error);
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().gravity(0)), c10::Error);
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().mu(-1)), c10::Error);
  EXPECT_THROW(TraditionalModel(TraditionalModelOptions().force_unit(0)), c10::Error);
  TraditionalModel model{TraditionalModelOptions()};
  EXPECT_THROW(model->hold(torch::zeros({3, 6}), torch::zeros({3, 6})), c10::Error);
  EXPECT_THROW(model->hold(torch::zeros({3, 5}, torch::kBool), torch::zeros({3, 6})), c10::Error);
  std::ostringstream stream;
  stream << *model;
  EXPECT_NE(stream.str().find("parameters=rows"), std::string::npos);
}

TEST(TraditionalModelOptionsTest, AreThoseOfACopy) {
  TraditionalModel model(TraditionalModelOptions().parameters(Parameters::kStructured));
  model->to(torch::kDouble);
  const auto copy = std::dynamic_pointer_cast<TraditionalModelImpl>(model->clone());
  EXPECT_TRUE(torch::equal(copy->rows(), model->rows()));
}

}  // namespace
}  // namespace lcp::nn
