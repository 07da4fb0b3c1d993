#include "lcp/nn/direct_model.h"

#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "lcp/physics/sliding_block.h"
#include "support/finite_differences.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class DirectModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(4);
    folder_ = std::filesystem::temp_directory_path() / ("torchlcp_model_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The model with the true f and G.
  static DirectModel truth(const DirectModelOptions& options) {
    DirectModel model(options);
    model->to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.zero_();
    const double c = options.dt() / options.mass();
    model->f->affine->weight.copy_(torch::tensor({{1., c}, {-1., -c}}, torch::kDouble));
    model->G->affine->bias.copy_(torch::tensor({0., -c, -c, 0.}, torch::kDouble));
    return model;
  }

  static DirectModel random_model(std::int64_t hidden) {
    DirectModel model(DirectModelOptions().hidden(hidden).velocity_scale(0.7).force_scale(4));
    model->to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.mul_(0.05);
    model->G->affine->bias.add_(torch::tensor({0., -1., -1., 0.}, torch::kDouble));
    model->f->affine->weight.add_(torch::tensor({{1., 1.}, {-1., -1.}}, torch::kDouble));
    return model;
  }

  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
  Tensor v_ = torch::linspace(-1.5, 1.5, 40, torch::kDouble);
  Tensor u_ = 6 * torch::sin(torch::linspace(0, 9, 40, torch::kDouble));
};

TEST_F(DirectModelTest, StepsLikeTheBlockWhoseParametersItHas) {
  for (const double mass : {1.0, 2.5}) {
    DirectModel model = truth(DirectModelOptions().mass(mass).dt(0.05).mu(0.4));
    const auto block = physics::SlidingBlock::of(mass, 0.05, 0.4, 9.81);
    const auto exact = physics::exact_step(v_, u_, block);
    const auto step = model->step(v_, u_);
    EXPECT_LT((step.v_next - exact.v_next).abs().max().item<double>(), 1e-12);
    EXPECT_LT((step.force - (exact.lambda_plus - exact.lambda_minus)).abs().max().item<double>(), 1e-10);
    EXPECT_TRUE(torch::equal(step.v_next == 0, exact.v_next == 0));
    EXPECT_TRUE((step.status == 0).all().item<bool>());

    const auto direct = physics::step(v_, u_, block, physics::SlidingBlockFormulation::kDirect).step;
    const Tensor x = model->forward(v_, u_, torch::stack({direct.lambda_plus, direct.lambda_minus}, -1));
    EXPECT_LT((x.select(-1, 0) - x.select(-1, 1) - exact.v_next).abs().max().item<double>(), 1e-12);
  }
}

TEST_F(DirectModelTest, DifferentiatesAStepInItsParameters) {
  for (const std::int64_t hidden : {0, 3}) {
    DirectModel model = random_model(hidden);
    std::vector<Tensor> values;
    for (const auto& parameter : model->parameters()) values.push_back(parameter.detach().clone());
    const Tensor loss = model->step(v_, u_).v_next;
    model->zero_grad();
    (loss * testing::weights_like(loss)).sum().backward();
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) {
      Tensor flat = parameter.view(-1);
      for (std::int64_t i = 0; i < flat.numel(); ++i) {
        const double x = flat[i].item<double>();
        const auto at = [&](double shifted) {
          flat[i] = shifted;
          const Tensor y = model->step(v_, u_).v_next;
          return (y * testing::weights_like(y)).sum().item<double>();
        };
        const double numeric = (at(x + 1e-6) - at(x - 1e-6)) / 2e-6;
        flat[i] = x;
        EXPECT_NEAR(parameter.grad().view(-1)[i].item<double>(), numeric, 1e-6 * std::max(1.0, std::abs(numeric)));
      }
    }
  }
}

TEST_F(DirectModelTest, ExportsWhatItComputes) {
  for (const std::int64_t hidden : {0, 5}) {
    for (const auto dtype : {torch::kDouble, torch::kFloat}) {
      DirectModel model = random_model(hidden);
      model->to(dtype);
      save_torchscript(model, file("model.pt"));
      torch::jit::Module script = torch::jit::load(file("model.pt"));
      const auto expected = model->step(v_.to(dtype), u_.to(dtype));
      const auto step = script.get_method("step")({v_, u_}).toTuple();  // double inputs, whatever the model's dtype
      EXPECT_TRUE(torch::allclose(step->elements()[0].toTensor(), expected.v_next, 1e-5, 1e-6));
      EXPECT_TRUE(torch::equal(step->elements()[2].toTensor(), expected.status));
      EXPECT_TRUE(torch::equal(script.forward({v_, u_}).toTensor(), step->elements()[0].toTensor()));
      EXPECT_EQ(script.forward({v_.view({8, 5}), u_[0]}).toTensor().sizes(), (std::vector<std::int64_t>{8, 5}));
      EXPECT_EQ(script.forward({v_[0], u_[0]}).toTensor().dim(), 0);
      EXPECT_EQ(script.attr("dt").toDouble(), 0.1);
      EXPECT_EQ(script.attr("mass").toDouble(), 1);
      EXPECT_EQ(script.attr("gravity").toDouble(), 9.81);
      EXPECT_EQ(script.attr("mu").toDouble(), 0.3);
      EXPECT_EQ(script.attr("format_version").toInt(), 1);
    }
  }
}

TEST_F(DirectModelTest, TrainsOnAfterLoading) {
  DirectModel model = random_model(0);
  save_torchscript(model, file("model.pt"));
  torch::jit::Module script = torch::jit::load(file("model.pt"));
  std::vector<Tensor> parameters;
  for (const auto& parameter : script.parameters()) parameters.push_back(parameter);
  EXPECT_EQ(parameters.size(), 4);
  torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(0.01));
  const Tensor target = physics::exact_step(v_, u_, physics::SlidingBlock::of(1, 0.1, 0.3, 9.81)).v_next;
  const auto loss = [&] { return (script.forward({v_, u_}).toTensor() - target).square().mean(); };
  const double before = loss().item<double>();
  for (int k = 0; k < 100; ++k) {
    optimizer.zero_grad();
    loss().backward();
    optimizer.step();
  }
  EXPECT_LT(loss().item<double>(), before / 10);
  script.save(file("again.pt"));
  EXPECT_TRUE(torch::equal(torch::jit::load(file("again.pt")).forward({v_, u_}).toTensor(),
                           script.forward({v_, u_}).toTensor()));
}

TEST_F(DirectModelTest, LeavesAnExistingFileWhereItCannotWrite) {
  DirectModel model = random_model(0);
  EXPECT_ANY_THROW(save_torchscript(model, file("no/such/folder.pt")));
  save_torchscript(model, file("model.pt"));
  std::filesystem::create_directory(file("model.pt.tmp"));  // the temporary cannot be opened
  EXPECT_ANY_THROW(save_torchscript(model, file("model.pt")));
  EXPECT_NO_THROW(torch::jit::load(file("model.pt")));
}

TEST_F(DirectModelTest, SaysWhatItIs) {
  std::ostringstream text;
  text << DirectModel(DirectModelOptions().mu(0.5).hidden(7));
  EXPECT_NE(text.str().find("lcp::nn::DirectModel(mass=1, dt=0.1, mu=0.5, gravity=9.81, hidden=7)"), std::string::npos)
      << text.str();
  EXPECT_NE(text.str().find("lcp::nn::StateMap(outputs=4, hidden=7)"), std::string::npos) << text.str();
}

TEST_F(DirectModelTest, RefusesImpossibleOptions) {
  EXPECT_THROW(DirectModel(DirectModelOptions().mass(0)), c10::Error);
  EXPECT_THROW(DirectModel(DirectModelOptions().dt(-1)), c10::Error);
  EXPECT_THROW(DirectModel(DirectModelOptions().mu(-0.1)), c10::Error);
  EXPECT_THROW(DirectModel(DirectModelOptions().hidden(-1)), c10::Error);
  EXPECT_THROW(StateMap(StateMapOptions(0)), c10::Error);
  EXPECT_THROW(StateMap(StateMapOptions(2).force_scale(0)), c10::Error);
}

}  // namespace
}  // namespace lcp::nn
