// fit_motion as an operator, for Python.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lcp/identification/fit_motion.h"
#include "ops/call_python.h"
#include "ops/composite.h"
#include "physics/scene_list.h"

namespace lcp::identification {

LCP_ENUMERATORS(MotionRange, "any", "positive", "share", "positive_definite")
LCP_MEMBERS_BY(MotionEstimate, "numbers, values, low, high, bias",
               [](auto& x) { return std::tie(x.numbers, x.values, x.low, x.high, x.bias); })
LCP_MEMBERS_BY(LeastLengths, "theta, covariance, std, step",
               [](auto& x) { return std::tie(x.theta, x.covariance, x.std, x.step); })

namespace {

using at::Tensor;
using ops::call_python;
using ops::define;
using ops::define_plain;
using Function = ops::PythonFunction;
using TensorVector = std::vector<Tensor>;
using Numbers = std::vector<std::int64_t>;

// A fit for Python, which makes the scene itself.
struct FitForPython {
  MotionEstimate estimate;
  double misfit;
  Tensor start_values, start_misfits;
  std::int64_t unsolved_windows;
  Tensor recording, first;  // of the fixed windows
  physics::RigidState window_starts;
  TensorVector starts;  // of the parameters, of which the values have the shapes
  TensorVector scene;   // the tensors of the scene, and the points and length, empty where there are none
};
LCP_MEMBERS(FitForPython, estimate, misfit, start_values, start_misfits, unsolved_windows, recording, first,
            window_starts, starts, scene)

// The options that are no functions.
struct PlainOptions {
  std::int64_t iterations = 400;
  double learning_rate = 0.1;
  std::int64_t window = 80, batch = 64, starts = 1;
  double spread = 0.5;
  std::int64_t seed = 0;
  bool intervals = true;
  std::optional<double> position_unit;
  double rotation_unit = 0.27;
  std::optional<double> jump, velocity_age;
  std::optional<std::vector<double>> start_deviations;
  std::optional<Function> progress;
};
LCP_MEMBERS(PlainOptions, iterations, learning_rate, window, batch, starts, spread, seed, intervals, position_unit,
            rotation_unit, jump, velocity_age, start_deviations, progress)

FitMotionOptions options_of(const PlainOptions& given) {
  FitMotionOptions options;
  options.iterations = given.iterations;
  options.learning_rate = given.learning_rate;
  options.window = given.window;
  options.batch = given.batch;
  options.starts = given.starts;
  options.spread = given.spread;
  options.seed = given.seed;
  options.intervals = given.intervals;
  options.position_unit = given.position_unit;
  options.rotation_unit = given.rotation_unit;
  options.jump = given.jump;
  options.velocity_age = given.velocity_age;
  if (given.start_deviations) {
    const std::vector<double>& d = *given.start_deviations;
    TORCH_CHECK(d.size() == 4, "start_deviations must be four numbers; got ", d.size());
    options.start_deviations = {d[0], d[1], d[2], d[3]};
  }
  if (given.progress) {
    options.progress = [function = *given.progress](const MotionProgress& now) {
      call_python(function, {at::tensor({now.done, now.misfit}, at::kDouble)}, now.refines ? 1 : 0);
    };
  }
  return options;
}

Tensor defined_or_empty(const Tensor& x) { return x.defined() ? x : at::empty({0}, at::kDouble); }
Tensor undefined_if_empty(const Tensor& x) { return x.numel() == 0 ? Tensor() : x; }

// A function in Python that gives the tensors of a scene, then the points and length, empty where there are none, for
// the values [v]. It is called once for each row of values [..., v].
MotionModel::SceneFunction scenes_of(Function function, std::int64_t bodies, const Numbers& plane_bodies,
                                     const Numbers& touches, const Numbers& touch_counts, double dt) {
  return [=](const Tensor& values) {
    const at::IntArrayRef batch = values.sizes().slice(0, values.dim() - 1);
    std::vector<TensorVector> rows;
    for (const Tensor& row : values.reshape({-1, values.size(-1)}).unbind(0)) {
      rows.push_back(call_python(function, {row}));
    }
    TensorVector all;
    for (std::size_t k = 0; k < rows.front().size(); ++k) {
      TensorVector parts;
      parts.reserve(rows.size());
      for (const TensorVector& row : rows) parts.push_back(row.at(k).to(at::kDouble));
      all.push_back(batch.empty() ? parts.front() : at::stack(parts).unflatten(0, batch));
    }
    MotionScene found;
    found.length = undefined_if_empty(all.back());
    all.pop_back();
    found.points = undefined_if_empty(all.back());
    all.pop_back();
    found.scene = physics::scene_of_list(all, 0, bodies, plane_bodies, touches, touch_counts, dt);
    return found;
  };
}

// scene: the tensors of a scene, as physics::scene_of_list has them. function: of scenes_of, in place of the parameters
// of that scene. starts, ranges, scales: of its parameters.
// recordings: position, orientation, velocity and angular_velocity of each, empty where there is none.
FitForPython fit_motion_of(const TensorVector& scene, std::int64_t bodies, const Numbers& plane_bodies,
                           const Numbers& touches, const Numbers& touch_counts, double dt,
                           const TensorVector& recordings, const std::vector<std::string>& names,
                           const std::optional<Function>& function, const TensorVector& starts,
                           const std::vector<std::string>& ranges, const std::vector<double>& scales,
                           const PlainOptions& options, const physics::RigidOptions& rollouts) {
  TORCH_CHECK(recordings.size() % 4 == 0, "recordings must be four tensors each; got ", recordings.size());
  std::vector<Recording> recorded;
  for (std::size_t k = 0; k < recordings.size(); k += 4) {
    recorded.push_back({recordings[k], recordings[k + 1], undefined_if_empty(recordings[k + 2]),
                        undefined_if_empty(recordings[k + 3])});
  }
  const auto model = [&]() -> MotionModel {
    if (!function) {
      return motion_model(physics::scene_of_list(scene, 0, bodies, plane_bodies, touches, touch_counts, dt), names,
                          rollouts);
    }
    std::vector<MotionParameter> parameters;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto range = ops::enumerator_named<MotionRange>("the range of " + names[k], ranges.at(k));
      parameters.push_back({names[k], starts.at(k), range, scales.at(k)});
    }
    return {std::move(parameters), scenes_of(*function, bodies, plane_bodies, touches, touch_counts, dt), rollouts};
  }();
  const MotionFit found = fit_motion(model, recorded, options_of(options));
  TensorVector first, tensors = physics::list_of_scene(found.scene.scene);
  for (const MotionParameter& parameter : model.parameters()) first.push_back(parameter.start);
  tensors.push_back(defined_or_empty(found.scene.points));
  tensors.push_back(defined_or_empty(found.scene.length));
  const MotionPieces& windows = found.estimate.windows;
  return {found.estimate,
          found.misfit,
          found.start_values,
          found.start_misfits,
          found.unsolved_windows,
          windows.recording,
          windows.first,
          windows.start,
          first,
          tensors};
}

LeastLengths least_lengths_of(Function function, const Tensor& start, const Tensor& group, double step,
                              std::int64_t max_iterations) {
  const auto residuals = [&](const Tensor& theta) { return call_python(function, {theta}).at(0); };
  return least_lengths(residuals, start, group, {.step = step, .max_iterations = max_iterations});
}

physics::RigidState velocities_of(const Tensor& position, const Tensor& orientation, double dt) {
  return with_velocities({position, orientation, {}, {}}, dt);
}

LCP_LIBRARY_FRAGMENT(library) {
  define_plain<fit_motion_of>(library,
                              "_fit_motion(scene, bodies, plane_bodies, touches, touch_counts, dt, recordings, names, "
                              "function, starts, ranges, scales, *, options, rollouts)");
  define_plain<least_lengths_of>(library, "_least_lengths(residuals, start, group, *, step, max_iterations)");
  define<motion_of_points>(library, "_motion_of_points(state, points)");
  define<velocities_of>(library, "_with_velocities(position, orientation, dt)");
}

}  // namespace
}  // namespace lcp::identification
