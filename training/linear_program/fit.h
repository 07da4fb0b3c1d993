// Fits [M|W] of a sliding block's LCP by linear programs: one for each row, or one for all where M is monotone.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.1.4.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "linear_program/complementarity_program.h"
#include "linear_program/simplex.h"
#include "run/command_line.h"
#include "sliding_block/friction_model.h"

namespace lcp::training {

/// Smaller numbers count as 0. Here and below, units are such that dt = m = mu g = 1.
constexpr double kNegligible = 1e-6;

struct ProgramFlags {
  double epsilon = 0;
  std::string normalization = "one_per_row";
  std::string matrix = kMonotone;
  bool no_bias = false;
  double l1 = 0;
  std::string solver = "simplex";

  void add_to(CommandLine& line);
  KnownEntries known_entries() const;
};

struct Fit {
  at::Tensor rows;               ///< [3, 6], [M|W]
  double objective = 0;          ///< sum of lambda'w over the samples
  std::vector<OptimalSet> sets;  ///< for each row, all solutions of its program
};

/// Solves the program of each row or, where M is to be monotone, that of all rows, see monotone_program. Throws a
/// UsageError where no row satisfies the constraints, and a std::runtime_error where the solver finds no solution.
/// Unless `quiet`, it shows its progress where it takes more than a second.
Fit fit(const LinearProgram& program, const ProgramFlags& flags, bool quiet);

/// For each row the set of rows that fit equally well: dimension, lower and upper bounds of the entries, and a
/// description in words; and whether the row is trivial: w >= 0 then holds for every force in every state, so that it
/// says nothing about contact.
nlohmann::json families(const Fit& fit);

}  // namespace lcp::training
