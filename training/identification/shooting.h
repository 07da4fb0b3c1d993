// Least squares through the rollout, from more than one start where one is not enough.
#pragma once

#include <torch/types.h>

#include <string>

#include "common/command_line.h"
#include "identification/particle.h"
#include "lcp/identification/least_squares.h"

namespace lcp::training {

struct ShootingFlags {
  std::string escape = "starts";
  std::int64_t iterations = 100;

  void add_to(CommandLine& line);
};

struct Shot {
  identification::LeastSquares fit;
  torch::Tensor escaped;  ///< [b], bool: mu had no effect where the first start ended
};

/// From mu; where mu has no effect at the end, since the particle sticks as soon as it lands, again from several mu, of
/// which the best is kept.
Shot shoot(const ParticleModel& model, double mu, const ShootingFlags& flags);

}  // namespace lcp::training
