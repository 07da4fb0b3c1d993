// Minibatch training that can be stopped anywhere and continued bit for bit.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/adam.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/command_line.h"
#include "run/files.h"

namespace lcp::training {

/// Named scalars; the first is minimised.
using LossTerms = std::vector<std::pair<std::string, torch::Tensor>>;
using Figures = std::vector<std::pair<std::string, double>>;

/// Adam with a step size that falls to 0 along a cosine. The minibatches of an epoch are a permutation that depends on
/// the seed and the epoch alone, so a checkpoint needs no random state.
///
/// Files in --out: checkpoint.pt (parameters, optimizer, history, flags, fingerprint of the data; replaced in one
/// step), history.csv, and at the end config.json. What an earlier run left there stays until this one has trained: its
/// metrics.json is removed then, and that of this run, which the program writes last, says that all files belong to it.
class Trainer {
 public:
  /// Reads the checkpoint where --resume asks for it and there is one, and makes `line`'s flags agree with it. Throws
  /// a UsageError where they do not.
  Trainer(CommandLine& line, RunFlags& run, TrainingFlags& training);

  /// loss: of the samples with these indices [batch], int64; its second argument is the part of the iterations that is
  /// done, 0 to 1, for weights that change. evaluate: what else history.csv gets with each report.
  /// fingerprint: a number that tells this data set from others.
  /// Returns an exit status where a signal ended the training; the checkpoint is then up to date.
  std::optional<int> train(torch::nn::Module& model, std::int64_t samples, std::int64_t batch_size,
                           std::int64_t fingerprint, const std::function<LossTerms(const torch::Tensor&, double)>& loss,
                           const std::function<Figures()>& evaluate);

  const Table& history() const { return history_; }

 private:
  std::filesystem::path checkpoint() const { return run_.out / "checkpoint.pt"; }
  void load(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint);
  void save(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint) const;
  void report(const LossTerms& terms, const Figures& figures, double learning_rate);

  CommandLine& line_;
  RunFlags& run_;
  TrainingFlags& training_;
  bool resuming_ = false;
  std::int64_t iteration_ = 0;
  Table history_;
};

/// A number that changes with any bit of the tensors.
std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors);

}  // namespace lcp::training
