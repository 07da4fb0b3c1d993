// A cube with rounded corners that is tossed on a plane, and its parameters as flags.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lcp/identification/motion_model.h"
#include "run/command_line.h"

namespace lcp::training {

/// Free motion tells nothing of the mass: the inertia is per mass, and the mass counts as 1 kg. Any of its numbers may
/// have batch dimensions in front.
struct Cube {
  torch::Tensor mu;           ///< []
  torch::Tensor restitution;  ///< [], not used by compliant contact
  torch::Tensor corners;      ///< [8, 3], m, of the cube without its rounding, from its centre, in the axes of the body
  torch::Tensor center;       ///< [3], m, from the centre of mass to the centre of the cube, whose motion is recorded
  torch::Tensor rounding;     ///< [], m, the radius of the corners, each a ball that the three faces touch
  torch::Tensor inertia;      ///< [3], m^2, about the axes of the body
  torch::Tensor height;       ///< [], m, of the plane at x = y = 0
  torch::Tensor tilt;         ///< [2], the slope of the plane in x and y
  torch::Tensor gravity;      ///< [], m/s^2
  torch::Tensor drag;         ///< [], 1/s, the deceleration by the air per velocity
  torch::Tensor stiffness;    ///< [], N/m for 1 kg, of compliant contact
  torch::Tensor dissipation;  ///< [], s, of compliant contact
};

/// How contact is modelled.
struct CubeContact {
  std::string name = "exact_cone";
  std::int64_t substeps = 2;
  std::int64_t directions = 8;  ///< of polyhedral friction
  double kappa = 0;             ///< of RigidOptions, as the next; no flags
  std::string ties = "active";

  static constexpr const char* kFlags[] = {"contact", "substeps", "directions"};
  void add_to(CommandLine& line);
  void add_numbers_to(CommandLine& line);  ///< all but the name
  /// Throws a UsageError where a flag was given, of these or of CubeFlags, that this contact does not use.
  void exclude_unused(const CommandLine& line) const;
  physics::RigidOptions options() const;
};

/// The parameters of a cube as numbers.
struct CubeFlags {
  double mu = 0.18, restitution = 0.125;
  double side = 0.1048;                    // m
  double rounding = 0;                     // m
  std::vector<double> center = {0, 0, 0};  // m
  double inertia = 2.189e-3;               // m^2, per mass
  double height = 0, tilt_x = 0, tilt_y = 0;
  double gravity = 9.81, drag = 0;
  double stiffness = 3000, dissipation = 0.02;

  static constexpr const char* kFlags[] = {"mu",      "restitution", "side",       "rounding", "center",
                                           "inertia", "height",      "tilt-x",     "tilt-y",   "gravity",
                                           "drag",    "stiffness",   "dissipation"};
  void add_to(CommandLine& line);
  /// Throws a UsageError where the corners are rounder than a ball.
  Cube cube() const;
};

/// The cube on its plane, with dt s between two samples. The recorded point is its centre.
identification::MotionScene scene_of(const Cube& cube, double dt);

/// Rollouts; differentiable in the state and the cube. Positions and velocities, those of `start` too, are those of the
/// centre of the cube. What was not solved is NaN.
physics::RigidSolution roll_out(const Cube& cube, const CubeContact& contact, double dt,
                                const physics::RigidState& start, std::int64_t steps);

}  // namespace lcp::training
