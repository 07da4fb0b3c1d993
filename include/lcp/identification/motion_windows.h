// Recorded motion of rigid bodies, cut into windows, and how far a prediction is off.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lcp/export.h"
#include "lcp/physics/rigid_body.h"
#include "lcp/physics/rigid_scene.h"

namespace lcp::identification {

/// One recording: the motion of B bodies at T evenly spaced times, [T, B, k]. NaN: not measured. Velocities may be
/// undefined.
using Recording = physics::RigidState;

/// A recording with velocities, and with quaternions of length 1. Velocities that are undefined are the differences of
/// the poses from one sample to the next, at the later one, so that they are half a sample old; each number is the
/// median of the five around it. The first sample has those of the second.
///   dt: s, the time between two samples.
/// Throws c10::Error for shapes that do not fit.
LCP_API Recording with_velocities(const Recording& recording, double dt);

/// Pieces of recordings, b of them, padded to the length of the longest.
struct LCP_API MotionPieces {
  physics::RigidState start;     ///< [b, B, ...]
  physics::RigidState measured;  ///< [T, b, B, ...], after each step; beyond the end of a piece its last sample
  at::Tensor steps;              ///< [b], int64, of each piece
  at::Tensor recording = {};     ///< [b], int64: which recording each piece is of, and
  at::Tensor first = {};         ///< [b], int64, the sample at which it begins; of RecordingSet

  std::int64_t count() const { return steps.size(0); }
  std::int64_t longest() const { return measured.position.size(0); }
  MotionPieces at(const at::Tensor& index) const;  ///< some of the pieces, index [k], int64
  at::Tensor exists() const;                       ///< [T, b], bool: whether the piece has the step
};

/// Recordings of any length, as one tensor.
class LCP_API RecordingSet {
 public:
  /// recordings: with velocities. Throws c10::Error where there is none, or where shapes do not fit.
  explicit RecordingSet(const std::vector<Recording>& recordings);

  std::int64_t count() const { return samples_.size(0); }
  const at::Tensor& samples() const { return samples_; }  ///< [count()], int64, of each recording

  /// `steps` steps from sample `first` on, or to the end of the recording. recording, first: [b], int64.
  MotionPieces pieces(const at::Tensor& recording, const at::Tensor& first, std::int64_t steps) const;

 private:
  physics::RigidState all_;
  at::Tensor samples_;
};

struct MotionWindowsOptions {
  /// m/s: where the recorded velocity of a body changes by more than this from a sample to the next, velocities near it
  /// count as mixtures of those before and after an impact.
  double jump = 0;
  double position_unit = 1;  ///< m: an error of a position that counts 1
  double rotation_unit = 1;  ///< rad: an error of an orientation that counts 1
};

/// Windows of recordings, which begin where the recorded state is complete and its velocities can be trusted.
class LCP_API MotionWindows {
 public:
  using RollOut = std::function<physics::RigidSolution(const physics::RigidState& start, std::int64_t steps)>;

  /// recordings: with velocities. Throws c10::Error where one of them has no sample to begin at.
  MotionWindows(const std::vector<Recording>& recordings, const MotionWindowsOptions& options);

  std::int64_t recordings() const { return set_.count(); }

  /// For each of the recordings with these indices, [k], int64, `count` windows of `steps` steps, or to the end of the
  /// recording, with random starts, which do not depend on what other recordings are drawn.
  MotionPieces draw(const at::Tensor& recording, std::int64_t count, std::int64_t steps, at::Generator random) const;

  /// How far a prediction is off after each step, [T, ..., B, b, 2, 3]: the error of the position, and that of the
  /// rotation in the axes of the body, a vector of the length 2 sin(angle / 2), each in its unit. What was not measured
  /// counts 0, and so does what is beyond the end of a window. NaN from the first step on that is not solved.
  ///   roll_out: from a state [b, B, ...] to tensors [T, ..., b, B, ...], such as MotionModel::roll_out with values
  ///   [..., 1, v]. later: the velocities of the start are those between the recorded ones and those of the next
  ///   sample, by linear interpolation, where 0 are the recorded ones and 1 the next.
  at::Tensor residuals(const RollOut& roll_out, const MotionPieces& windows, double later = 0) const;

  /// The misfit of each window, [..., b]: the mean over the steps, and over the bodies, of the sum of both lengths.
  /// A length counts, not its square, so that a body that falls onto another face counts for no more than its error.
  /// Lengths are rounded off at 0, where the misfit is .02. NaN where a step is not solved.
  at::Tensor misfits(const RollOut& roll_out, const MotionPieces& windows, double later = 0) const;

  /// The misfits of the windows that are solved, [at most b], of predictions without dimensions of their own. What is
  /// not solved does not reach the gradient. Throws c10::Error where no window is solved.
  at::Tensor misfit(const RollOut& roll_out, const MotionPieces& windows, double later = 0) const;

 private:
  RecordingSet set_;
  MotionWindowsOptions options_;
  std::vector<at::Tensor> starts_;  // int64, of each recording, the samples at which windows may begin
};

}  // namespace lcp::identification
