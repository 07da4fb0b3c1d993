#include "network/black_box.h"

#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "run/one_thread.h"
#include "run/random.h"
#include "run/text.h"
#include "run/trainer.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kStepSizes[] = {1e-3, 3e-3, 1e-2};
constexpr std::int64_t kWidths[] = {16, 64, 128};
constexpr const char* kActivations[] = {"relu", "tanh"};
constexpr std::int64_t kLayers[] = {1, 2};
constexpr auto kNetworks = static_cast<std::int64_t>(std::size(kWidths) * std::size(kActivations) * std::size(kLayers));

// Networks of one architecture, one for each step size, side by side in the first dimension.
class Networks {
 public:
  Networks(std::vector<std::int64_t> sizes, std::string activation, const at::Generator& generator)
      : activation_(std::move(activation)) {
    const auto count = static_cast<std::int64_t>(std::size(kStepSizes));
    for (std::size_t k = 0; k + 1 < sizes.size(); ++k) {
      const double deviation = std::sqrt(2 / static_cast<double>(sizes[k]));
      weights_.push_back(deviation * torch::randn({count, sizes[k], sizes[k + 1]}, generator, torch::kDouble));
      biases_.push_back(torch::zeros({count, 1, sizes[k + 1]}, torch::kDouble));
    }
  }

  // [networks, n, d] for x [n, p].
  Tensor forward(const Tensor& x) const {
    Tensor y = x.expand({weights_.front().size(0), -1, -1});
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      if (k > 0) y = activation_ == "relu" ? y.relu() : y.tanh();
      y = at::baddbmm(biases_[k], y, weights_[k]);
    }
    return y;
  }

  void train(const Tensor& x, const Tensor& y, const BlackBoxOptions& options, at::Generator batches) {
    // One leaf for each network, since each has its own step size.
    std::vector<torch::optim::OptimizerParamGroup> groups;
    std::vector<std::vector<Tensor>> leaves;
    for (std::size_t n = 0; n < std::size(kStepSizes); ++n) {
      std::vector<Tensor> parameters;
      for (const auto* tensors : {&weights_, &biases_}) {
        for (const Tensor& t : *tensors) parameters.push_back(t[static_cast<std::int64_t>(n)].clone().requires_grad_());
      }
      leaves.push_back(parameters);
      groups.emplace_back(parameters, std::make_unique<torch::optim::AdamOptions>(kStepSizes[n]));
    }
    torch::optim::Adam adam(groups);
    const std::int64_t batch_size = std::min(options.batch_size, x.size(0));
    for (std::int64_t k = 0; k < options.iterations; ++k) {
      const double done = static_cast<double>(k) / static_cast<double>(options.iterations);
      for (std::size_t n = 0; n < groups.size(); ++n) {
        adam.param_groups()[n].options().set_lr(cosine_step_size(kStepSizes[n], done));
      }
      gather(leaves);
      adam.zero_grad();
      const Tensor rows = torch::randint(x.size(0), {batch_size}, batches, torch::kLong);
      (forward(x.index_select(0, rows)) - y.index_select(0, rows)).square().mean({1, 2}).sum().backward();
      adam.step();
    }
    const torch::NoGradGuard no_grad;
    gather(leaves);
  }

 private:
  void gather(const std::vector<std::vector<Tensor>>& leaves) {
    for (std::size_t k = 0; k < 2 * weights_.size(); ++k) {
      std::vector<Tensor> all;
      all.reserve(leaves.size());
      for (const auto& parameters : leaves) all.push_back(parameters[k]);
      (k < weights_.size() ? weights_[k] : biases_[k - weights_.size()]) = at::stack(all);
    }
  }

  std::string activation_;
  std::vector<Tensor> weights_, biases_;
};

}  // namespace

BlackBox best_black_box(const Motion& training, const Motion& validation, const Tensor& input_unit,
                        const Tensor& output_unit, const BlackBoxOptions& options,
                        const std::function<void(double)>& progress) {
  const OneThread one_thread;
  const Tensor x = training.x / input_unit, y = training.v_next / output_unit;
  const Tensor x_validation = validation.x / input_unit, y_validation = validation.v_next / output_unit;
  const auto with_one = [](const Tensor& states) { return at::cat({states, at::ones_like(states.slice(1, 0, 1))}, 1); };

  const Tensor fit = std::get<0>(torch::linalg_lstsq(with_one(x), y, {}, "gelsd"));
  BlackBox best{"affine",
                (at::matmul(with_one(x_validation), fit) - y_validation).square().mean().sqrt().item<double>(),
                [=](const Tensor& states) { return at::matmul(with_one(states / input_unit), fit) * output_unit; }};
  std::int64_t k = 0;
  for (const char* const activation : kActivations) {
    for (const std::int64_t width : kWidths) {
      for (const std::int64_t layers : kLayers) {
        if (progress) progress(static_cast<double>(k) / kNetworks);
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(layers), width);
        sizes.insert(sizes.begin(), x.size(1));
        sizes.push_back(y.size(1));
        Networks networks(sizes, activation, generator(options.seed, Stream::kBlackBoxes, 2 * k));
        networks.train(x, y, options, generator(options.seed, Stream::kBlackBoxes, 2 * k + 1));
        ++k;
        const Tensor error = (networks.forward(x_validation) - y_validation).square().mean({1, 2}).sqrt();
        const auto chosen = error.nan_to_num(INFINITY, INFINITY).argmin().item<std::int64_t>();
        if (!(error[chosen].item<double>() < best.validation_error)) continue;
        const std::string shape = std::to_string(width) + (layers == 2 ? " x " + std::to_string(width) : "");
        best = {std::string(activation) + " " + shape + ", learning rate " + short_number(kStepSizes[chosen]),
                error[chosen].item<double>(),
                [=](const Tensor& states) { return networks.forward(states / input_unit)[chosen] * output_unit; }};
      }
    }
  }
  return best;
}

}  // namespace lcp::training
