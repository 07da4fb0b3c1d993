#include "lcp/nn/lcp_network.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <tuple>
#include <utility>

#include "lcp/nn/torchscript.h"
#include "models/lcp_network_formulas.h"
#include "models/parameter_vector.h"

namespace lcp::nn {

using torch::Tensor;

LcpNetworkImpl::LcpNetworkImpl(const LcpNetworkOptions& options_)
    : options(options_), formulas_(std::make_shared<const LcpNetworkFormulas>(options_)) {
  reset();
}

void LcpNetworkImpl::reset() {
  for (const auto& entry : formulas_->entries()) {
    register_parameter(entry.name, torch::zeros(entry.shape, torch::kDouble));
  }
  input_unit = register_buffer("input_unit", torch::ones({options.inputs()}, torch::kDouble));
  output_unit = register_buffer("output_unit", torch::ones({options.outputs()}, torch::kDouble));
}

LcpNetworkImpl::Step LcpNetworkImpl::step(const Tensor& x, const Tensor& theta,
                                          const SolveOptions& solve_options) const {
  return formulas_->step(x, theta, {input_unit, output_unit}, solve_options);
}

LcpNetworkImpl::Parts LcpNetworkImpl::parts(const Tensor& x, const Tensor& theta) const {
  return formulas_->parts(x, theta, input_unit);
}

Tensor LcpNetworkImpl::matrix(const Tensor& theta) const { return formulas_->matrix(theta); }

LcpNetworkImpl::Linearization LcpNetworkImpl::linearize(const Tensor& x, const Tensor& theta,
                                                        const SolveOptions& solve_options) const {
  return formulas_->linearize(x, theta, {input_unit, output_unit}, solve_options);
}

Tensor LcpNetworkImpl::entry(const std::string& name, const Tensor& theta) const {
  return formulas_->entry(name, theta);
}

std::int64_t LcpNetworkImpl::size() const { return formulas_->size(); }

Tensor LcpNetworkImpl::theta() const { return parameter_vector(*this); }

void LcpNetworkImpl::set_theta(const Tensor& theta) { assign_parameters(*this, theta); }

Tensor LcpNetworkImpl::random(std::int64_t count, at::Generator generator) const {
  return formulas_->random(count, std::move(generator));
}

Tensor LcpNetworkImpl::grown(const LcpNetworkImpl& smaller, const Tensor& theta, at::Generator generator) const {
  return formulas_->grown(*smaller.formulas_, theta, std::move(generator));
}

Tensor LcpNetworkImpl::restricted(const Tensor& theta, const Tensor& unknowns) const {
  return formulas_->restricted(theta, unknowns);
}

void LcpNetworkImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::LcpNetwork(inputs=" << options.inputs() << ", outputs=" << options.outputs()
         << ", unknowns=" << options.unknowns() << ", f=" << dependence_name(options.f())
         << ", G=" << dependence_name(options.G()) << ", q=" << dependence_name(options.q())
         << ", hidden=" << options.hidden() << ")";
}

std::string torchscript_bytes(const LcpNetwork& network, const MotionLayout& layout) {
  const std::int64_t d = network->options.outputs();
  TORCH_CHECK(layout.positions + d + layout.inputs == network->options.inputs(), "the network has ",
              network->options.inputs(), " inputs; got ", layout.positions, " positions, ", d, " velocities and ",
              layout.inputs, " inputs");
  const auto example = [](std::int64_t count) { return count == 1 ? at::zeros({1}) : at::zeros({1, count}); };
  ModelInputs inputs = {{"v", example(d)}, {"u", example(layout.inputs)}};
  if (layout.positions > 0) inputs.emplace_back("x", example(layout.positions));
  const auto step = [&](const std::vector<Tensor>& given) {
    const Tensor theta = network->theta();
    std::vector<Tensor> columns;
    const auto add = [&](std::size_t group, std::int64_t count) {
      const Tensor values = given[group].to(theta);
      for (std::int64_t k = 0; k < count; ++k) columns.push_back(count == 1 ? values : values.select(-1, k));
    };
    if (layout.positions > 0) add(2, layout.positions);
    add(0, d);
    add(1, layout.inputs);
    const Tensor x = at::stack(at::broadcast_tensors(columns), -1);
    const LcpNetworkImpl::Step next = network->step(x, theta);
    const auto slice = [&](std::int64_t first) { return x.slice(-1, first, first + d); };
    Tensor force = layout.mass / layout.dt * (next.y - slice(layout.positions));
    if (layout.inputs == d) force = force - slice(layout.positions + d);
    const auto squeezed = [&](const Tensor& y) { return d == 1 ? y.select(-1, 0) : y; };
    return std::tuple(squeezed(next.y), squeezed(force), next.status);
  };
  return torchscript_of("LcpNetwork", *network, {{"dt", layout.dt}, {"mass", layout.mass}, {"gravity", layout.gravity}},
                        inputs, step);
}

}  // namespace lcp::nn
