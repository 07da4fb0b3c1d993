// Bodies of which tracks are known: what their friction and their start do to the tracks.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "identification/tracks.h"
#include "lcp/physics/problem.h"
#include "run/command_line.h"
#include "simulation/physics_flags.h"

namespace lcp::training {

/// Throws a UsageError where --dtype is another.
void require_float64(const RunFlags& run);

/// Flags of the programs that identify bodies. Of each body k coordinates are seen.
struct TrackFlags {
  std::vector<std::string> coordinates;  ///< their names; lengths, but for "theta"
  PhysicsFlags block;
  std::int64_t bodies = 1;
  std::int64_t steps;
  double noise;                  ///< m, half the width of the uniform noise on each coordinate
  std::vector<double> force;     ///< k numbers, N and N m
  std::vector<double> position;  ///< k numbers, m and rad, of the first body's start
  std::vector<double> velocity;  ///< k numbers, m/s and rad/s
  std::string data = {};
  std::string estimate = "mu,q0";
  double initial_mu = 0.05;
  double prior = 0;

  /// What bodies, and how they are seen.
  void add_bodies_to(CommandLine& line);
  /// What is asked, and where the search begins.
  void add_estimate_to(CommandLine& line);

  /// Once the command line is parsed: a UsageError where flags exclude each other; the file by its full path.
  ///   simulated: further flags that are only of simulated data.
  void settle(const CommandLine& line, const RunFlags& run, const std::vector<std::string>& simulated = {});
};

/// Where bodies are and how they move: [..., b, k], m and rad, m/s and rad/s.
struct BodyState {
  torch::Tensor position, velocity;
};

/// What is known of bodies, and what is asked.
struct TrackProblem {
  Tracks tracks;
  BodyState start;      ///< [b, k], what is known of it where it is not asked
  torch::Tensor mu;     ///< [b], of those that were simulated; undefined for a file
  torch::Tensor reach;  ///< [k], makes a length of a coordinate: 1, and m/rad for an angle
  double noise;         ///< m, standard deviation of each length; NaN where it has to be taken from the residuals
};

/// Reads --data.
TrackProblem read_problem(const TrackFlags& flags, const torch::Tensor& reach);

/// Simulated bodies, seen with the noise of use k of the seed.
///   positions: [steps + 1, b, k], m and rad, without noise.
TrackProblem observe(const RunFlags& run, const TrackFlags& flags, const BodyState& start, const torch::Tensor& mu,
                     const torch::Tensor& positions, const torch::Tensor& reach, std::int64_t k);

/// The bodies of all, which have as many steps.
TrackProblem joined(const std::vector<TrackProblem>& all);

/// [n], float64.
torch::Tensor row(const std::vector<double>& x);

/// What a rollout tells of friction, for each body.
struct Evidence {
  physics::RolloutCertificate certificate;  ///< [b]
  torch::Tensor used;    ///< [b], how much friction it took, as a lower bound of mu; -1 where nothing was touched
  torch::Tensor slides;  ///< [b], bool
};

/// The unknowns theta = (mu[, q_0[, v_0]]) of each body, and what they lead to.
class TrackModel {
 public:
  TrackModel(const TrackFlags& flags, const TrackProblem& problem);
  virtual ~TrackModel() = default;
  TrackModel(const TrackModel&) = delete;
  TrackModel& operator=(const TrackModel&) = delete;

  std::vector<std::string> names() const;  ///< of the unknowns
  std::int64_t unknowns() const { return unknowns_; }

  /// [b, p]: this mu, the first observation, the velocity that the first steps show.
  torch::Tensor start(double mu) const;
  torch::Tensor lower() const;  ///< [p]: mu >= 0

  /// theta: [..., b, p]; its leading dimensions are further guesses of the same bodies.
  torch::Tensor positions(const torch::Tensor& theta) const;  ///< [steps + 1, ..., b, k], m and rad

  /// Predicted less observed positions, m, and what the prior weighs of the start's: [..., b, m].
  torch::Tensor residuals(const torch::Tensor& theta) const;

  /// theta: [b, p].
  virtual Evidence evidence(const torch::Tensor& theta) const = 0;

 protected:
  BodyState start_of(const torch::Tensor& theta) const;
  torch::Tensor forces() const;  ///< [steps, b, k], N and N m
  const TrackProblem& problem() const { return problem_; }

 private:
  virtual torch::Tensor move(const BodyState& start, const torch::Tensor& mu) const = 0;  // [steps, ..., b, k]
  virtual torch::Tensor acceleration() const = 0;  // [k], before friction, of the first steps

  const TrackFlags& flags_;
  const TrackProblem& problem_;
  std::int64_t unknowns_;
};

}  // namespace lcp::training
