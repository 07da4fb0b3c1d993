// The parameters of a block on three supports, as flags.
#pragma once

#include <cstdint>
#include <vector>

#include "lcp/physics/tripod.h"
#include "run/command_line.h"

namespace lcp::training {

struct TripodFlags {
  std::int64_t directions = 8;
  double inertia = 0.01 / 6;                                               // kg m^2
  std::vector<double> supports = {0.045, 0, -0.03, 0.035, -0.03, -0.035};  // m
  double com_height = 0;                                                   // m

  void add_to(CommandLine& line);

  /// Throws a UsageError where the supports do not carry the centre of mass.
  lcp::physics::Tripod tripod(const PhysicsFlags& block) const;
};

/// A check for CommandLine::add of a number of directions of friction.
std::string even_directions(const std::int64_t& n);

}  // namespace lcp::training
