// Parameters of a scene of rigid bodies from recorded motion.
//
// A fit has two parts. Adam minimises the misfit of random windows of the recordings, first of short ones, whose misfit
// is smoother in the parameters, then of long ones, which are what counts. Several starts are one batch, of which the
// best goes on. Then steps of Levenberg and Marquardt minimise the misfit of a fixed set of windows (least_lengths.h),
// whose slopes and curvature tell how sure the parameters are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lcp/export.h"
#include "lcp/identification/least_lengths.h"
#include "lcp/identification/motion_model.h"
#include "lcp/identification/motion_windows.h"

namespace lcp::identification {

/// How far a fit has come.
struct MotionProgress {
  bool refines;   ///< whether Adam has ended
  double done;    ///< the share of this part, 0 to 1
  double misfit;  ///< of the last minibatch, of the best start; NaN in the second part
};

/// The standard deviations of the errors of recorded states.
struct StateDeviations {
  double position;          ///< units of length of the recordings
  double rotation;          ///< rad, about each axis
  double velocity;          ///< units of length / s
  double angular_velocity;  ///< rad/s
};

struct FitMotionOptions {
  std::int64_t iterations = 400;  ///< of Adam; 0: none
  double learning_rate = 0.1;     ///< of the numbers of MotionModel
  std::int64_t window = 80;       ///< steps of the longest windows, >= 2
  std::int64_t batch = 64;        ///< recordings of a minibatch
  std::int64_t starts = 1;        ///< the first is that of the parameters, the others are random ones around it
  double spread = 0.5;            ///< the standard deviation of their numbers
  std::int64_t seed = 0;          ///< in [0, 2^32)
  bool intervals = true;          ///< whether the second part is made
  /// m: see MotionWindowsOptions; absent: .12 of the mean size_of the bodies.
  std::optional<double> position_unit = {};
  double rotation_unit = 0.27;  ///< rad
  /// m/s: see MotionWindowsOptions; absent: three times the speed that gravity gives between two samples.
  std::optional<double> jump = {};
  /// Samples: how much older the recorded velocities are than the positions of their samples. Those of a rollout are
  /// half a step older, and windows begin with velocities between recorded ones. Absent: 1 / 2 where no recording has
  /// velocities, which then follow from the poses, and half a step where all have.
  std::optional<double> velocity_age = {};
  /// With them, the states at which the windows of the second part begin are fitted, too; the recorded ones have errors
  /// of this size.
  std::optional<StateDeviations> start_deviations = {};
  Tasks tasks = nullptr;  ///< divides the evaluations of the second part
  /// Called after each iteration and each fit. What it throws ends the fit.
  std::function<void(const MotionProgress&)> progress = nullptr;
};

/// Values with intervals of 95 %, each [v] in the order of MotionModel::value_names. An end is infinite where the
/// recordings do not see the value, or see it so badly that a number of the model may change by 5.
struct MotionEstimate {
  at::Tensor numbers;  ///< [p], without bounds
  at::Tensor values, low, high;
  /// The values are too large by this through the length of the steps; NaN where a value is not seen.
  at::Tensor bias;
  MotionPieces windows;  ///< the fixed windows; with start_deviations, their starts are those that were fitted
};

/// What Adam does in an iteration.
struct MotionStage {
  std::int64_t steps;    ///< of the windows
  std::int64_t windows;  ///< of each recording of the minibatch
  double step_size;
};

/// The stage when the share `done` of the iterations is complete: windows of a quarter of the length in the first 40 %,
/// for which the step size falls from learning_rate to a tenth of it, then whole ones, from .4 to .04 of it.
LCP_API MotionStage motion_stage(const FitMotionOptions& options, double done);

/// The windows of an iteration, of some of the recordings, [k], int64.
LCP_API MotionPieces windows_of_iteration(const MotionWindows& windows, const at::Tensor& recordings,
                                          const FitMotionOptions& options, std::int64_t iteration);

/// Moves the numbers to where the misfit of two fixed windows of each recording is least, and estimates the values.
/// Their standard deviations are the larger of those of least_lengths and, from 16 recordings on, of the scatter of
/// fits to four to eight parts of the recordings, which begin a little elsewhere: the misfit has many local minima, in
/// which a few recordings more or less end differently. The bias of the time steps, by a fit with half of them, is
/// added to both sides, as in lcp/identification/interval.h. Values that can change together without an effect on any
/// window, such as a mass and its moments of inertia, are found by exact derivatives, and count as not seen.
///   start: [p]. options: without velocity_age, windows begin with the recorded velocities, whatever the steps.
///   progress: of the fits that are complete and of all.
LCP_API MotionEstimate estimate_motion(const MotionModel& model, const MotionWindows& windows, const at::Tensor& start,
                                       const FitMotionOptions& options,
                                       const std::function<void(std::int64_t fits, std::int64_t of)>& progress = {});

struct MotionFit {
  MotionEstimate estimate;
  MotionScene scene;              ///< with the values; its dt is that of a step, of which there are `substeps` a sample
  double misfit;                  ///< the mean over the fixed windows, see MotionWindows::misfits
  at::Tensor start_values;        ///< [starts, v], where Adam ended
  at::Tensor start_misfits;       ///< [starts], of the fixed windows there; NaN where none is solved
  std::int64_t unsolved_windows;  ///< of those that Adam drew for the starts
};

/// Fits a model to recordings, dt of its scene apart.
///   recordings: any number of bodies, and of any lengths; see Recording.
/// Throws c10::Error where a shape or an option does not fit, and where no window is solved at any start. The same
/// recordings, options and seed give the same bits, whatever the number of threads.
LCP_API MotionFit fit_motion(const MotionModel& model, const std::vector<Recording>& recordings,
                             const FitMotionOptions& options = {});

/// The same of named parameters, see motion_model.
///   options_of_rollouts: of which `substeps` counts the steps between two samples.
LCP_API MotionFit fit_motion(const physics::RigidScene& scene, const std::vector<Recording>& recordings,
                             const std::vector<std::string>& parameters, const FitMotionOptions& options = {},
                             const physics::RigidOptions& options_of_rollouts = {.substeps = 2});

}  // namespace lcp::identification
