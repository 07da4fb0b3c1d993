// The tracks of blocks that slide and turn on three supports.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "simulation/tripod_flags.h"

namespace lcp::training {

/// The flags of identify_tripod: those of all tracks and those of the block.
struct TripodTrackFlags {
  TrackFlags tracks;
  TripodFlags block;
  double reach = 0.05;               ///< m/rad, the length that a unit of the angle counts as
  std::int64_t true_directions = 0;  ///< of the simulated block; 0: those of `block`
  double true_com_height = -1;       ///< m, of the simulated block; < 0: that of `block`

  TripodTrackFlags();
  void add_bodies_to(CommandLine& line);
  /// Beside those of TrackFlags.
  void validate(const CommandLine& line, std::vector<std::string> simulated);
};

/// The block of the flags with the friction coefficient mu.
physics::Tripod tripod_of(const TripodTrackFlags& flags, double dt, const torch::Tensor& mu);

/// Reads the tracks of --data, or simulates --particles of them.
TrackProblem load_tripods(const RunFlags& run, const TripodTrackFlags& flags);

/// The simulated tracks `repeats` times, each time with other noise: repeats b tracks.
///   first: the number of the first of these repetitions, 0 or more.
TrackProblem repeat_tripods(const RunFlags& run, const TripodTrackFlags& flags, std::int64_t first,
                            std::int64_t repeats);

class TripodModel : public TrackModel {
 public:
  TripodModel(const TripodTrackFlags& flags, const TrackProblem& problem);

  FrictionEvidence evidence(const torch::Tensor& theta) const override;

 private:
  BodyState move(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u, double dt) const override;
  torch::Tensor acceleration() const override;

  const TripodTrackFlags& flags_;
};

}  // namespace lcp::training
