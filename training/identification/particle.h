// The tracks of particles that fall and slide.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "identification/track_model.h"
#include "lcp/physics/point_mass.h"

namespace lcp::training {

/// The flags of the example of [BT].
TrackFlags particle_flags();

/// Reads the tracks of --data, or simulates --particles of them.
TrackProblem load_particles(const RunFlags& run, const TrackFlags& flags);

/// The simulated tracks `repeats` times, each time with other noise: repeats b tracks.
///   first: the number of the first of these repetitions, 0 or more.
TrackProblem repeat_particles(const RunFlags& run, const TrackFlags& flags, std::int64_t first, std::int64_t repeats);

/// The particle of the flags with the friction coefficient mu.
physics::PointMass particle_mass(const TrackFlags& flags, double dt, const torch::Tensor& mu);

class ParticleModel : public TrackModel {
 public:
  ParticleModel(const TrackFlags& flags, const TrackProblem& problem);

  FrictionEvidence evidence(const torch::Tensor& theta) const override;

 private:
  BodyState move(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u, double dt) const override;
  torch::Tensor acceleration() const override;

  const TrackFlags& flags_;
};

}  // namespace lcp::training
