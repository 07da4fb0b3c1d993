// Layers of contact that are asked for the same gradient: that of the misfit of windows of tosses in friction,
// restitution, side and inertia of a cube.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tosses/cube_model.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// The parameters, in the order of CubeModel::names().
const std::vector<std::string> kJudgedParameters = {"mu", "restitution", "side", "inertia"};

struct GradientLayer {
  std::string name;
  std::string model;  ///< layers with the same loss have the same, whatever they say of its gradient

  /// Of windows, each with raw numbers of its own, [b, 4]: [b], NaN where not solved.
  std::function<torch::Tensor(const torch::Tensor& raw, const Segments& windows)> loss;

  /// > 0: the gradient is that of central differences of raw numbers this far to both sides; else it is that of
  /// autograd.
  double difference = 0;
};

/// The gradient of each window, [b, 4]; NaN where the loss or the gradient is not finite.
torch::Tensor gradient_of(const GradientLayer& layer, const torch::Tensor& raw, const Segments& windows);

/// The same by central differences.
torch::Tensor differences(const GradientLayer& layer, double step, const torch::Tensor& raw, const Segments& windows);

struct LayerOptions {
  Cube start;                 ///< where the raw numbers are 0
  CubeContact contact;        ///< substeps and directions
  double rate;                ///< samples per second
  double side;                ///< m, the unit of length of the step losses
  std::vector<double> kappa;  ///< of the exact cone, the first also of polyhedral contact
  double wide, narrow;        ///< differences
};

/// What all layers are judged by, the first of gradient_layers: wide differences of the misfit of the exact cone.
constexpr std::size_t kReference = 0;

/// `windows` must outlive them.
std::vector<GradientLayer> gradient_layers(const LayerOptions& options, const identification::MotionWindows& windows);

}  // namespace lcp::training
