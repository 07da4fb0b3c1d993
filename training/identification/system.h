// The bodies that the identification programs follow, chosen by --system.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "identification/track_program.h"
#include "run/command_line.h"

namespace lcp::training {

/// Weights of the complementarity of an MpecOptions::first, which lead to different local minima.
constexpr double kFirstWeights[] = {1e-3, 0.1, 1, 10};

/// A kind of bodies, with its flags.
class TrackSystem {
 public:
  virtual ~TrackSystem() = default;

  virtual const TrackFlags& tracks() const = 0;

  virtual void add_bodies_to(CommandLine& line) = 0;    ///< the flags of the bodies and of the observations
  virtual void add_estimate_to(CommandLine& line) = 0;  ///< the flags of the unknowns
  /// See TrackFlags.
  virtual void validate(const CommandLine& line, const std::vector<std::string>& simulated) = 0;

  virtual TrackProblem load(const RunFlags& run) const = 0;
  virtual std::unique_ptr<TrackModel> model(const TrackProblem& problem) const = 0;

  /// The first of kFirstWeights to begin with: that from which the program ended at the best fit most often.
  virtual double first_weight() const = 0;
  /// The mathematical program of all bodies. Throws a UsageError for a bound that it cannot have.
  virtual TrackProgram program(const TrackProblem& problem, const NoiseBound& bound) const = 0;
  virtual ProgramMotion read(const TrackProgram& program, const MpecSolution& solution,
                             const TrackModel& model) const = 0;
};

/// The flag --system of a program whose other flags depend on it.
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

}  // namespace lcp::training
