// Walks rigid bodies in forward mode: the tangents of their trajectories, their derivatives in a direction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rigid/linear_step.h"

namespace lcp::rigid {

/// The direction: of the parameters, of the first state and of u. nullptr where one stays the same.
struct Direction {
  Parameters<const double> parameters;
  State<const double> first;
  Series<const double> u;
};

/// From the first step on that was not solved all tangents are NaN if the direction is not 0, else 0. Allocates as
/// LinearStep does.
class Tangent {
 public:
  /// See LinearStep.
  Tangent(const Scene& scene, double tolerance, double rank_tolerance, Ties ties);

  /// Walks one trajectory, whose steps it computes once, in several directions, in which the same parameters change.
  ///   to: gets the tangents of the path.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
           std::span<const Direction> along, std::span<const Path<double>> to);

 private:
  const Scene& scene_;
  LinearStep step_;
  std::vector<StateBuffer<double>> carried_;  // the tangent of the end of a step in each direction
  std::vector<char> moves_;                   // whether a direction is not 0, until now
};

}  // namespace lcp::rigid
