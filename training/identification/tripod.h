// The tracks of blocks that slide and turn on three supports.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "simulation/tripod_flags.h"

namespace lcp::training {

class Tripods : public TrackSystem {
 public:
  Tripods();
  void add_bodies_to(CommandLine& line) override;
  void validate(const CommandLine& line, std::vector<std::string> simulated) override;
  BodyState move(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u, double dt) const override;
  FrictionEvidence evidence(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u,
                            double dt) const override;
  torch::Tensor acceleration() const override;
  double first_weight() const override { return 1; }

  /// A step with n directions has 6 n + 17 unknowns, and 3 more with random forces.
  TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const override;
  /// The forces are the sums over the supports: `normal`, `friction_x`, `friction_y` and `moment` about the centre.
  ProgramMotion read(const TrackProgram& program, const MpecSolution& solution, const TrackModel& model) const override;

  TripodFlags block;

 protected:
  TrackProblem simulate(const RunFlags& run, std::int64_t k) const override;
  torch::Tensor reach() const override;

 private:
  physics::Tripod tripod(double dt, const torch::Tensor& mu) const;  // with the friction coefficient mu

  double length_of_angles_ = 0.05;    // m/rad, the length that a unit of the angle counts as
  std::int64_t true_directions_ = 0;  // of the simulated block; 0: those of `block`
  double true_com_height_ = -1;       // m, of the simulated block; < 0: that of `block`
};

}  // namespace lcp::training
