// Rollouts of linear complementarity systems: the discrete-time systems
//
//   w_s = E x_s + H u_s + M z_s + q,   0 <= z_s  perp  w_s >= 0
//   x_s+1 = A x_s + B u_s + D z_s + G w_s + d
//
// whose matrices stay the same through all steps s [HSW]. Bodies with friction and rigid contact, stepped in time, are
// such systems while their geometry does not change. Circuits with diodes and learned piecewise affine models are
// others.
//
//   [HSW] Heemels, Schumacher, Weiland: Linear complementarity systems, SIAM J. Appl. Math. 60, 2000.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/name_of.h"
#include "lcp/status.h"
#include "lcp/ties.h"

namespace lcp {

/// k states, m inputs and n pairs. All tensors are of one dtype, float32 or float64, and one device, with any strides.
struct LinearComplementaritySystem {
  at::Tensor A;  ///< [..., k, k]
  at::Tensor B;  ///< [..., k, m]
  at::Tensor D;  ///< [..., k, n], the effect of z on the next state
  at::Tensor G;  ///< [..., k, n], the effect of w on the next state
  at::Tensor d;  ///< [..., k]
  at::Tensor E;  ///< [..., n, k]
  at::Tensor H;  ///< [..., n, m]
  at::Tensor M;  ///< [..., n, n]
  at::Tensor q;  ///< [..., n]

  /// Contacts with polyhedral friction; empty: there are none. cone[i] = j marks pair i as a friction direction of the
  /// contact whose pair j has the slip speed z_j and the unused friction w_j. That direction has the force z_i and the
  /// velocity w_i - z_j. cone[i] = -1 says that pair i is no direction. Where a contact sticks (z_j = 0, and w_j > 0 or
  /// a direction has a force), the w of its directions count as exactly 0 in G w, and so do their derivatives, however
  /// the pairs are tied.
  std::vector<std::int64_t> cone = {};
};

struct SimulateLcsOptions {
  /// The gradient at a pair with z_i = w_i = 0; as in SolveOptions.
  NameOf<Ties, ties_name> ties = Ties::kInactive;

  /// The tolerance of SolveOptions, for the LCP of each step.
  std::optional<double> tolerance = {};
};

/// The rollout of T steps.
struct LcsRollout {
  at::Tensor x_next;    ///< [..., T, k], the states at the ends of the steps
  at::Tensor z;         ///< [..., T, n]
  at::Tensor w;         ///< [..., T, n]
  at::Tensor status;    ///< [..., T], int8; the values of lcp::Status
  at::Tensor residual;  ///< [..., T], max_i |min(z_i, (M z + E x + H u + q)_i)|; it has no gradient
};

/// Steps one system for each element of a batch. One walk through all steps computes, up to rounding, the results of a
/// loop over lcp::solve with the default method. Trajectories are independent: the same inputs give the same bits for
/// any number of threads, batch size and position in the batch.
///
/// A component of x_next is exactly 0 if it is at most 64 epsilon of the sum of the magnitudes of its terms. It is then
/// a rounding error, and a body that comes to rest is at rest.
///
/// If the LCP of a step is not solved, x_next, z, w and the residual of this and all later steps are NaN. The later
/// statuses are kBadInput.
///
/// x_next, z and w are differentiable in all eleven tensors, any number of times, in reverse and forward mode. In
/// reverse mode the first derivative is a walk back through the steps, of each of which at most 2 k + 3 n numbers are
/// kept. The gradient of a trajectory that is not solved is 0 where its incoming gradient is 0, else NaN.
///
///   x: [..., k], the first state. u: [..., T, m], the input of each step. k, m, n and T may be 0. All batch dimensions
///   broadcast; a system that trajectories share is not copied. feedback: a feedback of the state beside u.
///
/// In memory the results have the steps before the batch; x_next.movedim(-2, 0) is contiguous.
///
/// Throws c10::Error, before any work, for other shapes, dtypes, devices or options.
LCP_API LcsRollout simulate_lcs(const LinearComplementaritySystem& system, const at::Tensor& x, const at::Tensor& u,
                                const SimulateLcsOptions& options = {},
                                const std::optional<Feedback<at::Tensor>>& feedback = std::nullopt);

}  // namespace lcp
