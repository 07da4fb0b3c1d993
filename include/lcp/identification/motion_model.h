// Scenes of rigid bodies with parameters that can be fitted to recorded motion.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lcp/export.h"
#include "lcp/physics/rigid_scene.h"

namespace lcp::identification {

/// Which values a parameter may have: any; > 0; from 0 to 1; or symmetric and positive definite matrices [n, n].
enum class MotionRange { kAny, kPositive, kShare, kPositiveDefinite };

/// A parameter that is fitted by numbers without bounds, which are 0 at its start. For a number s:
///   kAny: start + scale s. kPositive: start exp(scale s). kShare: the logit grows by scale s.
///   kPositiveDefinite: L exp(scale S) L' with start = L L', and S a symmetric matrix of n (n + 1) / 2 numbers.
struct MotionParameter {
  std::string name;
  at::Tensor start;  ///< the values to begin with, of any shape, float64
  MotionRange range = MotionRange::kAny;
  double scale = 1;  ///< chosen so that .1 is a small change of the number
};

/// A scene, and how recordings see it.
struct MotionScene {
  physics::RigidScene scene;  ///< with dt, s, the time between two samples of a recording
  /// [..., B, 3], m: the recorded point of each body from its centre of mass, in the axes of the body; undefined: the
  /// centres of mass are recorded.
  at::Tensor points = {};
  at::Tensor length = {};  ///< [...], m: a unit of length of the recordings; undefined: 1
};

/// The motion of other points of bodies than their centres of mass.
///   state: [..., B, k]. points: [..., B, 3], m, from the centres of mass, in the axes of the bodies.
LCP_API physics::RigidState motion_of_points(const physics::RigidState& state, const at::Tensor& points);

/// Parameters, and the scene that has them. p is the number of numbers without bounds, v that of the values.
class LCP_API MotionModel {
 public:
  /// The scene for values [..., v]: those of all parameters, each flattened, one after another.
  using SceneFunction = std::function<MotionScene(const at::Tensor& values)>;

  /// options: of rollouts; `substeps` steps are made between two samples.
  /// Throws c10::Error where a start is out of the range of its parameter.
  MotionModel(std::vector<MotionParameter> parameters, SceneFunction scene, const physics::RigidOptions& options = {});

  const std::vector<MotionParameter>& parameters() const { return parameters_; }
  const physics::RigidOptions& options() const { return options_; }
  std::int64_t numbers() const;  ///< p

  /// The names of the values, v of them: that of the parameter, with the indices of the value behind it, such as
  /// "bodies[0].moments[2]".
  std::vector<std::string> value_names() const;

  /// The values, [..., v], of numbers [..., p]. Differentiable.
  at::Tensor values_at(const at::Tensor& numbers) const;
  /// The numbers, [p], of values [v].
  at::Tensor numbers_of(const at::Tensor& values) const;

  /// The scene with the values [..., v]; dt is that of a step.
  MotionScene scene_of(const at::Tensor& values) const;

  /// The motion from `start`, of tensors [..., B, k], for values [..., v] whose leading dimensions broadcast with those
  /// of `start`. Poses and velocities, those of `start` too, are those of the recorded points in units of the
  /// recordings. Returns tensors [steps, ...], NaN from the first step on that is not solved; differentiable.
  physics::RigidSolution roll_out(const at::Tensor& values, const physics::RigidState& start, std::int64_t steps) const;

  /// The same with steps of half the length.
  MotionModel finer() const;

 private:
  std::vector<MotionParameter> parameters_;
  SceneFunction scene_;
  physics::RigidOptions options_;
  std::vector<at::Tensor> roots_;  // L of each parameter that is a matrix
};

/// The model whose parameters are called
///
///   mu, restitution, stiffness, dissipation   of the contacts, as many numbers as the scene has
///   gravity                                   m/s^2, its size; the direction is that of the scene
///   length                                    m in a unit of length of the recordings, from 1 on
///   bodies[k].mass, bodies[k].drag
///   bodies[k].inertia                         the matrix, [3, 3]
///   bodies[k].moments                         [3], the principal moments of inertia; the axes are those of the scene
///   bodies[k].centers, bodies[k].radii        of each ball of the body
///   bodies[k].radius                          that of all balls of the body
///   bodies[k].size                            the factor of the centres and, unless they are parameters, the radii
///   bodies[k].point                           [3], m, the recorded point of the body from its centre of mass, from 0
///                                             on; the centres of the balls in `scene` are those from this point
///   planes[k].height                          m, along the normal, from 0 on
///   planes[k].tilt                            [2], the slopes along two tangents of the plane, from 0 on; along x and
///   y
///                                             where the plane is level
///
/// where k is the number of a body or plane. The others begin at the values of the scene, which have no batch.
///   scene: dt is the time between two samples.
/// Throws c10::Error for other names, for names that exclude each other, and where a value is out of its range.
LCP_API MotionModel motion_model(const physics::RigidScene& scene, const std::vector<std::string>& names,
                                 const physics::RigidOptions& options = {});

/// The size of a body, m: the mean over its balls of the farthest points from the centre, times 2 / sqrt(3), which is
/// the side of a cube. 0 without balls. Without gradient.
LCP_API double size_of(const physics::RigidBody& body);

}  // namespace lcp::identification
