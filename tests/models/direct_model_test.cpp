#include "lcp/nn/direct_model.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/optim/adam.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>

#include "lcp/physics/sliding_block.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::nn {
namespace {

using testing::everywhere;
using testing::largest;
using testing::numbers;
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
    model->f->affine->weight.copy_(numbers({1, c, -1, -c}).view({2, 2}));
    const bool slack = options.forces() == DirectForces::kSlack;
    if (slack) model->f->affine->bias.fill_(-c * options.max_friction());
    model->G->affine->bias.copy_(slack ? numbers({c, 0, 0, c}) : numbers({0, -c, -c, 0}));
    return model;
  }

  // A model near that of a true block, so that its LCPs have solutions.
  static DirectModel random_model(const DirectModelOptions& options) {
    DirectModel model(DirectModelOptions(options).velocity_scale(0.7).force_scale(4));
    model->to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.mul_(0.05);
    const bool slack = options.forces() == DirectForces::kSlack;
    model->G->affine->bias.add_(slack ? numbers({1, 0, 0, 1}) : numbers({0, -1, -1, 0}));
    model->f->affine->weight.add_(numbers({1, 1, -1, -1}).view({2, 2}));
    return model;
  }

  static std::vector<DirectModelOptions> kinds() {
    const DirectModelOptions affine;
    return {affine, DirectModelOptions(affine).hidden(3), DirectModelOptions(affine).hidden(3).bias(false),
            DirectModelOptions(affine).forces(DirectForces::kSlack),
            DirectModelOptions(affine).forces(DirectForces::kSlack).bias(false)};
  }

  // f and a constant G of least squares, the rows of [f|G], each (v, u, 1, p_1, p_2): [2, 5].
  static Tensor least_squares(const Tensor& v, const Tensor& u, const Tensor& p, const Tensor& v_next) {
    const Tensor features = torch::cat({torch::stack({v, u, torch::ones_like(v)}, -1), p}, -1);
    const Tensor target = torch::stack({v_next.relu(), (-v_next).relu()}, -1);
    return std::get<0>(torch::linalg_lstsq(features, target)).t();
  }

  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
  Tensor v_ = torch::linspace(-1.5, 1.5, 40, torch::kDouble);
  Tensor u_ = 6 * torch::sin(torch::linspace(0, 9, 40, torch::kDouble));
};

TEST_F(DirectModelTest, StepsLikeTheBlockWhoseParametersItHas) {
  for (const double mass : {1.0, 2.5}) {
    const auto block = physics::SlidingBlock::of(mass, 0.05, 0.4, 9.81);
    const auto exact = physics::exact_step(v_, u_, block);
    const auto direct = physics::step(v_, u_, block, physics::SlidingBlockFormulation::kDirect).step;
    const Tensor lambda = torch::stack({direct.lambda_plus, direct.lambda_minus}, -1);
    for (const DirectForces forces : {DirectForces::kFriction, DirectForces::kSlack}) {
      DirectModel model = truth(DirectModelOptions().mass(mass).dt(0.05).mu(0.4).forces(forces));
      const auto step = model->step(v_, u_);
      EXPECT_LT(largest(step.v_next - exact.v_next), 1e-12);
      EXPECT_LT(largest(step.force - (exact.lambda_plus - exact.lambda_minus)), 1e-10);
      EXPECT_TRUE(torch::equal(step.v_next == 0, exact.v_next == 0));
      EXPECT_TRUE(everywhere(step.status == 0));

      const Tensor x = model->forward(v_, u_, model->options.forces_of(lambda));
      EXPECT_LT(largest(x - torch::stack({exact.v_next.relu(), (-exact.v_next).relu()}, -1)), 1e-12);
    }
  }
}

TEST_F(DirectModelTest, NamesItsForces) {
  const Tensor lambda = numbers({1, -4});
  const DirectModelOptions block = DirectModelOptions().mass(2).mu(0.5).gravity(10);
  EXPECT_TRUE(torch::equal(block.forces_of(lambda), lambda));
  EXPECT_TRUE(torch::equal(DirectModelOptions(block).forces(DirectForces::kSlack).forces_of(lambda), numbers({14, 9})));
}

TEST_F(DirectModelTest, HasNoConstantPartWithoutABias) {
  for (const std::int64_t hidden : {0, 3}) {
    DirectModel model(DirectModelOptions().bias(false).hidden(hidden));
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.fill_(0.3);
    const Tensor zero = torch::zeros({1});
    EXPECT_TRUE(everywhere(model->f_of(zero, zero) == 0));
    EXPECT_TRUE(everywhere(model->G_of(zero, zero) != 0));
  }
}

// The data determine f and G. Physical forces are the exception: no affine f and constant G fit them.
TEST_F(DirectModelTest, IsTheLeastSquaresFitOfItsForces) {
  const Tensor v = torch::randn({400}, torch::kDouble), u = 4 * torch::randn({400}, torch::kDouble);
  const auto block = physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const auto direct = physics::step(v, u, block, physics::SlidingBlockFormulation::kDirect).step;
  const auto exact = physics::exact_step(v, u, block);
  const Tensor x = torch::stack({exact.v_next.relu(), (-exact.v_next).relu()}, -1);
  for (const DirectForces forces : {DirectForces::kFriction, DirectForces::kSlack}) {
    const DirectModelOptions options = DirectModelOptions().forces(forces);
    const Tensor p = options.forces_of(torch::stack({direct.lambda_plus, direct.lambda_minus}, -1));
    DirectModel model = truth(options);
    const Tensor true_rows =
        torch::cat({model->f->affine->weight, model->f->affine->bias.unsqueeze(-1), model->G_of(v[0], u[0])}, -1);
    EXPECT_LT(largest(least_squares(v, u, p, exact.v_next) - true_rows), 1e-10);

    const Tensor physical = options.forces_of(torch::stack({exact.lambda_plus, exact.lambda_minus}, -1));
    const Tensor rows = least_squares(v, u, physical, exact.v_next);
    const Tensor fitted =
        torch::matmul(torch::cat({torch::stack({v, u, torch::ones_like(v)}, -1), physical}, -1), rows.t());
    EXPECT_GT((fitted - x).square().mean().sqrt().item<double>(), 0.1);
    // The difference v+ - v- = v_next is fitted, since it is affine in the friction force.
    EXPECT_LT(largest(fitted.select(-1, 0) - fitted.select(-1, 1) - exact.v_next), 1e-12);
  }
}

TEST_F(DirectModelTest, DifferentiatesAStepInItsParameters) {
  for (const DirectModelOptions& options : kinds()) {
    DirectModel model = random_model(options);
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
  for (const DirectModelOptions& options : kinds()) {
    for (const auto dtype : {torch::kDouble, torch::kFloat}) {
      DirectModel model = random_model(options);
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
      EXPECT_EQ(script.attr("format_version").toInt(), 2);
    }
  }
}

TEST_F(DirectModelTest, TrainsOnAfterLoading) {
  DirectModel model = random_model({});
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
  DirectModel model = random_model({});
  EXPECT_ANY_THROW(save_torchscript(model, file("no/such/folder.pt")));
  save_torchscript(model, file("model.pt"));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{100, before.rlim_max};  // bytes that a file may have
  setrlimit(RLIMIT_FSIZE, &limited);
  EXPECT_THROW(save_torchscript(model, file("model.pt")), std::system_error);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NO_THROW(torch::jit::load(file("model.pt")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(DirectModelTest, SaysWhatItIs) {
  std::ostringstream text;
  text << DirectModel(DirectModelOptions().mu(0.5).hidden(7).bias(false))
       << DirectModel(DirectModelOptions().forces(DirectForces::kSlack));
  for (const char* part :
       {"lcp::nn::DirectModel(mass=1, dt=0.1, mu=0.5, gravity=9.81, forces=friction, hidden=7)",
        "lcp::nn::DirectModel(mass=1, dt=0.1, mu=0.3, gravity=9.81, forces=slack, hidden=0)",
        "lcp::nn::StateMap(outputs=2, hidden=7, bias=false)", "lcp::nn::StateMap(outputs=4, hidden=7, bias=true)"}) {
    EXPECT_NE(text.str().find(part), std::string::npos) << text.str();
  }
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
