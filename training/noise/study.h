// Steps of a sliding block by an LCP with errors in M and q.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.2, 3.2.1 and 3.2.2.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/command_line.h"
#include "simulation/physics_flags.h"

namespace lcp::training {

/// What is perturbed.
struct Noise {
  const char* name;
  bool M, q, mu;
};
constexpr std::array<Noise, 4> kNoises = {
    {{"q", false, true, false}, {"M", true, false, false}, {"M and q", true, true, false}, {"mu", false, false, true}}};

/// Steps to perturb, in the study's units.
struct State {
  std::string name, meaning;
  torch::Tensor v, u;  ///< [draws]
};

/// The steps of a state with noise of one kind and size.
struct Cell {
  std::size_t state, noise;
  double sigma;
  std::vector<std::pair<std::string, double>> numbers;  ///< shares of the steps; errors of the velocity
  torch::Tensor errors;      ///< |v_next - exact| / sigma of the steps that have a solution, sorted
  double closed_form_error;  ///< of biased_friction, where M is not perturbed

  double operator[](const std::string& name) const;  ///< throws std::out_of_range
};

/// One step with one entry of M or q changed.
struct SingleEntry {
  std::size_t state;
  std::int64_t row, column;  ///< of [M q], from 1
  double change, v_next, gamma;
  bool sticks;
};
constexpr double kChange = 0.1;
constexpr std::array<std::pair<double, double>, 3> kSingleStates = {{{0, 0}, {0, 0.3}, {0.2, -0.5}}};  ///< v, u

/// One step with a biased q, and its analysis, m/s.
using Bias = std::array<double, 7>;
constexpr std::array<const char*, 7> kBias = {"q_1",           "q_2", "v_free", "v_next", "gamma", "v_next_analysis",
                                              "gamma_analysis"};

/// In units in which dt = m = mu g = 1: velocities in dt mu g, forces in mu m g. Noise of one size on every entry is
/// relative to these, and so the same for every block.
struct Study {
  const RunFlags& run;
  const PhysicsFlags& block;
  std::vector<State> states;
  std::vector<Cell> cells = {};
  std::vector<SingleEntry> single_entries = {};
  std::vector<Bias> biases = {};

  double unit_velocity() const { return block.dt * block.mu * block.gravity; }  ///< m/s
  double sticking_tolerance() const;
};

/// From rest, with and without a force that friction holds, and at random.
std::vector<State> default_states(std::int64_t draws, std::int64_t seed);

/// The rows of a CSV file, each as often, and at least `draws` in all. Throws a UsageError where the file does not fit.
State read_states(const std::string& file, std::int64_t draws, const PhysicsFlags& block);

/// The study's next cell, with random numbers of its own.
Cell measure(const Study& study, std::size_t state, std::size_t noise, double sigma);

/// Each entry of M and q changed by kChange either way, in each of kSingleStates.
std::vector<SingleEntry> change_single_entries(const Study& study);

/// A resting block with an error in q_1 [Notes, 3.2.1], and one that is pushed, with weights a_1, a_2 on its force
/// [Notes, 3.2.2]; and what follows by analysis.
std::vector<Bias> analysed_biases(const Study& study);

/// Of sorted numbers; NaN where there are none.
double quantile_of(const torch::Tensor& sorted, double p);

}  // namespace lcp::training
