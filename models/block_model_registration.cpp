// Functions of the models of a sliding block beside stepping, as operators, for Python: starts of training, and files.
// The options of a model are the first keywords of each operator.
#include <torch/library.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "lcp/nn/direct_model.h"
#include "lcp/nn/traditional_model.h"
#include "models/module_tensors.h"
#include "ops/composite.h"

namespace lcp::nn {

LCP_ENUMERATORS(DirectForces, "friction", "slack")
LCP_MEMBERS_BY(DirectModelOptions, "mass, dt, mu, gravity, forces, bias, hidden, velocity_scale, force_scale",
               [](auto& x) {
                 return std::tie(x.mass(), x.dt(), x.mu(), x.gravity(), x.forces(), x.bias(), x.hidden(),
                                 x.velocity_scale(), x.force_scale());
               })
LCP_ENUMERATORS(Parameters, "friction", "rows", "structured", "networks")
LCP_ENUMERATORS(SymmetricBasis, "none", "diagonal", "nonnegative")
LCP_MEMBERS_BY(TraditionalModelOptions,
               "kind, mass, dt, gravity, mu, force_unit, monotone, relu_pairs, affine_matrix, basis, hidden",
               [](auto& x) {
                 return std::tie(x.parameters(), x.mass(), x.dt(), x.gravity(), x.mu(), x.force_unit(), x.monotone(),
                                 x.relu_pairs(), x.affine_matrix(), x.basis(), x.hidden());
               })

namespace {

using at::Tensor;
using ops::define_plain;
using Text = std::string;
using Tensors = std::vector<Tensor>;

// The parameters of a model in a file.
template <class Model, class Options>
Tensors load(const Text& path, const Options& options) {
  Model model(options);
  model->to(at::kDouble);
  load_torchscript(model, path);
  return parameters_of(*model);
}

LCP_LIBRARY_FRAGMENT(library) {
  define_plain(library, "_save_direct_model(parameters, path, *, options)",
               [](const Tensors& parameters, const Text& path, const DirectModelOptions& options) {
                 DirectModel model(options);
                 assign_tensors(*model, parameters, {});
                 save_torchscript(model, path);
               });
  define_plain<load<DirectModel, DirectModelOptions>>(library, "_load_direct_model(path, *, options)");

  using Options = TraditionalModelOptions;
  define_plain(library, "_save_traditional_model(parameters, buffers, exact_rest, revive, path, *, options)",
               [](const Tensors& parameters, const Tensors& buffers, bool exact_rest, bool revive, const Text& path,
                  const Options& options) {
                 TraditionalModel model(options);
                 assign_tensors(*model, parameters, buffers);
                 model->exact_rest = exact_rest;
                 model->revive = revive;
                 save_torchscript(model, path);
               });
  define_plain<load<TraditionalModel, Options>>(library, "_load_traditional_model(path, *, options)");
  define_plain(library, "_traditional_start(start_mu, noise, *, options)",
               [](double start_mu, double noise, const Options& options) {
                 TraditionalModel model(options);
                 model->to(at::kDouble);
                 model->start(start_mu, noise);
                 return parameters_of(*model);
               });
  define_plain(library, "_traditional_random(count, generator?, *, options)",
               [](std::int64_t count, const at::Generator& generator, const Options& options) {
                 return TraditionalModel(options)->random(count, generator);
               });
  define_plain(library, "_traditional_nonlinear(theta, *, options)",
               [](const Tensor& theta, const Options& options) { return TraditionalModel(options)->nonlinear(theta); });
  define_plain(library, "_traditional_projected(theta, buffers, *, options)",
               [](const Tensor& theta, const Tensors& buffers, const Options& options) {
                 TraditionalModel model(options);
                 assign_tensors(*model, parameters_of(*model), buffers);
                 return model->projected(theta);
               });
}

}  // namespace
}  // namespace lcp::nn
