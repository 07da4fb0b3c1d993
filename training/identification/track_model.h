// The tracks of bodies as functions of their friction and their initial state.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "identification/tracks.h"
#include "lcp/physics/problem.h"
#include "run/command_line.h"

namespace lcp::training {

/// Flags of the programs that identify bodies, of which k coordinates are observed.
struct TrackFlags {
  std::vector<std::string> coordinates;  ///< their names; all are lengths except "theta"
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
  double process_noise = 0;  ///< N, standard deviation of the random forces of each step

  std::vector<std::string> velocities() const;  ///< the names of their velocities: v_x, omega

  /// The flags of the bodies and of the observations.
  void add_bodies_to(CommandLine& line);
  /// The flags of the unknowns, and of the start of the search.
  void add_estimate_to(CommandLine& line);

  /// To be called once the command line is parsed. Throws a UsageError where flags exclude each other.
  ///   simulated: the flags beside --steps, --mu and --dt that mean nothing with --data.
  void validate(const CommandLine& line, const std::vector<std::string>& simulated);
};

/// Positions and velocities of bodies: [..., b, k], m and rad, m/s and rad/s.
struct BodyState {
  torch::Tensor position, velocity;
};

/// The observed tracks of bodies and what is known about the bodies.
struct TrackProblem {
  Tracks tracks;
  BodyState start = {};   ///< [b, k], used where it is not identified
  torch::Tensor mu = {};  ///< [b], the true values of simulated bodies; undefined for a file
  BodyState motion = {};  ///< [steps + 1, b, k], that of simulated bodies; undefined for a file
  torch::Tensor reach;    ///< [k], the factors that make lengths of the coordinates: 1, or m/rad for an angle
  double noise;           ///< m, standard deviation of the noise, all coordinates as lengths; NaN where it is unknown
  /// [k], N and N m, standard deviations of the random forces in each step; undefined: there are none.
  torch::Tensor process = {};

  /// The number of random forces on a body.
  std::int64_t random_forces() const { return process.defined() ? tracks.steps() * process.size(0) : 0; }
};

/// The forces on `bodies` simulated bodies, --force and the random ones: [steps, b, k]. Each k has other random
/// numbers.
torch::Tensor simulated_forces(const RunFlags& run, const TrackFlags& flags, const torch::Tensor& reach,
                               std::int64_t k);

/// Adds noise to simulated positions. Each k has other random numbers.
///   motion: [steps, b, k], from the first step on, without noise.
TrackProblem observe(const RunFlags& run, const TrackFlags& flags, const BodyState& start, const torch::Tensor& mu,
                     const BodyState& motion, const torch::Tensor& reach, std::int64_t k);

/// A tensor of these numbers, [n], float64.
torch::Tensor row(const std::vector<double>& x);

/// What the rollout of a fit tells about the friction of each body.
struct FrictionEvidence {
  physics::RolloutCertificate certificate;  ///< [b]
  torch::Tensor least_mu;  ///< [b], a lower bound of mu: the friction that the motion needed; -1 without contact
  torch::Tensor slides;    ///< [b], bool
};

class TrackProgram;
struct MpecSolution;
struct NoiseBound;
struct ProgramMotion;
class TrackModel;

/// A kind of bodies, of which k coordinates are observed.
class TrackSystem {
 public:
  explicit TrackSystem(TrackFlags flags) : tracks(std::move(flags)) {}
  virtual ~TrackSystem() = default;

  /// The flags of the bodies and of the observations, and their check, see TrackFlags.
  virtual void add_bodies_to(CommandLine& line) { tracks.add_bodies_to(line); }
  virtual void validate(const CommandLine& line, std::vector<std::string> simulated) {
    tracks.validate(line, simulated);
  }

  /// Reads the tracks of --data, or simulates --particles of them.
  TrackProblem load(const RunFlags& run) const;

  /// The simulated tracks `repeats` times, each time with other noise: repeats b tracks.
  ///   first: the number of the first of these repetitions, 0 or more.
  TrackProblem repeat(const RunFlags& run, std::int64_t first, std::int64_t repeats) const;

  /// All steps of length dt under the forces u, [steps, ..., b, k], of bodies with the friction coefficients mu.
  virtual BodyState move(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u, double dt) const = 0;
  virtual FrictionEvidence evidence(const BodyState& start, const torch::Tensor& mu, const torch::Tensor& u,
                                    double dt) const = 0;
  virtual torch::Tensor acceleration() const = 0;  ///< [k], without friction and contact

  /// The MpecOptions::first to begin with: that from which the program ended at the best fit most often.
  virtual double first_weight() const = 0;
  /// The mathematical program of all bodies. Throws a UsageError for a bound that it cannot have.
  virtual TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const = 0;
  virtual ProgramMotion read(const TrackProgram& program, const MpecSolution& solution,
                             const TrackModel& model) const = 0;

  TrackFlags tracks;

 protected:
  virtual TrackProblem simulate(const RunFlags& run, std::int64_t k) const = 0;  // see `observe`
  virtual torch::Tensor reach() const = 0;                                       // see TrackProblem
};

std::unique_ptr<TrackSystem> make_particles(), make_tripods();

/// The flag --system, which chooses the bodies, of a program whose other flags depend on it.
class SystemFlag {
 public:
  /// Reads it from a command line that has not been parsed yet. Throws a UsageError for an unknown name.
  SystemFlag(int argc, const char* const* argv);
  void add_to(CommandLine& line);
  TrackSystem& system() { return *system_; }

 private:
  std::string name_;
  std::unique_ptr<TrackSystem> system_;
};

/// Maps the unknowns theta of each body to its motion: mu[, q_0[, v_0]] and the random forces of all steps, over their
/// standard deviations.
class TrackModel {
 public:
  TrackModel(const TrackSystem& system, const TrackProblem& problem);
  TrackModel(const TrackModel&) = delete;
  TrackModel& operator=(const TrackModel&) = delete;

  std::vector<std::string> names() const;              ///< the names of the unknowns beside the random forces
  std::int64_t unknowns() const { return unknowns_; }  ///< their number
  const TrackProblem& problem() const { return problem_; }
  const TrackSystem& system() const { return system_; }

  /// A first guess, [b, p]: this mu, the first observation, the velocity of the first steps, and no random forces.
  torch::Tensor start(double mu) const;
  torch::Tensor lower() const;  ///< [p]: mu >= 0

  /// theta: [..., b, p]; its leading dimensions are further guesses of the same bodies. substeps: of each step of the
  /// tracks, to see what the length of the steps changes.
  BodyState motion(const torch::Tensor& theta, std::int64_t substeps = 1) const;  ///< [steps + 1, ..., b, k]

  /// Predicted minus observed positions, m, then the random forces as lengths, so that their squares have the weight of
  /// those of the positions, and then the weighted residuals of the prior: [..., b, m].
  torch::Tensor residuals(const torch::Tensor& theta, std::int64_t substeps = 1) const;

  torch::Tensor forces(const torch::Tensor& theta) const;  ///< [steps, ..., b, k], N and N m

  /// One step of the tracks, in equal parts, of bodies with the friction coefficients mu, [...], under the force u,
  /// [..., k].
  BodyState step(const BodyState& state, const torch::Tensor& mu, const torch::Tensor& u,
                 std::int64_t substeps = 1) const;

  FrictionEvidence evidence(const torch::Tensor& theta) const;  ///< theta: [b, p]

 private:
  BodyState start_of(const torch::Tensor& theta) const;

  const TrackSystem& system_;
  const TrackFlags& flags_;
  const TrackProblem& problem_;
  std::int64_t unknowns_;
};

}  // namespace lcp::training
