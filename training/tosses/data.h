// The tosses that a program learns from: recorded ones, or simulated ones where it is given none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "run/command_line.h"
#include "tosses/cube.h"
#include "tosses/tosses.h"

namespace lcp::training {

struct TossData {
  std::filesystem::path folder;  ///< of recorded tosses; none: they are simulated
  std::int64_t simulated = 96;
  double length = 0;  ///< m for a unit of length in the files, see read_tosses
  double rate = 148;  ///< samples per second

  void add_to(CommandLine& line);
  /// Throws a UsageError where a flag was given that these tosses do not use.
  void exclude_unused(const CommandLine& line) const;

  /// Throws a UsageError where recorded tosses fall otherwise than things do, by more than a tenth: gravity is theirs,
  /// m/s^2.
  void check_units(double gravity) const;

  /// The recorded tosses, or simulated ones of this cube.
  std::vector<Toss> load(const Cube& cube, const CubeContact& contact, std::int64_t seed) const;
};

}  // namespace lcp::training
