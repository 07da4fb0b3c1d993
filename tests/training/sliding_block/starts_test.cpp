#include "sliding_block/starts.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "sliding_block/friction_model.h"
#include "sliding_block/samples.h"

namespace lcp::training::starts_test {
namespace {

using torch::Tensor;

Samples mixed(double noise) {
  const SampleFlags flags{
      .known_forces = KnownForces::kNone, .samples = 200, .states = "mixed", .velocity_noise = noise};
  return load_data({}, {.mass = 1, .dt = 1, .mu = 1, .gravity = 1}, flags).training;
}

nn::TraditionalModel model_of(nn::Parameters parameters) {
  nn::TraditionalModel model(nn::TraditionalModelOptions().parameters(parameters).monotone(true).hidden(4));
  model->to(torch::kDouble);
  if (parameters != nn::Parameters::kFriction) {
    model->hold(with_monotone(held_entries("one_per_row")), nn::TraditionalModelImpl::true_rows(0));
  }
  return model;
}

TEST(StartsTest, DropTheWorseHalfWhenHalfOfTheTrainingIsDone) {
  const Tensor theta = torch::arange(5, torch::kDouble).view({5, 1});
  Starts starts(theta);
  int asked = 0;
  const auto errors = [&](const Tensor& of) {
    ++asked;
    return (of - 2.2).abs().squeeze(-1);
  };
  EXPECT_TRUE(torch::equal(starts.left(0.49, errors), theta));
  EXPECT_EQ(asked, 0);
  const Tensor kept = torch::tensor({2., 3., 1.}).to(torch::kDouble).view({3, 1});
  EXPECT_TRUE(torch::equal(starts.left(0.5, errors), kept));
  EXPECT_TRUE(torch::equal(starts.left(0.9, errors), kept));
  EXPECT_EQ(asked, 1);
  starts.left(0.9, errors).sum().backward();
  EXPECT_EQ(starts.parameters()[0].grad().sum().item<double>(), 3);

  Starts alone(theta.slice(0, 0, 1));
  EXPECT_TRUE(torch::equal(alone.left(1, errors), theta.slice(0, 0, 1)));
  EXPECT_EQ(asked, 1);
}

TEST(StartsTest, AreFinishedToRoundOff) {
  const Samples samples = mixed(0);
  for (const auto parameters :
       {nn::Parameters::kFriction, nn::Parameters::kRows, nn::Parameters::kStructured, nn::Parameters::kNetworks}) {
    torch::manual_seed(1);
    nn::TraditionalModel model = model_of(parameters);
    model->start(1.2, 0.02);
    const LearnedLcp lcp = learned_lcp(model, 0.1);
    const torch::NoGradGuard no_grad;
    const Tensor near = model->theta().unsqueeze(0);
    const Tensor far = near + 0.5;
    EXPECT_GT(lcp.errors(samples, near).item<double>(), 1e-2);
    const Tensor best = best_start(lcp, samples, at::cat({far, near}), 50, 0).unsqueeze(0);
    EXPECT_LT(lcp.errors(samples, best).item<double>(), 1e-9);
    EXPECT_TRUE(torch::equal(best_start(lcp, samples, at::cat({far, near}), 0, 0), near[0]));
  }
}

TEST(StartsTest, WithoutASolutionHaveAnInfiniteError) {
  nn::TraditionalModel model = model_of(nn::Parameters::kRows);
  model->start(1, 0);
  const torch::NoGradGuard no_grad;
  const Tensor unsolved = at::full_like(model->theta(), NAN);
  const LearnedLcp lcp = learned_lcp(model, 0);
  const Tensor errors = lcp.errors(mixed(0), at::stack({model->theta(), unsolved}));
  EXPECT_LT(errors[0].item<double>(), 1e-12);
  EXPECT_TRUE(std::isinf(errors[1].item<double>()));
}

}  // namespace
}  // namespace lcp::training::starts_test
