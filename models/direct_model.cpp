#include "lcp/nn/direct_model.h"

#include <torch/types.h>

#include <cmath>

#include "lcp/nn/torchscript.h"
#include "models/formulas.h"

namespace lcp::nn {
namespace {

NamedNumbers units_of(const DirectModelOptions& options) {
  return {{"dt", options.dt()},
          {"mass", options.mass()},
          {"gravity", options.gravity()},
          {"slack", options.forces() == DirectForces::kSlack ? 1 : 0},
          {"velocity_scale", options.velocity_scale()},
          {"force_scale", options.force_scale()}};
}

}  // namespace

torch::Tensor DirectModelOptions::forces_of(const torch::Tensor& lambda) const {
  return direct_forces(lambda, max_friction(), forces_ == DirectForces::kSlack);
}

DirectModelImpl::DirectModelImpl(const DirectModelOptions& options_) : options(options_) {
  TORCH_CHECK(options.mass() > 0, "mass must be > 0; got ", options.mass());
  TORCH_CHECK(options.dt() > 0, "dt must be > 0; got ", options.dt());
  const bool unknown = std::isnan(options.mu()) && options.forces() == DirectForces::kSlack;
  TORCH_CHECK(options.mu() >= 0 || unknown, "mu must be >= 0, or NaN with slack forces; got ", options.mu());
  TORCH_CHECK(options.gravity() >= 0, "gravity must be >= 0; got ", options.gravity());
  DirectModelImpl::reset();
}

void DirectModelImpl::reset() {
  const auto map = [this](std::int64_t outputs, bool bias) {
    return StateMap(StateMapOptions(outputs)
                        .hidden(options.hidden())
                        .bias(bias)
                        .velocity_scale(options.velocity_scale())
                        .force_scale(options.force_scale()));
  };
  f = register_module("f", map(2, options.bias()));
  G = register_module("G", map(4, true));
}

void DirectModelImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::DirectModel(mass=" << options.mass() << ", dt=" << options.dt() << ", mu=" << options.mu()
         << ", gravity=" << options.gravity()
         << ", forces=" << (options.forces() == DirectForces::kSlack ? "slack" : "friction")
         << ", hidden=" << options.hidden() << ")";
}

torch::Tensor DirectModelImpl::f_of(const torch::Tensor& v, const torch::Tensor& u) {
  return direct_f(f(v, u), options.velocity_scale());
}

torch::Tensor DirectModelImpl::G_of(const torch::Tensor& v, const torch::Tensor& u) {
  return direct_G(G(v, u), options.velocity_scale(), options.force_scale());
}

torch::Tensor DirectModelImpl::forward(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& p) {
  return affine(G_of(v, u), p, f_of(v, u));
}

torch::Tensor DirectModelImpl::nonlinearity() const {
  const bool nonlinear = options.hidden() > 0;
  return direct_nonlinearity(nonlinear ? f->hidden_out->weight : torch::Tensor(),
                             nonlinear ? G->hidden_out->weight : torch::Tensor(), f->affine->weight.options());
}

DirectModelImpl::Step DirectModelImpl::step(const torch::Tensor& v_given, const torch::Tensor& u_given) {
  const torch::Tensor v = v_given.to(f->affine->weight), u = u_given.to(f->affine->weight);
  const auto [v_next, force, status] =
      direct_step(v, u, f_of(v, u), G_of(v, u), options.max_friction(), options.forces() == DirectForces::kSlack,
                  options.mass(), options.dt());
  return {v_next, force, status};
}

std::string torchscript_bytes(const DirectModel& given) {
  DirectModel model = given;
  const DirectModelOptions& options = model->options;
  NamedNumbers attributes = units_of(options);
  if (!std::isnan(options.mu())) attributes.emplace_back("mu", options.mu());
  return torchscript_of("DirectModel", *model, attributes, velocity_and_force(), [&](const auto& inputs) {
    const DirectModelImpl::Step step = model->step(inputs[0], inputs[1]);
    return std::tuple(step.v_next, step.force, step.status);
  });
}

void load_torchscript(const DirectModel& model, const std::string& path) {
  read_parameters("DirectModel", *model.ptr(), units_of(model->options), path);
}

void save_torchscript(const DirectModel& model, const std::string& path) {
  write_bytes(torchscript_bytes(model), path);
}

}  // namespace lcp::nn
