#include "lcp/nn/relu_pair.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace lcp::nn {
namespace {

using at::Tensor;

class RevivingRelu : public torch::autograd::Function<RevivingRelu> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x.clamp_min(0);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& incoming) {
    const Tensor x = context->get_saved_variables()[0], &gradient = incoming[0];
    return {at::where((x > 0) | (gradient < 0), gradient, at::zeros_like(gradient))};
  }
};

Tensor part(const Tensor& x, bool revive) { return revive ? RevivingRelu::apply(x) : x.relu(); }

}  // namespace

Tensor relu_pair(const Tensor& P, const Tensor& N, bool revive) { return part(P, revive) - part(N, revive); }

Tensor relu_pair_overlap(const Tensor& P, const Tensor& N, bool revive) {
  return (part(P, revive) * part(N, revive)).sum();
}

}  // namespace lcp::nn
