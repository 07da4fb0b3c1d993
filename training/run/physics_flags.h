// The parameters that every system has, as flags.
#pragma once

#include "run/command_line.h"

namespace lcp::training {

struct PhysicsFlags {
  double mass = 1;  // kg
  double dt = 0.1;  // s
  double mu = 0.3;
  double gravity = 9.81;  // m/s^2

  void add_to(CommandLine& line);
  double max_friction() const { return mu * mass * gravity; }  ///< N, on level ground
};

}  // namespace lcp::training
