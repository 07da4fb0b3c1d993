// Least squares through the differentiable rollout (single shooting), from several initial mu where one is not enough.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/checkpoint.h"
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

/// Fits the tracks, writes history.csv and the files of `write_estimate`, and returns the content of metrics.json.
/// Warns of tracks whose fit did not converge. Of a group of processes only the first one does so.
nlohmann::json identify(OutputFolder& out, const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                        const TrackProblem& problem, const TrackModel& model);

/// Fits repeated tracks, without a word, and returns their estimates_of.
torch::Tensor estimates_of_repeated(const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                                    const TrackProblem& repeated, const TrackModel& model);

/// Fits the same tracks with other noise, flags.monte_carlo times if that is > 0, and adds monte_carlo_metrics to
/// `metrics`. These fits are a Sweep. Returns an exit status where a signal ended it, and in all processes but the
/// first, which does the rest alone.
///   tracks_of_a_task: as many are fitted together, and all take as long as the slowest of them.
///   estimates: estimates_of_repeated of some of these repetitions, [repeats b, 8], from the number of the first one
///   on.
std::optional<int> scatter(OutputFolder& out, const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                           const std::optional<Checkpoint>& checkpoint, std::int64_t tracks_of_a_task,
                           const std::function<torch::Tensor(std::int64_t first, std::int64_t repeats)>& estimates,
                           nlohmann::json& metrics);

/// Throws where a track was not fitted at all: its objective is not finite. After the results are written.
void require_fits(const nlohmann::json& metrics);

}  // namespace lcp::training
