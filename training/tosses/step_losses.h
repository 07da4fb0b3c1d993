// Losses of single steps: how well impulses that a cube allows explain the measured change of its velocity. They need
// no rollout, and they do not ask where the cube goes.
//
//   [PHP] Pfrommer, Halm, Posa: ContactNets: Learning discontinuous contact dynamics with smooth, implicit
//         representations, CoRL 2020.
#pragma once

#include <torch/types.h>

#include "tosses/cube.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// What both losses are of. The errors of the angular velocity count times half the side, m, whatever the cubes are, so
/// that no loss falls because a parameter makes errors cheap.
struct StepLoss {
  std::int64_t directions;  ///< of polyhedral friction
  double rate;              ///< samples per second
  double side;              ///< m

  /// lcp::learning::bilevel_loss of the LCP of each step, that of the four lowest corners. Its constraints hold
  /// exactly, which takes a third of the unknowns less than soft ones with a weight above all impulses, and has the
  /// same value. Friction makes the inner problem non-convex. All contacts of a step are one problem, so that impacts
  /// at several times of a step, one after another in a rollout, are not explained exactly. The mean over the steps of
  /// each window, [b], NaN where not solved.
  ///   cubes: numbers of batches [b].
  torch::Tensor bilevel(const Cube& cubes, const Segments& windows) const;

  /// After [PHP]: the minimum over impulses gamma in the friction cones of the squares of the prediction's error, of
  /// gap gamma_n, of |u_t| gamma_t + mu gamma_n u_t, by which friction would not oppose the slip u_t, and of the
  /// penetration, with the gaps, in half sides, and the slip, m/s, of the measured end of the step. So the problem is
  /// convex, and lcp::solve_contact solves it. There is no restitution. The mean over the steps of each window, [b],
  /// NaN where not solved.
  torch::Tensor contact_nets(const Cube& cubes, const Segments& windows) const;
};

}  // namespace lcp::training
