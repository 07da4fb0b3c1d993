#include "lcp/nn/traditional_model.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>
#include <vector>

#include "lcp/nn/torchscript.h"
#include "models/formulas.h"
#include "models/parameter_vector.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

// The models in the order of Parameters.
constexpr struct {
  const char* name;
  std::shared_ptr<TraditionalModelImpl> (*make)(const TraditionalModelOptions& options);
} kModels[] = {{"friction", make_friction_model},
               {"rows", make_row_model},
               {"structured", make_structured_model},
               {"networks", make_network_model}};

const auto& entry_of(const TraditionalModelOptions& options) {
  return kModels[static_cast<std::size_t>(options.parameters())];
}

BlockUnits block_units(const TraditionalModelOptions& options) {
  return {options.mass(), options.dt(), options.force_unit()};
}

NamedNumbers units_of(const TraditionalModelImpl& model) {
  return {{"dt", model.options.dt()},
          {"mass", model.options.mass()},
          {"gravity", model.options.gravity()},
          {"velocity_unit", model.velocity_unit()},
          {"force_unit", model.options.force_unit()}};
}

}  // namespace

Tensor numbers(const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); }

void assign(const Tensor& parameter, const Tensor& value, double noise) {
  const torch::NoGradGuard no_grad;
  parameter.copy_(value);
  if (noise > 0) parameter.add_(torch::randn_like(parameter), noise);
}

TraditionalModel::TraditionalModel(const TraditionalModelOptions& options)
    : ModuleHolder(entry_of(options).make(options)) {}

TraditionalModelImpl::TraditionalModelImpl(const TraditionalModelOptions& options_) : options(options_) {
  TORCH_CHECK(options.mass() > 0, "mass must be > 0; got ", options.mass());
  TORCH_CHECK(options.dt() > 0, "dt must be > 0; got ", options.dt());
  TORCH_CHECK(options.gravity() > 0, "gravity must be > 0; got ", options.gravity());
  TORCH_CHECK(std::isnan(options.mu()) || options.mu() >= 0, "mu must be >= 0, or NaN; got ", options.mu());
  TORCH_CHECK(options.force_unit() > 0, "force_unit must be > 0; got ", options.force_unit());
  dynamics = register_buffer("dynamics", torch::tensor({1., 1., 0., 1., -1., 0.}));
  held = register_buffer("held", torch::zeros({3, 6}));
  values = register_buffer("values", torch::zeros({3, 6}));
}

void TraditionalModelImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::TraditionalModel(mass=" << options.mass() << ", dt=" << options.dt()
         << ", gravity=" << options.gravity() << ", parameters=" << entry_of(options).name << ")";
}

std::shared_ptr<torch::nn::Module> TraditionalModelImpl::clone(const std::optional<torch::Device>& device) const {
  TraditionalModel copy(options);
  const auto copy_tensors = [&](const auto& from, auto to) {
    for (const auto& item : from)
      to[item.key()].set_data(item.value().detach().clone().to(device.value_or(item.value().device())));
  };
  copy_tensors(named_parameters(), copy->named_parameters());
  copy_tensors(named_buffers(), copy->named_buffers());
  copy->exact_rest = exact_rest;
  return copy.ptr();
}

Tensor TraditionalModelImpl::true_rows(double limit) { return nn::true_rows(limit); }

Tensor TraditionalModelImpl::rows_of(double mu) const {
  return true_rows(mu * options.mass() * options.gravity() / options.force_unit());
}

void TraditionalModelImpl::hold(const Tensor& mask, const Tensor& given) {
  TORCH_CHECK(mask.sizes() == held.sizes() && mask.scalar_type() == torch::kBool, "mask must be [3, 6], bool; got ",
              mask.sizes(), ", ", mask.scalar_type());
  TORCH_CHECK(given.sizes() == held.sizes(), "values must be [3, 6]; got ", given.sizes());
  const torch::NoGradGuard no_grad;
  held.copy_(mask);
  values.copy_(given);
}

Tensor TraditionalModelImpl::missed(const Tensor& G) const { return missed_entries(G, held, values); }

Tensor TraditionalModelImpl::nonlinear(const Tensor& theta) const { return theta.slice(-1, 0, 0); }

Tensor TraditionalModelImpl::overlap() const { return torch::zeros({}, dynamics.options()); }

Tensor TraditionalModelImpl::rows(const Tensor&) const {
  TORCH_CHECK(false, "networks have no rows: their G and f depend on v and u by more than W");
}

Tensor TraditionalModelImpl::G_of(const Tensor&, const Tensor&, const Tensor& theta) const {
  return rows(theta).slice(-1, 0, 3);
}

Tensor TraditionalModelImpl::f_of(const Tensor& v, const Tensor& u, const Tensor& theta) const {
  return f_of_rows(rows(theta), v, u, block_units(options));
}

std::int64_t TraditionalModelImpl::size() const { return parameter_count(*this); }

Tensor TraditionalModelImpl::theta() const { return parameter_vector(*this); }

void TraditionalModelImpl::set_theta(const Tensor& theta) { assign_parameters(*this, theta); }

Tensor TraditionalModelImpl::random(std::int64_t count, at::Generator generator) const {
  return at::randn({count, size()}, std::move(generator), torch::kDouble);
}

Tensor TraditionalModelImpl::sticks(const Tensor& lambda, const Tensor& gamma) {
  return solution_sticks(lambda, gamma);
}

TraditionalModelImpl::Step TraditionalModelImpl::step(const Tensor& v_given, const Tensor& u_given,
                                                      const SolveOptions& solve_options) {
  const Tensor v = v_given.to(dynamics), u = u_given.to(dynamics);
  return step(v, u, G_of(v, u), f_of(v, u), solve_options);
}

TraditionalModelImpl::Step TraditionalModelImpl::step(const Tensor& v, const Tensor& u, const Tensor& G,
                                                      const Tensor& f, const SolveOptions& solve_options) const {
  const auto [v_next, lambda, gamma, force, status] =
      traditional_step(v, u, G, f, dynamics, block_units(options), options.parameters() == Parameters::kFriction,
                       exact_rest, solve_options);
  return {v_next, lambda, gamma, force, status};
}

std::string torchscript_bytes(const TraditionalModel& given) {
  TraditionalModel model = given;
  const TraditionalModelOptions& options = model->options;
  NamedNumbers attributes = units_of(*model);
  if (!std::isnan(options.mu()) && options.parameters() != Parameters::kFriction) {
    attributes.emplace_back("mu", options.mu());
  }
  return torchscript_of("TraditionalModel", *model, attributes, velocity_and_force(), [&](const auto& inputs) {
    const TraditionalModelImpl::Step step = model->step(inputs[0], inputs[1]);
    return std::tuple(step.v_next, step.force, step.status);
  });
}

void save_torchscript(const TraditionalModel& model, const std::string& path) {
  write_bytes(torchscript_bytes(model), path);
}

void load_torchscript(const TraditionalModel& model, const std::string& path) {
  read_parameters("TraditionalModel", *model.ptr(), units_of(*model), path);
}

}  // namespace lcp::nn
