#include "network/black_box.h"

#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "run/process_group.h"
#include "run/progress.h"
#include "run/random.h"
#include "run/tasks.h"
#include "run/text.h"
#include "run/trainer.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kStepSizes[] = {1e-3, 3e-3, 1e-2};
constexpr struct {
  const char* activation;
  std::int64_t width, layers;
} kFamilies[] = {{"relu", 16, 1},  {"relu", 16, 2},  {"relu", 64, 1},  {"relu", 64, 2},
                 {"relu", 128, 1}, {"relu", 128, 2}, {"tanh", 16, 1},  {"tanh", 16, 2},
                 {"tanh", 64, 1},  {"tanh", 64, 2},  {"tanh", 128, 1}, {"tanh", 128, 2}};
static_assert(std::size(kFamilies) + 1 == kBlackBoxFamilies);

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

  void train(const Tensor& x, const Tensor& y, const BlackBoxOptions& options, at::Generator batches,
             const std::function<bool()>& stopped) {
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
    for (std::int64_t k = 0; k < options.iterations && !(stopped && stopped()); ++k) {
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

  // The network of that number.
  BlackBox one(std::int64_t number) const {
    BlackBox box{{}, activation_, {}, {}, {}, {}, 0};
    for (const Tensor& weight : weights_) box.weights.push_back(weight[number].clone());
    for (const Tensor& bias : biases_) box.biases.push_back(bias[number][0].clone());
    return box;
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

Tensor forward(const BlackBox& box, Tensor y) {
  for (std::size_t k = 0; k < box.weights.size(); ++k) {
    if (k > 0) y = box.activation == "relu" ? y.relu() : y.tanh();
    y = at::addmm(box.biases[k], y, box.weights[k]);
  }
  return y;
}

BlackBox affine_map(const Tensor& x, const Tensor& y) {
  const Tensor with_one = at::cat({x, at::ones_like(x.slice(1, 0, 1))}, 1);
  const Tensor fit = std::get<0>(torch::linalg_lstsq(with_one, y, {}, "gelsd"));
  return {"affine", "relu", {fit.slice(0, 0, -1)}, {fit[-1]}, {}, {}, 0};
}

}  // namespace

Tensor BlackBox::predict(const Tensor& x) const {
  const Tensor rows = (x / input_unit).reshape({-1, x.size(-1)});
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = output_unit.size(0);
  return (forward(*this, rows) * output_unit).view(shape);
}

Checkpoint BlackBox::save() const {
  Checkpoint checkpoint{{{"name", name}, {"activation", activation}, {"layers", weights.size()}},
                        {{"input_unit", input_unit}, {"output_unit", output_unit}}};
  // As a tensor, since JSON has no infinity.
  checkpoint.tensors["error"] = torch::tensor({validation_error}, torch::kDouble);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    checkpoint.tensors["weight." + std::to_string(i)] = weights[i];
    checkpoint.tensors["bias." + std::to_string(i)] = biases[i];
  }
  return checkpoint;
}

BlackBox BlackBox::load(const Checkpoint& checkpoint) {
  const auto tensor = [&](const std::string& name) { return checkpoint.tensors.at(name).to(torch::kDouble); };
  BlackBox box{checkpoint.state.at("name"), checkpoint.state.at("activation"), {}, {}, tensor("input_unit"),
               tensor("output_unit"),       tensor("error")[0].item<double>()};
  for (std::size_t i = 0; i < checkpoint.state.at("layers").get<std::size_t>(); ++i) {
    box.weights.push_back(tensor("weight." + std::to_string(i)));
    box.biases.push_back(tensor("bias." + std::to_string(i)));
  }
  return box;
}

BlackBox best_of_family(std::int64_t number, const Motion& training, const Motion& validation, const Tensor& input_unit,
                        const Tensor& output_unit, const BlackBoxOptions& options,
                        const std::function<bool()>& stopped) {
  const OneThread one_thread;
  const Tensor x = training.x / input_unit, y = training.v_next / output_unit;
  const Tensor x_validation = validation.x / input_unit, y_validation = validation.v_next / output_unit;
  const auto error_of = [&](const BlackBox& box) {
    return (forward(box, x_validation) - y_validation).square().mean().sqrt().item<double>();
  };
  BlackBox best;
  if (number % kBlackBoxFamilies == 0) {
    best = affine_map(x, y);
    best.validation_error = error_of(best);
  } else {
    const auto& family = kFamilies[number % kBlackBoxFamilies - 1];
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(family.layers), family.width);
    sizes.insert(sizes.begin(), x.size(1));
    sizes.push_back(y.size(1));
    Networks networks(sizes, family.activation, generator(options.seed, Stream::kBlackBoxes, 2 * number - 2));
    networks.train(x, y, options, generator(options.seed, Stream::kBlackBoxes, 2 * number - 1), stopped);
    const std::string shape =
        std::to_string(family.width) + (family.layers == 2 ? " x " + std::to_string(family.width) : "");
    for (std::size_t k = 0; k < std::size(kStepSizes); ++k) {
      BlackBox box = networks.one(static_cast<std::int64_t>(k));
      box.name = std::string(family.activation) + " " + shape + ", learning rate " + short_number(kStepSizes[k]);
      box.validation_error = error_of(box);
      if (k == 0 || box.validation_error < best.validation_error) best = box;
    }
  }
  best.input_unit = input_unit;
  best.output_unit = output_unit;
  return best;
}

const BlackBox& BlackBoxes::best() const {
  return std::min_element(
             trained.begin(), trained.end(),
             [](const auto& a, const auto& b) { return a.second.validation_error < b.second.validation_error; })
      ->second;
}

void train_in_passes(BlackBoxes& boxes, const PassOptions& options,
                     const std::function<BlackBox(std::int64_t number, std::int64_t iterations)>& train,
                     const std::function<void()>& changed, const std::function<bool()>& stopped) {
  using std::chrono::steady_clock;
  const auto has_begun = [&](std::int64_t pass) {
    return boxes.trained.lower_bound(pass * kBlackBoxFamilies) != boxes.trained.end();
  };
  ProcessGroup& processes = ProcessGroup::current();
  const auto at_once = static_cast<std::size_t>(options.threads * processes.size());
  for (std::int64_t pass = 0; pass == 0 || has_begun(pass) || boxes.seconds < options.seconds; ++pass) {
    const std::int64_t end = (pass + 1) * kBlackBoxFamilies;
    std::vector<std::int64_t> missing;
    for (std::int64_t k = pass * kBlackBoxFamilies; k < end; ++k) {
      const bool is_affine_again = pass > 0 && k % kBlackBoxFamilies == 0;  // which has no random start
      if (!boxes.trained.contains(k) && !is_affine_again) missing.push_back(k);
    }
    const auto done = static_cast<std::int64_t>(boxes.trained.size());
    Progress progress("black box", done, done + static_cast<std::int64_t>(missing.size()), options.quiet);
    for (std::size_t first = 0; first < missing.size(); first += at_once) {
      const auto start = steady_clock::now();
      const auto count = std::min(at_once, missing.size() - first);
      const auto group = divide_tasks(static_cast<std::int64_t>(count), options.threads, [&](std::int64_t k) {
        return train(missing[first + static_cast<std::size_t>(k)], options.iterations << pass).save();
      });
      if (processes.largest(stopped() ? 1 : 0) != 0) return;
      for (std::size_t k = 0; k < count; ++k) {
        boxes.trained.emplace(missing[first + k], BlackBox::load(group[k]));
      }
      boxes.seconds += processes.of_first(std::chrono::duration<double>(steady_clock::now() - start).count());
      changed();
      progress.show(static_cast<std::int64_t>(boxes.trained.size()), "");
    }
  }
}

}  // namespace lcp::training
