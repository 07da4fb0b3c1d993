// Minibatch training that can be stopped anywhere and continued bit for bit.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/adam.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoint.h"
#include "run/command_line.h"
#include "run/files.h"
#include "run/output_folder.h"

namespace lcp::training {

/// Named scalars; the first is minimised.
using LossTerms = std::vector<std::pair<std::string, torch::Tensor>>;
using Figures = std::vector<std::pair<std::string, double>>;

/// Where --resume is given and --out holds a checkpoint: reads it, and takes the flags that were not given from the run
/// that wrote it. Throws a UsageError where that was another program, or had other flags than those that were given.
std::optional<Checkpoint> resume(CommandLine& line, const RunFlags& run, const TrainingFlags& training);

/// Adam with a step size that falls to 0 along a cosine. The minibatches of an epoch are a permutation that depends on
/// the seed and the epoch alone, so that a checkpoint needs no random state.
///
/// Writes checkpoint.pt (parameters, buffers, the optimizer's state, history, flags, fingerprint of the data) and
/// history.csv.
class Trainer {
 public:
  /// checkpoint: what `resume` returned.
  Trainer(OutputFolder& out, const RunFlags& run, const TrainingFlags& training, std::optional<Checkpoint> checkpoint);

  /// loss: of the samples with these indices [batch], int64; its second argument is the completed part of the
  /// iterations, 0 to 1, for weights that change. evaluate: further columns of history.csv.
  /// fingerprint: a number that tells this data set from others.
  /// Returns an exit status where a signal ended the training; the checkpoint is then up to date.
  std::optional<int> train(torch::nn::Module& model, std::int64_t samples, std::int64_t batch_size,
                           std::int64_t fingerprint, const std::function<LossTerms(const torch::Tensor&, double)>& loss,
                           const std::function<Figures()>& evaluate);

  const Table& history() const { return history_; }

 private:
  void load(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint);
  void save(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint);
  void report(const LossTerms& terms, const Figures& figures, double learning_rate);

  OutputFolder& out_;
  const RunFlags& run_;
  const TrainingFlags& training_;
  const std::optional<Checkpoint> checkpoint_;  // of the run that this one continues
  std::int64_t iteration_ = 0;
  Table history_;
};

/// A number that changes with any bit of the tensors.
std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors);

}  // namespace lcp::training
