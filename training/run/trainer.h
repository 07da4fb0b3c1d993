// Minibatch training that can be stopped at any iteration and resumed with bitwise the same result.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/adam.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoint.h"
#include "run/command_line.h"
#include "run/files.h"
#include "run/folder_lock.h"
#include "run/output_folder.h"

namespace lcp::training {

/// Named scalars; the first is minimised.
using LossTerms = std::vector<std::pair<std::string, torch::Tensor>>;
using NamedValues = std::vector<std::pair<std::string, double>>;

/// A step size that falls from `first` to 0 along a cosine, when the fraction `done` of the iterations is completed.
double cosine_step_size(double first, double done);

/// Where --resume is given (`wanted`) and the folder --out, whose lock is held, has a checkpoint: reads it, and takes
/// the flags that were not given from the run that wrote it. The first process of a group reads it for all. Throws a
/// UsageError where another program wrote it, or where a flag that was given differs from that run's.
std::optional<Checkpoint> resume(CommandLine& line, const FolderLock& lock, bool wanted);

/// The samples of a chunk, or samples times starts, where none needs an LCP solved: with fewer, a good part of the time
/// goes into the calls of tensor operations.
constexpr std::int64_t kSamplesOfAChunk = 16384;

/// How an iteration changes the parameters.
struct StepOptions {
  /// Of the first step size and the completed fraction of the iterations.
  std::function<double(double, double)> size = cosine_step_size;

  /// The Euclidean norm of all gradients, to which larger ones are scaled down.
  double largest_gradient = std::numeric_limits<double>::infinity();

  /// The samples of a minibatch are cut into chunks of at most this many, which are divided among the processes. The
  /// loss is the mean of those of the chunks, each weighted by its number of samples.
  std::int64_t chunk = kSamplesOfAChunk;

  /// Called after each step, in each process, with the weighted means of the terms of the loss.
  std::function<void(const NamedValues& terms)> after = nullptr;
};

/// Adam. The minibatches of an epoch are a permutation that depends on
/// the seed and the epoch alone, so that a checkpoint needs no random state.
///
/// Writes checkpoint.pt (parameters, buffers, the optimizer's state, history, flags, fingerprint of the data) and
/// history.csv.
///
/// A group of processes (process_group.h) trains together: the gradients of the chunks are collected on each and summed
/// in the order of the chunks, and each makes the same step, so that the result does not depend on their number. Only
/// the first one reports.
class Trainer {
 public:
  /// checkpoint: the result of `resume`.
  Trainer(OutputFolder& out, const RunFlags& run, const TrainingFlags& training, std::optional<Checkpoint> checkpoint);

  /// loss: the loss of the samples with these indices, [batch], int64, a mean over them. Its second argument is the
  ///   completed fraction of the iterations, 0 to 1, for weights that change during training. What it changes in the
  ///   model must not depend on the samples.
  /// evaluate: further columns of history.csv.
  /// fingerprint: that of the data, by which a resumed run recognises them.
  /// Returns an exit status where a signal ended the training; the checkpoint is then up to date.
  std::optional<int> train(torch::nn::Module& model, std::int64_t samples, std::int64_t batch_size,
                           std::int64_t fingerprint, const std::function<LossTerms(const torch::Tensor&, double)>& loss,
                           const std::function<NamedValues()>& evaluate, const StepOptions& steps = {});

  const Table& history() const { return history_; }

 private:
  NamedValues differentiate(torch::nn::Module& model, const torch::Tensor& rows, std::int64_t chunk,
                            const std::function<LossTerms(const torch::Tensor&)>& loss) const;
  void load(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint);
  void save(torch::nn::Module& model, torch::optim::Adam& optimizer, std::int64_t fingerprint);  // and the history
  void report(const LossTerms& terms, const NamedValues& figures, double learning_rate);

  OutputFolder& out_;
  const RunFlags& run_;
  const TrainingFlags& training_;
  const std::optional<Checkpoint> checkpoint_;  // of the run that this one continues
  std::int64_t iteration_ = 0;
  Table history_;
};

}  // namespace lcp::training
