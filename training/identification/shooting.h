// Least squares through the differentiable rollout (single shooting), from several initial mu where one is not enough.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/command_line.h"
#include "run/files.h"
#include "run/output_folder.h"

namespace lcp::training {

struct ShootingFlags {
  std::string escape = "starts";
  std::int64_t iterations = 100;
  std::int64_t monte_carlo = 0;
  bool resume = false;

  void add_to(CommandLine& line);
};

struct ShootingResult {
  identification::LeastSquares fit;
  torch::Tensor escaped;  ///< [b], bool: the search was repeated
  Table history;          ///< started_at (mu), track, iteration, mu, objective
};

/// Searches from --initial-mu. Where mu has no effect on the track at the end, since the body sticks as soon as it
/// lands, or where random forces have made up for a wrong mu, so that the fit does not explain the track, searches
/// again from several other mu and keeps the best result.
ShootingResult fit_by_shooting(const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                               const TrackModel& model);

/// What the programs that identify bodies by shooting do once their command line is parsed: they fit the tracks, and
/// fit the same tracks with other noise, --monte-carlo times, as a Sweep. Returns an exit status. Throws where a track
/// was not fitted at all, after the results are written.
///   tracks_of_a_task: as many are fitted together, and all take as long as the slowest of them.
///   further: what the program does beside; returns the names of its figures.
int identify_by_shooting(
    CommandLine& line, const RunFlags& run, TrackSystem& system, const ShootingFlags& flags,
    std::int64_t tracks_of_a_task,
    const std::function<std::vector<std::string>(OutputFolder& out, const TrackProblem& problem)>& further = nullptr);

}  // namespace lcp::training
