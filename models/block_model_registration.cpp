// Functions of the models of a sliding block beside stepping, as operators, for Python: starts of training, and files.
// The options of a model are the first keywords of each operator.
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/nn/direct_model.h"
#include "lcp/nn/traditional_model.h"
#include "models/module_tensors.h"
#include "ops/composite.h"

namespace lcp::nn {
namespace {

using at::Tensor;
using Text = std::string;

DirectModel direct_model(double mass, double dt, double mu, double gravity, const Text& forces, bool bias,
                         std::int64_t hidden, double velocity_scale, double force_scale) {
  return DirectModel(DirectModelOptions()
                         .mass(mass)
                         .dt(dt)
                         .mu(mu)
                         .gravity(gravity)
                         .forces(forces == "slack" ? DirectForces::kSlack : DirectForces::kFriction)
                         .bias(bias)
                         .hidden(hidden)
                         .velocity_scale(velocity_scale)
                         .force_scale(force_scale));
}

void save_direct_model(at::TensorList parameters, const Text& path, double mass, double dt, double mu, double gravity,
                       const Text& forces, bool bias, std::int64_t hidden, double velocity_scale, double force_scale) {
  DirectModel model = direct_model(mass, dt, mu, gravity, forces, bias, hidden, velocity_scale, force_scale);
  assign_tensors(*model, parameters, {});
  save_torchscript(model, path);
}

std::vector<Tensor> load_direct_model(const Text& path, double mass, double dt, double mu, double gravity,
                                      const Text& forces, bool bias, std::int64_t hidden, double velocity_scale,
                                      double force_scale) {
  DirectModel model = direct_model(mass, dt, mu, gravity, forces, bias, hidden, velocity_scale, force_scale);
  model->to(at::kDouble);
  load_torchscript(model, path);
  return parameters_of(*model);
}

TraditionalModel traditional_model(const Text& kind, double mass, double dt, double gravity, double mu,
                                   double force_unit, bool monotone, bool relu_pairs, const Text& basis,
                                   std::int64_t hidden) {
  const auto parameters = kind == "friction"     ? Parameters::kFriction
                          : kind == "rows"       ? Parameters::kRows
                          : kind == "structured" ? Parameters::kStructured
                                                 : Parameters::kNetworks;
  const auto symmetric = basis == "none"       ? SymmetricBasis::kNone
                         : basis == "diagonal" ? SymmetricBasis::kDiagonal
                                               : SymmetricBasis::kNonnegative;
  return TraditionalModel(TraditionalModelOptions()
                              .mass(mass)
                              .dt(dt)
                              .gravity(gravity)
                              .mu(mu)
                              .force_unit(force_unit)
                              .parameters(parameters)
                              .monotone(monotone)
                              .relu_pairs(relu_pairs)
                              .basis(symmetric)
                              .hidden(hidden));
}

void save_traditional_model(at::TensorList parameters, at::TensorList buffers, bool exact_rest, bool revive,
                            const Text& path, const Text& kind, double mass, double dt, double gravity, double mu,
                            double force_unit, bool monotone, bool relu_pairs, const Text& basis, std::int64_t hidden) {
  TraditionalModel model =
      traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden);
  assign_tensors(*model, parameters, buffers);
  model->exact_rest = exact_rest;
  model->revive = revive;
  save_torchscript(model, path);
}

std::vector<Tensor> load_traditional_model(const Text& path, const Text& kind, double mass, double dt, double gravity,
                                           double mu, double force_unit, bool monotone, bool relu_pairs,
                                           const Text& basis, std::int64_t hidden) {
  TraditionalModel model =
      traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden);
  model->to(at::kDouble);
  load_torchscript(model, path);
  return parameters_of(*model);
}

std::vector<Tensor> traditional_start(double start_mu, double noise, const Text& kind, double mass, double dt,
                                      double gravity, double mu, double force_unit, bool monotone, bool relu_pairs,
                                      const Text& basis, std::int64_t hidden) {
  TraditionalModel model =
      traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden);
  model->to(at::kDouble);
  model->start(start_mu, noise);
  return parameters_of(*model);
}

Tensor traditional_random(std::int64_t count, const std::optional<at::Generator>& generator, const Text& kind,
                          double mass, double dt, double gravity, double mu, double force_unit, bool monotone,
                          bool relu_pairs, const Text& basis, std::int64_t hidden) {
  return traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden)
      ->random(count, generator.value_or(at::Generator()));
}

Tensor traditional_nonlinear(const Tensor& theta, const Text& kind, double mass, double dt, double gravity, double mu,
                             double force_unit, bool monotone, bool relu_pairs, const Text& basis,
                             std::int64_t hidden) {
  return traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden)
      ->nonlinear(theta);
}

Tensor traditional_projected(const Tensor& theta, at::TensorList buffers, const Text& kind, double mass, double dt,
                             double gravity, double mu, double force_unit, bool monotone, bool relu_pairs,
                             const Text& basis, std::int64_t hidden) {
  TraditionalModel model =
      traditional_model(kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, basis, hidden);
  assign_tensors(*model, parameters_of(*model), buffers);
  return model->projected(theta);
}

LCP_LIBRARY_FRAGMENT(library) {
  const auto define = [&](const Text& name, const Text& arguments, const Text& options, const Text& results,
                          auto function) {
    library.def((name + "(" + arguments + ", *, " + options + ") -> " + results).c_str(), function);
  };
  const Text direct =
      "float mass, float dt, float mu, float gravity, str forces, bool bias, int hidden, float velocity_scale, "
      "float force_scale";
  define("_save_direct_model", "Tensor[] parameters, str path", direct, "()", TORCH_FN(save_direct_model));
  define("_load_direct_model", "str path", direct, "Tensor[]", TORCH_FN(load_direct_model));
  const Text traditional =
      "str kind, float mass, float dt, float gravity, float mu, float force_unit, bool monotone, bool relu_pairs, "
      "str basis, int hidden";
  define("_save_traditional_model", "Tensor[] parameters, Tensor[] buffers, bool exact_rest, bool revive, str path",
         traditional, "()", TORCH_FN(save_traditional_model));
  define("_load_traditional_model", "str path", traditional, "Tensor[]", TORCH_FN(load_traditional_model));
  define("_traditional_start", "float start_mu, float noise", traditional, "Tensor[]", TORCH_FN(traditional_start));
  define("_traditional_random", "int count, Generator? generator", traditional, "Tensor", TORCH_FN(traditional_random));
  define("_traditional_nonlinear", "Tensor theta", traditional, "Tensor", TORCH_FN(traditional_nonlinear));
  define("_traditional_projected", "Tensor theta, Tensor[] buffers", traditional, "Tensor",
         TORCH_FN(traditional_projected));
}

}  // namespace
}  // namespace lcp::nn
