// The scene of include/lcp/physics/rigid_scene.h, and its trajectories, in memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "rigid/parameter.h"

namespace lcp::rigid {

/// A ball of a body, and the plane or the ball that it may touch. The balls of all bodies are numbered together.
struct Pair {
  int body, ball;
  int other_body;  ///< kWorld for a fixed plane
  int plane;       ///< -1 for a pair of balls
  int other_ball;  ///< of a pair of balls

  static constexpr int kWorld = -1;
};

enum class Formulation { kExactCone, kPolyhedral, kCompliant };

/// The law of the contacts, and what belongs to one of the formulations alone.
struct Law {
  Formulation formulation;
  int directions = 0;          ///< of the friction of polyhedral contact
  double angle = 0;            ///< of the first of them, radians
  double sigma = 0, beta = 0;  ///< of lcp::RegularizationOptions, for compliant contact
  double kappa = 0;            ///< of smoothed derivatives, J
};

/// What all trajectories share, and the options of a step.
struct Scene {
  int bodies, balls, planes;
  std::vector<Pair> pairs;
  Law law;
  double dt;                               ///< s
  std::optional<double> bounce_threshold;  ///< m/s; absent: twice the speed that gravity gives in a step
  double stabilization;

  int contacts() const { return static_cast<int>(pairs.size()); }
};

/// How many numbers a parameter has.
int size_of(Parameter parameter, const Scene& scene);

/// Where the numbers of each Parameter stand, or their derivatives.
template <class Number>
using Parameters = std::array<Number*, kParameters>;

/// Of all bodies, row-major.
template <class Number>
struct State {
  Number* position;          ///< [b, 3], m
  Number* orientation;       ///< [b, 4]
  Number* velocity;          ///< [b, 3], m/s
  Number* angular_velocity;  ///< [b, 3], rad/s
};

/// The numbers that a trajectory has at each step; those of step s begin at data + s * stride. data is nullptr for
/// results that a simulation is not to write.
template <class Number>
struct Series {
  Number* data;
  std::int64_t stride;

  Number* operator[](std::int64_t s) const { return data + s * stride; }
};

/// The ends of the steps.
template <class Number>
struct Path {
  Series<Number> position, orientation, velocity, angular_velocity;
  Series<Number> gamma;  ///< [3 c], N s

  State<Number> state(std::int64_t s) const { return {position[s], orientation[s], velocity[s], angular_velocity[s]}; }
};

}  // namespace lcp::rigid
