#include "run/trainer.h"

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <sstream>
#include <system_error>

#include "run/error.h"
#include "run/interrupt.h"
#include "run/one_thread.h"
#include "run/progress.h"
#include "run/random.h"
#include "run/text.h"

namespace lcp::training {
namespace {

constexpr std::int64_t kReports = 100;

// The samples of one epoch in their order.
torch::Tensor permutation(std::int64_t samples, std::int64_t seed, std::int64_t epoch) {
  return torch::randperm(samples, generator(seed, Stream::kMinibatches, epoch), torch::kLong);
}

torch::serialize::InputArchive open_checkpoint(const std::filesystem::path& path) {
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(path.string());
  } catch (const c10::Error&) {
    throw UsageError(path.string() + ": is no checkpoint of this program");
  }
  return archive;
}

nlohmann::json read_config(const std::filesystem::path& path) {
  auto archive = open_checkpoint(path);
  c10::IValue config;
  if (!archive.try_read("config", config)) throw UsageError(path.string() + ": is no checkpoint of this program");
  return nlohmann::json::parse(config.toStringRef());
}

}  // namespace

Trainer::Trainer(CommandLine& line, RunFlags& run, TrainingFlags& training)
    : line_(line), run_(run), training_(training) {
  std::error_code error;
  const bool exists = std::filesystem::exists(checkpoint(), error);
  if (error) throw UsageError("cannot read " + checkpoint().string() + ": " + error.message());
  resuming_ = training.resume && exists;
  if (resuming_) {
    const nlohmann::json config = read_config(checkpoint());
    if (config.value("program", "") != line.program()) {
      throw UsageError(checkpoint().string() + ": is of " + config.value("program", "another program") + ", not of " +
                       line.program());
    }
    line.agree_with(config, checkpoint());
  }
}

std::optional<int> Trainer::train(torch::nn::Module& model, std::int64_t samples, std::int64_t batch_size,
                                  std::int64_t data_fingerprint,
                                  const std::function<LossTerms(const torch::Tensor&, double)>& loss,
                                  const std::function<Figures()>& evaluate) {
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(training_.learning_rate));
  if (resuming_) {
    load(model, optimizer, data_fingerprint);
    if (!run_.quiet) std::cerr << "continuing at iteration " << iteration_ << std::endl;
  } else {
    if (!run_.quiet && training_.resume) {
      std::cerr << "no checkpoint in " << run_.out.string() << ": starting at the beginning" << std::endl;
    } else if (!run_.quiet && std::filesystem::exists(checkpoint())) {
      std::cerr << "replacing the run in " << run_.out.string() << "; --resume would have continued it" << std::endl;
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
  Progress progress("iteration", iteration_, total, run_.quiet);
  while (iteration_ < total) {
    if (const int signal = interrupt.signal(); signal != 0) {
      save(model, optimizer, data_fingerprint);
      if (history_.rows() > 0) write_csv(run_.out / "history.csv", history_);
      if (!run_.quiet) {
        std::cerr << "\nstopped at iteration " << iteration_ << "; to continue: " << line_.program() << " --out "
                  << run_.out.string() << " --resume" << std::endl;
      }
      return 128 + signal;
    }
    const double done = static_cast<double>(iteration_) / static_cast<double>(total);
    const double learning_rate = training_.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
    const auto report_now = [&](double part, double step_size) {
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
    optimizer.zero_grad();
    const torch::Tensor value = loss(order.slice(0, first, first + batch_size), done).front().second;
    if (!std::isfinite(value.item<double>())) {
      throw std::runtime_error("the loss is no finite number at iteration " + std::to_string(iteration_) +
                               "; a smaller --learning-rate may help");
    }
    value.backward();
    optimizer.step();
    ++iteration_;
    if (iteration_ == total) report_now(1, 0);
    if (iteration_ == total || (training_.checkpoint_every > 0 && iteration_ % training_.checkpoint_every == 0)) {
      save(model, optimizer, data_fingerprint);
      write_csv(run_.out / "history.csv", history_);
    }
    progress.show(iteration_, shown);
  }
  // From here to the new metrics.json the folder holds results of two runs; without the old one it says so.
  std::filesystem::remove(run_.out / "metrics.json");
  write_csv(run_.out / "history.csv", history_);
  write_json(run_.out / "config.json", line_.config());
  return std::nullopt;
}

void Trainer::report(const LossTerms& terms, const Figures& figures, double learning_rate) {
  Figures row = {{"iteration", static_cast<double>(iteration_)}, {"learning_rate", learning_rate}};
  for (const auto& [name, value] : terms) row.emplace_back(name, value.item<double>());
  row.insert(row.end(), figures.begin(), figures.end());
  if (history_.names.empty()) {
    for (const auto& figure : row) history_.add(figure.first, {});
  }
  for (std::size_t k = 0; k < row.size(); ++k) history_.columns.at(k).push_back(row[k].second);
}

void Trainer::load(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t data_fingerprint) {
  auto archive = open_checkpoint(checkpoint());
  c10::IValue iteration, data, names;
  torch::Tensor rows;
  torch::serialize::InputArchive model_archive, optimizer_archive;
  if (!archive.try_read("iteration", iteration) || !archive.try_read("data", data) ||
      !archive.try_read("history_names", names) || !archive.try_read("history", rows) ||
      !archive.try_read("model", model_archive) || !archive.try_read("optimizer", optimizer_archive)) {
    throw UsageError(checkpoint().string() + ": is no checkpoint of this program");
  }
  if (data.toInt() != data_fingerprint) {
    throw UsageError(checkpoint().string() + ": was made with other data than these flags lead to now");
  }
  model.load(model_archive);
  optimizer.load(optimizer_archive);
  iteration_ = iteration.toInt();
  std::stringstream list(names.toStringRef());
  for (std::string name; std::getline(list, name, ',');) history_.add(name, {});
  for (std::size_t k = 0; k < history_.names.size(); ++k) {
    const torch::Tensor column = rows[static_cast<std::int64_t>(k)].contiguous();
    history_.columns[k].assign(column.data_ptr<double>(), column.data_ptr<double>() + column.numel());
  }
}

void Trainer::save(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t data_fingerprint) const {
  torch::serialize::OutputArchive archive, model_archive, optimizer_archive;
  model.save(model_archive);
  optimizer.save(optimizer_archive);
  archive.write("model", model_archive);
  archive.write("optimizer", optimizer_archive);
  archive.write("iteration", c10::IValue(iteration_));
  archive.write("data", c10::IValue(data_fingerprint));
  archive.write("config", c10::IValue(line_.config().dump()));
  std::string names;
  std::vector<torch::Tensor> columns = {torch::empty({0, static_cast<std::int64_t>(history_.rows())}, torch::kDouble)};
  for (std::size_t k = 0; k < history_.names.size(); ++k) {
    names.append(k ? "," : "").append(history_.names[k]);
    columns.push_back(torch::tensor(history_.columns[k], torch::kDouble).unsqueeze(0));
  }
  archive.write("history_names", c10::IValue(names));
  archive.write("history", torch::cat(columns));
  std::ostringstream stream;
  archive.save_to(stream);
  write_file(checkpoint(), stream.str());
}

std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the bytes
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor data = tensor.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(data.const_data_ptr());
    for (std::size_t k = 0; k < data.nbytes(); ++k) hash = (hash ^ bytes[k]) * 0x100000001b3u;
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace lcp::training
