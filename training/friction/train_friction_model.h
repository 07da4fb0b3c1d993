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

  void add_to(CommandLine& line);
};

/// The parts in which the two methods differ. Tensors are in the units and the dtype of the model.
struct FrictionMethod {
  /// The loss of a batch; `done` is the completed part of the training, 0 to 1.
  std::function<LossTerms(nn::TraditionalModel& model, const Samples& batch, double done)> loss;
  /// Further columns of history.csv.
  std::function<NamedValues(nn::TraditionalModel& model, const Samples& training)> report;
  /// Further entries of metrics.json.
  std::function<nlohmann::json(nn::TraditionalModel& model, const Samples& training)> metrics;
};

/// Parses, trains with all samples in each batch, and reports; returns an exit status.
int train_friction_model(CommandLine& line, FrictionFlags& flags, const FrictionMethod& method, int argc,
                         const char* const* argv);

}  // namespace lcp::training
