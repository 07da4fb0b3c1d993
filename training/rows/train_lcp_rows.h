// The common part of train_penalty and train_structured: [M|W] of the traditional LCP, learned from known solutions.
#pragma once

#include <string>
#include <vector>

#include "lcp/learning/penalty_loss.h"
#include "run/command_line.h"
#include "sliding_block/friction_model.h"
#include "sliding_block/samples.h"

namespace lcp::training {

struct RowFlags {
  nn::Parameters parameters;  ///< kRows or kStructured
  RunFlags run = {};
  TrainingFlags training = {.iterations = 4000, .learning_rate = 0.02};
  SampleFlags samples = {.known_forces = KnownForces::kContact, .samples = 1000, .states = "mixed"};
  PhysicsFlags block = {.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  std::vector<double> alpha = {1, 1};
  bool squared = false;
  std::string hold = "one_per_row";
  bool no_bias = false;
  std::string matrix = kMonotone;  ///< of kRows
  bool known_vector = false;
  std::string basis = "diagonal";
  std::int64_t batch_size = 0;
  double relu_pairs = 0;
  bool exact_rest = false;
  std::string h = "affine";

  void add_to(CommandLine& line);
  bool affine() const { return matrix == kAffine; }
  bool monotone() const { return parameters == nn::Parameters::kRows && matrix == kMonotone; }
  learning::PenaltyLossWeights weights() const {
    return {.complementarity = alpha[0], .nonnegativity = alpha[1], .squared = squared};
  }
};

/// Parses, trains and reports; returns an exit status.
int train_lcp_rows(CommandLine& line, RowFlags& flags, int argc, const char* const* argv);

}  // namespace lcp::training
