#include "run/trainer.h"

#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <numbers>
#include <system_error>
#include <utility>

#include "run/error.h"
#include "run/interrupt.h"
#include "run/process_group.h"
#include "run/progress.h"
#include "run/random.h"
#include "run/tasks.h"
#include "run/text.h"

namespace lcp::training {
namespace {

constexpr std::int64_t kReports = 100;  // history.csv gets about this many rows
constexpr const char* kCheckpoint = "checkpoint.pt";
constexpr const char* kHistory = "history.csv";

// The order of the samples in one epoch.
torch::Tensor permutation(std::int64_t samples, std::int64_t seed, std::int64_t epoch) {
  return torch::randperm(samples, generator(seed, Stream::kMinibatches, epoch), torch::kLong);
}

// The tensors of a module by their names in a checkpoint.
std::map<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& parameter : model.named_parameters()) tensors["model." + parameter.key()] = parameter.value();
  for (const auto& buffer : model.named_buffers()) tensors["model." + buffer.key()] = buffer.value();
  return tensors;
}

// The tensors of Adam's state, which exists after its first step: three for each parameter of the module.
std::map<std::string, torch::Tensor> tensors_of(torch::optim::Adam& optimizer, const torch::nn::Module& model) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& parameter : model.named_parameters()) {
    const auto found = optimizer.state().find(parameter.value().unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    const auto& state = static_cast<const torch::optim::AdamParamState&>(*found->second);
    const std::string name = "adam." + parameter.key();
    tensors[name + ".step"] = torch::tensor(state.step(), torch::kLong);
    tensors[name + ".exp_avg"] = state.exp_avg();
    tensors[name + ".exp_avg_sq"] = state.exp_avg_sq();
  }
  return tensors;
}

}  // namespace

double cosine_step_size(double first, double done) { return first * 0.5 * (1 + std::cos(std::numbers::pi * done)); }

std::optional<Checkpoint> resume(CommandLine& line, const FolderLock& lock, bool wanted) {
  const std::filesystem::path path = lock.path() / kCheckpoint;
  std::error_code error;
  ProcessGroup& group = ProcessGroup::current();
  const bool exists = group.is_first() && std::filesystem::exists(path, error);
  if (error) throw UsageError("cannot read " + path.string() + ": " + error.message());
  if (group.largest(wanted && exists ? 1 : 0) == 0) return std::nullopt;
  Checkpoint checkpoint = Checkpoint::decode(group.of_first(group.is_first() ? read_file(path) : ""), path);
  const nlohmann::json config = checkpoint.state.value("config", nlohmann::json());
  if (!config.is_object() || !config.contains("program")) refuse_checkpoint(path);
  if (config["program"] != line.program()) {
    throw UsageError(path.string() + ": is of " + config["program"].dump() + ", not of " + line.program());
  }
  line.agree_with(config, path);
  return checkpoint;
}

Trainer::Trainer(OutputFolder& out, const RunFlags& run, const TrainingFlags& training,
                 std::optional<Checkpoint> checkpoint)
    : out_(out), run_(run), training_(training), checkpoint_(std::move(checkpoint)) {}

std::optional<int> Trainer::train(torch::nn::Module& model, std::int64_t samples, std::int64_t batch_size,
                                  std::int64_t data_fingerprint,
                                  const std::function<LossTerms(const torch::Tensor&, double)>& loss,
                                  const std::function<NamedValues()>& evaluate, const StepOptions& steps) {
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(training_.learning_rate));
  if (checkpoint_) {
    load(model, optimizer, data_fingerprint);
    out_.continue_earlier_run();
    if (!run_.quiet) std::cerr << "continuing at iteration " << iteration_ << std::endl;
  } else {
    if (!run_.quiet && training_.resume) {
      std::cerr << "no checkpoint in " << out_.path().string() << ": starting at the beginning" << std::endl;
    } else if (!run_.quiet && out_.has_earlier_run()) {
      std::cerr << "replacing the run in " << out_.path().string() << "; --resume would have continued it" << std::endl;
    }
    save(model, optimizer, data_fingerprint);
  }

  const std::int64_t total = training_.iterations;
  const std::int64_t report_every = std::max<std::int64_t>(1, total / kReports);
  batch_size = std::min(batch_size, samples);
  const std::int64_t batches = samples / batch_size;
  const torch::Tensor everything = torch::arange(samples);
  torch::Tensor order;
  std::int64_t epoch_of_order = -1;
  std::string shown;

  const Interrupt interrupt;
  ProcessGroup& processes = ProcessGroup::current();
  std::int64_t signal = 0;
  Progress progress("iteration", iteration_, total, run_.quiet);
  while (iteration_ < total && (signal = processes.largest(interrupt.signal())) == 0) {
    const double done = static_cast<double>(iteration_) / static_cast<double>(total);
    const double learning_rate = steps.size(training_.learning_rate, done);
    const auto report_now = [&](double part, double step_size) {
      if (!processes.is_first()) return;
      const torch::NoGradGuard no_grad;
      const OneThread one_thread;
      report(loss(everything, part), evaluate(), step_size);
      shown = "loss " + short_number(history_.columns[2].back());
    };
    if (iteration_ % report_every == 0) report_now(done, learning_rate);
    const std::int64_t epoch = iteration_ / batches;
    if (epoch != epoch_of_order) {
      order = permutation(samples, run_.seed, epoch);
      epoch_of_order = epoch;
    }
    const std::int64_t first = iteration_ % batches * batch_size;
    for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate);
    const NamedValues terms = differentiate(model, order.slice(0, first, first + batch_size), steps.chunk,
                                            [&](const torch::Tensor& rows) { return loss(rows, done); });
    if (!std::isfinite(terms.front().second)) {
      throw std::runtime_error("the loss is no finite number at iteration " + std::to_string(iteration_) +
                               "; a smaller --learning-rate may help");
    }
    if (std::isfinite(steps.largest_gradient)) {
      torch::nn::utils::clip_grad_norm_(model.parameters(), steps.largest_gradient, 2, /*error_if_nonfinite=*/true);
    }
    optimizer.step();
    if (steps.after) steps.after(terms);
    ++iteration_;
    if (iteration_ == total) report_now(1, 0);
    if (iteration_ < total && training_.checkpoint_every > 0 && iteration_ % training_.checkpoint_every == 0) {
      save(model, optimizer, data_fingerprint);
    }
    progress.show(iteration_, shown);
  }
  save(model, optimizer, data_fingerprint);
  if (iteration_ == total) signal = processes.largest(interrupt.signal());
  if (signal == 0) return std::nullopt;
  if (!run_.quiet) {
    std::cerr << "\nstopped at iteration " << iteration_ << "; to continue: " << resume_command(out_.path().string())
              << std::endl;
  }
  return static_cast<int>(128 + signal);
}

// Gives the parameters the gradient of the loss of these samples, and returns its terms. Each chunk is computed by one
// process. Its terms, whether the parameters have gradients and these gradients are one row of numbers, which all
// processes then have of all chunks.
NamedValues Trainer::differentiate(torch::nn::Module& model, const torch::Tensor& rows, std::int64_t chunk,
                                   const std::function<LossTerms(const torch::Tensor&)>& loss) const {
  ProcessGroup& processes = ProcessGroup::current();
  const std::vector<torch::Tensor> parameters = model.parameters();
  const std::vector<torch::Tensor> chunks = rows.split(chunk);
  const auto count = static_cast<std::int64_t>(chunks.size());
  const auto options = parameters.front().options().requires_grad(false);
  std::vector<std::string> names;
  std::vector<torch::Tensor> own;
  // A process without a chunk evaluates the loss of one that another has, too, since a loss may change its model.
  for (std::int64_t k = processes.rank(); k < count || own.empty(); k += processes.size()) {
    const bool counts = k < count;
    const torch::AutoGradMode grad(counts);
    model.zero_grad();
    const torch::Tensor& samples = chunks[static_cast<std::size_t>(k % count)];
    const LossTerms terms = loss(samples);
    const double weight = static_cast<double>(samples.size(0)) / static_cast<double>(rows.size(0));
    if (counts) (weight * terms.front().second).backward();
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> numbers;
    names.clear();
    for (const auto& [name, value] : terms) {
      names.push_back(name);
      numbers.push_back((weight * value).detach().to(options).reshape({1}));
    }
    for (const torch::Tensor& parameter : parameters) {
      const bool has_gradient = parameter.grad().defined();
      numbers.push_back(torch::full({1}, has_gradient ? 1 : 0, options));
      numbers.push_back(has_gradient ? parameter.grad().flatten() : torch::zeros({parameter.numel()}, options));
    }
    own.push_back(torch::cat(numbers));
  }
  const torch::NoGradGuard no_grad;
  const std::int64_t most = (count + processes.size() - 1) / processes.size();  // chunks of a process
  while (static_cast<std::int64_t>(own.size()) < most) own.push_back(torch::zeros_like(own.front()));
  const std::vector<torch::Tensor> all = processes.gather(torch::stack(own));
  torch::Tensor sum = all[0][0];
  for (std::int64_t k = 1; k < count; ++k) {
    sum = sum + all[static_cast<std::size_t>(k % processes.size())][k / processes.size()];
  }
  NamedValues means;
  std::int64_t place = 0;
  for (const std::string& name : names) means.emplace_back(name, sum[place++].item<double>());
  for (const torch::Tensor& parameter : parameters) {
    const bool has_gradient = sum[place++].item<double>() > 0;
    const torch::Tensor gradient = sum.slice(0, place, place + parameter.numel()).view_as(parameter);
    parameter.mutable_grad() = has_gradient ? gradient : torch::Tensor();
    place += parameter.numel();
  }
  return means;
}

void Trainer::report(const LossTerms& terms, const NamedValues& figures, double learning_rate) {
  NamedValues row = {{"iteration", static_cast<double>(iteration_)}, {"learning_rate", learning_rate}};
  for (const auto& [name, value] : terms) row.emplace_back(name, value.item<double>());
  row.insert(row.end(), figures.begin(), figures.end());
  if (history_.names.empty()) {
    for (const auto& figure : row) history_.add(figure.first, {});
  }
  if (history_.names.size() != row.size()) refuse_checkpoint(out_ / kCheckpoint);
  for (std::size_t k = 0; k < row.size(); ++k) history_.columns.at(k).push_back(row[k].second);
}

void Trainer::load(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t data_fingerprint) {
  const torch::NoGradGuard no_grad;
  const auto& state = checkpoint_->state;
  const auto& tensors = checkpoint_->tensors;
  const auto require = [&](bool condition) {
    if (!condition) refuse_checkpoint(out_ / kCheckpoint);
  };
  const auto read = [&](const std::string& name, const torch::Tensor& target) {
    const auto found = tensors.find(name);
    require(found != tensors.end() && found->second.scalar_type() == target.scalar_type() &&
            found->second.sizes() == target.sizes());
    return target.copy_(found->second);
  };
  for (const char* name : {"iteration", "data"}) require(state.contains(name) && state[name].is_number_integer());
  checkpoint_->require_data(data_fingerprint, out_ / kCheckpoint);
  iteration_ = state["iteration"];
  require(iteration_ >= 0 && iteration_ <= training_.iterations);

  for (const auto& [name, tensor] : tensors_of(model)) read(name, tensor);
  for (const auto& parameter : model.named_parameters()) {
    const std::string name = "adam." + parameter.key();
    if (!tensors.contains(name + ".step")) continue;
    auto adam = std::make_unique<torch::optim::AdamParamState>();
    adam->step(read(name + ".step", torch::empty({}, torch::kLong)).item<std::int64_t>());
    adam->exp_avg(read(name + ".exp_avg", torch::empty_like(parameter.value())));
    adam->exp_avg_sq(read(name + ".exp_avg_sq", torch::empty_like(parameter.value())));
    optimizer.state()[parameter.value().unsafeGetTensorImpl()] = std::move(adam);
  }

  const auto rows = tensors.find("history");
  require(state.contains("history") && state["history"].is_array() && rows != tensors.end());
  const torch::Tensor& history = rows->second;
  require(history.dim() == 2 && history.scalar_type() == torch::kDouble &&
          history.size(0) == static_cast<std::int64_t>(state["history"].size()));
  for (std::int64_t k = 0; k < history.size(0); ++k) {
    const nlohmann::json& name = state["history"][static_cast<std::size_t>(k)];
    require(name.is_string());
    const double* column = history[k].const_data_ptr<double>();
    history_.add(name, {column, column + history.size(1)});
  }
}

void Trainer::save(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t data_fingerprint) {
  if (!ProcessGroup::current().is_first()) return;
  Checkpoint checkpoint{
      {{"config", out_.flags()}, {"iteration", iteration_}, {"data", data_fingerprint}, {"history", history_.names}},
      tensors_of(model)};
  checkpoint.tensors.merge(tensors_of(optimizer, model));
  std::vector<torch::Tensor> columns = {torch::empty({0, static_cast<std::int64_t>(history_.rows())}, torch::kDouble)};
  for (const auto& column : history_.columns) columns.push_back(torch::tensor(column, torch::kDouble).unsqueeze(0));
  checkpoint.tensors["history"] = torch::cat(columns);
  out_.write(kCheckpoint, checkpoint.encode());
  if (history_.rows() > 0) out_.write_csv(kHistory, history_);
}

}  // namespace lcp::training
