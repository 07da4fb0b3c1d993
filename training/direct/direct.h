// Learning f and G of a sliding block from velocities, inputs and known friction forces.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.1.1 and 3.1.2.
//   [Tobin] Tobin: Estimation of relationships for limited dependent variables, Econometrica 26, 1958.
#pragma once

#include <ATen/ATen.h>

#include "lcp/nn/direct_model.h"
#include "run/command_line.h"
#include "sliding_block/samples.h"
#include "sliding_block/starts.h"

namespace lcp::training {

/// The programs train_direct, which learns with friction forces, and train_slack, which learns with the slack that they
/// leave to mu m g. Returns the exit status.
int train_direct_model(nn::DirectForces forces, int argc, const char* const* argv);

/// The largest error of f [m/s] and G [s/kg] over the samples, against the block of the flags.
double parameter_error(nn::DirectModel& model, const Samples& samples, const PhysicsFlags& block);

/// For affine f and G each component of f + G p is linear in their coefficients. The features that the coefficients
/// multiply are the products of (1, p_1, p_2) and (v, u, 1), [n, 9].
///   v, u: [n]. p: [n, 2].
inline at::Tensor features(const at::Tensor& v, const at::Tensor& u, const at::Tensor& p) {
  const at::Tensor one = at::ones_like(v);
  const at::Tensor state = at::stack({v, u, one}, -1);
  const at::Tensor force = at::cat({one.unsqueeze(-1), p}, -1);
  return (force.unsqueeze(-1) * state.unsqueeze(-2)).flatten(1);
}

constexpr std::int64_t kBias = 2;  ///< the index of the feature that f's bias multiplies

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

/// Fits the variants of [Notes, 3.1.1 and 3.1.2] to simulated data of the flags' block and writes table.md and, of the
/// same rows, table.json. Throws a UsageError where --out holds a trained model.
void study(const CommandLine& line, const RunFlags& run, const TrainingFlags& training, const PhysicsFlags& block,
           const SampleFlags& samples);

}  // namespace lcp::training
