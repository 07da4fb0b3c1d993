// A network that knows nothing of mechanics but that poses change by velocities, to compare with.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tosses/model.h"
#include "tosses/tosses.h"

namespace lcp::training {

struct NetworkSize {
  std::int64_t hidden_layers = 2, hidden_units = 128;
};

/// Layers with tanh from the height of the centre, the rotation matrix, the velocity and the angular velocity to the
/// changes of both velocities in a step, all in units of their standard deviations in the tosses. Poses follow from the
/// velocities after the step. The output layer begins at 0.
class NetworkModel : public TossModel {
 public:
  /// rate: samples per second. gravity: m/s^2, of the file's attribute. seed: of the weights.
  NetworkModel(const std::vector<Toss>& tosses, const NetworkSize& size, double rate, double gravity,
               std::int64_t seed);

  physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const override;
  std::string torchscript_bytes() const override;

 private:
  double rate_, gravity_;
  torch::Tensor mean_, deviation_, unit_;
  std::vector<torch::Tensor> weights_, biases_;
};

}  // namespace lcp::training
