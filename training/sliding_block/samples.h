// A sliding block, and its steps that programs learn from, simulated or read from a file.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lcp/physics/sliding_block.h"
#include "run/columns.h"
#include "run/command_line.h"

namespace lcp::training {

/// The block of the flags, for both float32 and float64.
physics::SlidingBlock sliding_block(const PhysicsFlags& flags);

/// The options of a model of the block.
template <class Options>
Options options_of(const PhysicsFlags& block) {
  return Options().mass(block.mass).dt(block.dt).mu(block.mu).gravity(block.gravity);
}

/// Forces [steps, trajectories], N, normal with standard deviation 1.5 mu m g, float64: a block under them sticks in
/// about four steps of ten.
torch::Tensor random_forces(std::int64_t steps, std::int64_t trajectories, const PhysicsFlags& flags,
                            at::Generator generator);

/// Initial velocities [trajectories], m/s, float64, which friction stops within a few steps.
torch::Tensor random_speeds(std::int64_t trajectories, const PhysicsFlags& flags, at::Generator generator);

/// Steps of a block, one in each row, float64 unless converted.
struct Samples {
  torch::Tensor v, u, v_next;  ///< [n]: m/s, N, m/s
  torch::Tensor lambda;        ///< [n, 2]: lambda_plus, lambda_minus, N; undefined where they are not known
  torch::Tensor gamma;         ///< [n], m/s; undefined where it is not known

  std::int64_t count() const { return v.size(0); }
  Samples at(const torch::Tensor& rows) const;
  Samples to(torch::ScalarType dtype) const;

  /// The velocity split into its parts, (v_next+, v_next-): [n, 2].
  torch::Tensor velocities() const;
};

struct Data {
  Samples training;
  Samples heldout;  ///< where simulated: without noise, and with --mu only

  std::int64_t fingerprint() const;
};

/// The forces that a method learns from, beside the motion v, u and v_next.
enum class KnownForces {
  kNone,
  kFriction,  ///< lambda_plus and lambda_minus of the direct formulation, see SampleFlags::forces
  kSlack,     ///< the same forces; the method learns from their slack, mu m g less the force
  kContact    ///< lambda_plus, lambda_minus and gamma of the traditional formulation
};

/// Flags of the data to learn from.
struct SampleFlags {
  KnownForces known_forces;
  std::int64_t samples;   ///< steps to simulate for training
  std::string data = {};  ///< a CSV file instead
  /// trajectories: of 50 steps under random forces. mixed: v and u normal with standard deviation dt mu g and mu m g.
  /// gentle: v in (.2, .8) dt mu g and u in (.2, 1) mu m g, uniform. sticking: both uniform in (-.4, .4) of the same
  /// units.
  std::string states;
  /// fictitious: those of the direct formulation, of which one is negative unless the block rests without a force.
  /// physical: both >= 0.
  std::string forces = "fictitious";
  /// How the friction of a sticking block is divided into lambda_plus and lambda_minus in the traditional formulation,
  /// which determines only their difference: minimal (one is 0), maximal (their sum is mu m g), half (between these) or
  /// random (between these).
  std::string split = "random";
  double velocity_noise = 0;          ///< m/s, on the v_next and the gamma of the training data
  double force_noise = 0;             ///< N, on the forces of the training data; those that are >= 0 stay so
  std::vector<double> more_mus = {};  ///< friction coefficients of further blocks in the training data

  void add_to(CommandLine& line);

  /// To be called once the command line is parsed. Throws a UsageError where flags exclude each other.
  void validate(const CommandLine& line);
};

/// Reads --data, or simulates --samples steps and a quarter of that to hold out, at least 500. Throws a
/// UsageError where the file does not fit.
Data load_data(const RunFlags& run, const PhysicsFlags& block, const SampleFlags& flags);

}  // namespace lcp::training
