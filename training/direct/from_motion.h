// Learning f of the direct formulation from motion alone, behind a relu head.
//
//   [Tobin] Tobin: Estimation of relationships for limited dependent variables, Econometrica 26, 1958.
#pragma once

#include "run/command_line.h"
#include "run/physics_flags.h"
#include "sliding_block/samples.h"
#include "sliding_block/starts.h"

namespace lcp::training {

/// The options of the model, whose LCP is w = f(v, u) + G s, 0 <= w perp s >= 0, v_next = w_1 - w_2: behind a
/// diagonal G > 0, which motion does not determine, w = max(0, f). G = (dt / m) I is that of the true block.
struct FromMotionOptions {
  std::int64_t hidden;  ///< width of the tanh layer of f; 0: none
  bool bias;
  std::int64_t batch_size;
  double rest_below;  ///< m/s: velocities of at most this size count as rest
};

/// Minimises the one-sided error of f, as for censored data [Tobin]: (f_i - w_i)^2 where w_i > 0, and max(0, f_i)^2
/// where w_i = 0. It is convex for affine f, and has no dead zone. The Levenberg-Marquardt method then minimises the
/// error of the prediction through lcp::solve. Returns an exit status.
int train_from_motion(CommandLine& line, const RunFlags& run, const TrainingFlags& training, const PhysicsFlags& block,
                      const SampleFlags& samples, const StartFlags& start, const FromMotionOptions& options);

}  // namespace lcp::training
