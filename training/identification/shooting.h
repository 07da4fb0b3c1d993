// Least squares through the rollout, from more than one start where one is not enough.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/command_line.h"
#include "run/files.h"

namespace lcp::training {

struct ShootingFlags {
  std::string escape = "starts";
  std::int64_t iterations = 100;

  void add_to(CommandLine& line);
};

struct Shot {
  identification::LeastSquares fit;
  torch::Tensor escaped;  ///< [b], bool: mu had no effect where the first start ended
  Table history;          ///< started_at (mu), track, iteration, mu, objective
};

/// From --initial-mu; where mu has no effect at the end, since the body sticks as soon as it lands, again from several
/// mu, of which the best is kept.
Shot shoot(const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags, const TrackModel& model);

/// Shoots, writes history.csv beside the files of `report`, and returns what metrics.json says. Warns of what did not
/// converge.
nlohmann::json identify(const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                        const TrackProblem& problem, const TrackModel& model);

}  // namespace lcp::training
