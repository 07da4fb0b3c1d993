// A network from a block's state and input to a few numbers.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>

#include "lcp/export.h"

namespace lcp::nn {

struct StateMapOptions {
  explicit StateMapOptions(std::int64_t outputs) : outputs_(outputs) {}

  TORCH_ARG(std::int64_t, outputs);
  /// Width of a tanh layer that is added to the affine map; 0: none.
  TORCH_ARG(std::int64_t, hidden) = 0;
  TORCH_ARG(bool, bias) = true;  ///< without it y = 0 for v = u = 0
  /// m/s and N: the units by which v and u are divided, so that the inputs of the network are of size 1.
  TORCH_ARG(double, velocity_scale) = 1;
  TORCH_ARG(double, force_scale) = 1;
};

/// y = A s + b [+ B tanh(C s + d)],  s = (v / velocity_scale, u / force_scale). B is 0 at
/// first, so that the map starts affine.
class LCP_API StateMapImpl : public torch::nn::Cloneable<StateMapImpl> {
 public:
  /// Throws c10::Error where an option is out of its range.
  explicit StateMapImpl(const StateMapOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// v: [...], m/s. u: [...], N, broadcast. Returns [..., outputs].
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u) { return value(v, u, theta()); }

  /// The outputs with other parameters than the map's own, for many maps at once: theta [..., size()], in the order of
  /// named_parameters(). The dimensions of v and u, and those of theta before the last, broadcast.
  torch::Tensor value(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& theta) const;

  std::int64_t size() const;    ///< the number of parameters
  torch::Tensor theta() const;  ///< all parameters in one vector, [size()]
  void set_theta(const torch::Tensor& theta);

  StateMapOptions options;
  torch::nn::Linear affine{nullptr};
  torch::nn::Linear hidden_in{nullptr};   ///< empty for hidden = 0
  torch::nn::Linear hidden_out{nullptr};  ///< empty for hidden = 0
};

TORCH_MODULE(StateMap);

}  // namespace lcp::nn
