// Measures how errors in M and q of a sliding block's LCP change its steps.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.2, 3.2.1 and 3.2.2.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoint.h"
#include "run/command_line.h"

namespace lcp::training {

/// A kind of noise, by the parts of the LCP that it perturbs.
struct Noise {
  const char* name;
  bool M, q;  ///< every entry
  bool mu;    ///< the friction limit mu m g, which is the third entry of q
};
constexpr std::array<Noise, 4> kNoises = {
    {{"q", false, true, false}, {"M", true, false, false}, {"M and q", true, true, false}, {"mu", false, false, true}}};

/// A set of steps to perturb, in the units of Study.
struct State {
  std::string name, description;
  torch::Tensor v, u;  ///< [draws]
};

/// What noise of one kind and size does to the steps of one State.
struct Measurement {
  std::size_t state, noise;                                ///< indices in Study::states and kNoises
  double sigma;                                            ///< standard deviation of the noise
  std::vector<std::pair<std::string, double>> statistics;  ///< fractions of the steps, errors of the velocity
  /// The quantiles at 0, 1 / kQuantiles, ..., 1 of |v_next - exact| / sigma of the solved steps, [kQuantiles + 1].
  torch::Tensor errors;
  double closed_form_error;  ///< largest error of the velocity by biased_friction, where M is not perturbed

  double operator[](const std::string& name) const;  ///< throws std::out_of_range

  /// All but `state`, `noise` and `sigma`, and back. `load` throws std::exception where there is none.
  Checkpoint save() const;
  void load(const Checkpoint& checkpoint);
};
constexpr std::int64_t kQuantiles = 50;  ///< errors.csv has kQuantiles + 1 rows for each Measurement

/// One step with one entry of M or q changed.
struct SingleEntryChange {
  std::size_t state;         ///< index in kSingleEntryStates
  std::int64_t row, column;  ///< of the entry in [M q], from 1
  double change, v_next, gamma;
  bool sticks;
};
constexpr double kChange = 0.1;  ///< added to the entry or subtracted from it
constexpr std::array<std::pair<double, double>, 3> kSingleEntryStates = {{{0, 0}, {0, 0.3}, {0.2, -0.5}}};  ///< v, u

/// One step with a biased q, as lcp::solve computes it and as the analysis predicts it; all in m/s.
struct BiasedStep {
  double q_1, q_2, v_free;  ///< v_free: the velocity without friction
  double v_next, gamma;
  double v_next_analysis, gamma_analysis;
};

/// The input and the results of the study, in units in which dt = m = mu g = 1: velocities in dt mu g, forces in mu m
/// g. In these units noise of a given size means the same for every block.
struct Study {
  const RunFlags& run;
  const PhysicsFlags& block;
  std::vector<State> states;
  std::vector<Measurement> measurements = {};
  std::vector<SingleEntryChange> single_entries = {};
  std::vector<BiasedStep> biased_steps = {};

  double unit_velocity() const { return block.dt * block.mu * block.gravity; }  ///< m/s
  double sticking_tolerance() const;  ///< a step sticks where |v_next| is less
};

/// Blocks at rest without a force, blocks at rest with a force below the friction limit, and normal random v and u.
std::vector<State> default_states(std::int64_t draws, std::int64_t seed);

/// The rows of a CSV file, repeated equally often, so that there are at least `draws` steps. Throws a UsageError where
/// the file cannot be read or lacks a column.
State read_states(const std::string& file, std::int64_t draws, const PhysicsFlags& block);

/// Measures one state with one kind and size of noise.
///   number: that of the measurement, on which its random numbers depend.
Measurement measure(const Study& study, std::size_t state, std::size_t noise, double sigma, std::int64_t number);

/// Changes each entry of M and q by +kChange and -kChange in each of kSingleEntryStates.
std::vector<SingleEntryChange> change_single_entries(const Study& study);

/// Steps of a resting block with an error in q_1 [Notes, 3.2.1], and of a pushed block whose force enters q_1 and q_2
/// with the weights a_1 and a_2 [Notes, 3.2.2], each with the result that follows by analysis.
std::vector<BiasedStep> biased_steps(const Study& study);

/// The p-quantile of sorted numbers; NaN where there are none.
double quantile_of(const torch::Tensor& sorted, double p);

}  // namespace lcp::training
