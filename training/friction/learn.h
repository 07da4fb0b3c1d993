// What train_in_the_loop and train_bilevel have in common: friction learned from motion alone.
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
  SampleFlags samples{.known = Known::kMotion, .samples = 500, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  FrictionModelFlags model;

  void add_to(CommandLine& line);
};

/// What sets a method apart; tensors are in the units and the dtype of the model.
struct FrictionMethod {
  /// Of a batch; `done` is the part of the training that is behind, 0 to 1.
  std::function<LossTerms(nn::TraditionalModel& model, const Samples& batch, double done)> loss;
  /// What history.csv gets besides, of the training data.
  std::function<Figures(nn::TraditionalModel& model, const Samples& training)> report;
  /// What metrics.json gets besides.
  std::function<nlohmann::json(nn::TraditionalModel& model, const Samples& training)> metrics;
};

/// Parses, trains with all samples in each batch, and reports; returns an exit status.
int learn_friction(CommandLine& line, FrictionFlags& flags, const FrictionMethod& method, int argc,
                   const char* const* argv);

}  // namespace lcp::training
