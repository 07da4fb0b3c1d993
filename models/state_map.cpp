#include "lcp/nn/state_map.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "models/formulas.h"
#include "models/parameter_vector.h"

namespace lcp::nn {

StateMapImpl::StateMapImpl(const StateMapOptions& options_) : options(options_) {
  TORCH_CHECK(options.outputs() > 0, "outputs must be > 0; got ", options.outputs());
  TORCH_CHECK(options.hidden() >= 0, "hidden must be >= 0; got ", options.hidden());
  TORCH_CHECK(options.velocity_scale() > 0, "velocity_scale must be > 0; got ", options.velocity_scale());
  TORCH_CHECK(options.force_scale() > 0, "force_scale must be > 0; got ", options.force_scale());
  StateMapImpl::reset();
}

void StateMapImpl::reset() {
  const auto linear = [](std::int64_t in, std::int64_t out, bool bias) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
  };
  affine = register_module("affine", linear(2, options.outputs(), options.bias()));
  if (options.hidden() == 0) return;
  hidden_in = register_module("hidden_in", linear(2, options.hidden(), options.bias()));
  hidden_out = register_module("hidden_out", linear(options.hidden(), options.outputs(), false));
  torch::nn::init::zeros_(hidden_out->weight);
}

void StateMapImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::StateMap(outputs=" << options.outputs() << ", hidden=" << options.hidden()
         << ", bias=" << (options.bias() ? "true" : "false") << ")";
}

torch::Tensor StateMapImpl::value(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& theta) const {
  ParameterReader reader(theta);
  const auto next = [&](const torch::Tensor& parameter) {
    return parameter.defined() ? reader.next(parameter) : torch::Tensor();
  };
  StateMapTensors parameters;
  parameters.affine_weight = next(affine->weight);
  parameters.affine_bias = next(affine->bias);
  if (options.hidden() > 0) {
    parameters.hidden_in_weight = next(hidden_in->weight);
    parameters.hidden_in_bias = next(hidden_in->bias);
    parameters.hidden_out_weight = next(hidden_out->weight);
  }
  return state_map(v, u, parameters, options.velocity_scale(), options.force_scale());
}

std::int64_t StateMapImpl::size() const { return parameter_count(*this); }

torch::Tensor StateMapImpl::theta() const { return parameter_vector(*this); }

void StateMapImpl::set_theta(const torch::Tensor& theta) { assign_parameters(*this, theta); }

}  // namespace lcp::nn
