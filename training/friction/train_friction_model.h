// The common part of train_in_the_loop and train_bilevel: friction learned from motion alone.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "run/command_line.h"
#include "run/trainer.h"
#include "sliding_block/friction_model.h"
#include "sliding_block/samples.h"

namespace lcp::training {

struct FrictionFlags {
  RunFlags run;
  TrainingFlags training{.iterations = 1000, .learning_rate = 0.02};
  SampleFlags samples{.known_forces = KnownForces::kNone, .samples = 500, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  FrictionModelFlags model;
  std::int64_t batch_size = 64;  ///< where there are several starts; otherwise all samples

  void add_to(CommandLine& line);
};

/// The parts in which the two methods differ. Tensors are in the units and the dtype of the model.
struct FrictionMethod {
  /// The loss of a batch for each of the starts, whose G is [starts, ..., 3, 3] and f [starts, batch, 3]; `done` is the
  /// completed part of the training, 0 to 1.
  std::function<torch::Tensor(nn::TraditionalModel& model, const Samples& batch, const torch::Tensor& G,
                              const torch::Tensor& f, double done)>
      loss;
  const char* name;  ///< of that loss in history.csv
  /// The weight of negative friction limits f_3, for which there is no LCP: `f` has 0 in their place.
  std::function<double()> limit_penalty;
  /// Further columns of history.csv.
  std::function<NamedValues(nn::TraditionalModel& model, const Samples& training)> report;
  /// Further entries of metrics.json.
  std::function<nlohmann::json(nn::TraditionalModel& model, const Samples& training)> metrics;
};

/// Parses, trains and reports; returns an exit status.
int train_friction_model(CommandLine& line, FrictionFlags& flags, const FrictionMethod& method, int argc,
                         const char* const* argv);

}  // namespace lcp::training
