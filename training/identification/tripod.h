// The tracks of blocks that slide and turn on three supports.
#pragma once

#include <torch/types.h>

#include <cstdint>

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
  void add_to(CommandLine& line);
  void validate(const CommandLine& line, const RunFlags& run);
};

/// Reads the tracks of --data, or simulates --particles of them.
TrackProblem load_tripods(const RunFlags& run, const TripodTrackFlags& flags);

/// The simulated tracks `repeats` times, each time with other noise: repeats b tracks.
TrackProblem repeat_tripods(const RunFlags& run, const TripodTrackFlags& flags, std::int64_t repeats);

class TripodModel : public TrackModel {
 public:
  TripodModel(const TripodTrackFlags& flags, const TrackProblem& problem);

  FrictionEvidence evidence(const torch::Tensor& theta) const override;

 private:
  torch::Tensor move(const BodyState& start, const torch::Tensor& mu) const override;
  torch::Tensor acceleration() const override;

  const TripodTrackFlags& flags_;
};

}  // namespace lcp::training
