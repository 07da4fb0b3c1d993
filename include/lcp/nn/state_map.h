// A network from a block's state and input to a few numbers.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>

namespace lcp::nn {

struct StateMapOptions {
  explicit StateMapOptions(std::int64_t outputs) : outputs_(outputs) {}

  TORCH_ARG(std::int64_t, outputs);
  /// Width of a tanh layer beside the affine map; 0: affine.
  TORCH_ARG(std::int64_t, hidden) = 0;
  TORCH_ARG(bool, bias) = true;  ///< without: y = 0 where v = u = 0
  /// m/s and N: what v and u are divided by, so that the network sees numbers near 1.
  TORCH_ARG(double, velocity_scale) = 1;
  TORCH_ARG(double, force_scale) = 1;
};

/// y = A s + b [+ B tanh(C s + d)],  s = (v / velocity_scale, u / force_scale). B starts at 0: an affine map to begin
/// with.
class StateMapImpl : public torch::nn::Cloneable<StateMapImpl> {
 public:
  /// Throws c10::Error where an option is out of its range.
  explicit StateMapImpl(const StateMapOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// v: [...], m/s. u: [...], N, broadcast. Returns [..., outputs].
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u);

  StateMapOptions options;
  torch::nn::Linear affine{nullptr};
  torch::nn::Linear hidden_in{nullptr};   ///< null where hidden = 0
  torch::nn::Linear hidden_out{nullptr};  ///< null where hidden = 0
};

TORCH_MODULE(StateMap);

}  // namespace lcp::nn
