// LcpNetwork as operators, for Python. The options of a network are the first keywords of each operator.
#include <torch/library.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/nn/torchscript.h"
#include "models/lcp_network_formulas.h"
#include "models/module_tensors.h"
#include "ops/composite.h"

namespace lcp::nn {
namespace {

using at::Tensor;
using Text = std::string;
using Sizes = at::IntArrayRef;

// sizes: inputs, outputs, unknowns and hidden.
LcpNetworkOptions network_options(Sizes sizes, const Text& f, const Text& G, const Text& q, const Text& activation,
                                  double definiteness) {
  return LcpNetworkOptions(sizes[0], sizes[1], sizes[2])
      .f(dependence_named(f, "f"))
      .G(dependence_named(G, "G"))
      .q(dependence_named(q, "q"))
      .hidden(sizes[3])
      .activation(activation_named(activation))
      .definiteness(definiteness);
}

std::tuple<std::vector<Text>, std::vector<Tensor>> network_parameters(Sizes sizes, const Text& f, const Text& G,
                                                                      const Text& q, const Text& activation,
                                                                      double definiteness) {
  const LcpNetworkFormulas network(network_options(sizes, f, G, q, activation, definiteness));
  std::pair<std::vector<Text>, std::vector<Tensor>> all;
  for (const auto& entry : network.entries()) {
    all.first.push_back(entry.name);
    all.second.push_back(at::zeros(entry.shape, at::kDouble));
  }
  return all;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> network_step(const Tensor& x, const Tensor& theta, const Tensor& input_unit,
                                                        const Tensor& output_unit, Sizes sizes, const Text& f,
                                                        const Text& G, const Text& q, const Text& activation,
                                                        double definiteness, const Text& method, const Text& ties,
                                                        double kappa, std::optional<double> tolerance,
                                                        std::optional<std::int64_t> max_pivots) {
  const LcpNetworkFormulas network(network_options(sizes, f, G, q, activation, definiteness));
  const auto step =
      network.step(x, theta, {input_unit, output_unit}, ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.y, step.z, step.status, step.activity};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> network_parts(const Tensor& x, const Tensor& theta, const Tensor& input_unit,
                                                         Sizes sizes, const Text& f, const Text& G, const Text& q,
                                                         const Text& activation, double definiteness) {
  const LcpNetworkFormulas network(network_options(sizes, f, G, q, activation, definiteness));
  const auto parts = network.parts(x, theta, input_unit);
  return {parts.f, parts.G, parts.q, parts.M};
}

Tensor matrix_of_network(const Tensor& theta, Sizes sizes, const Text& f, const Text& G, const Text& q,
                         const Text& activation, double definiteness) {
  return LcpNetworkFormulas(network_options(sizes, f, G, q, activation, definiteness)).matrix(theta);
}

Tensor network_entry(const Tensor& theta, const Text& name, Sizes sizes, const Text& f, const Text& G, const Text& q,
                     const Text& activation, double definiteness) {
  return LcpNetworkFormulas(network_options(sizes, f, G, q, activation, definiteness)).entry(name, theta);
}

std::tuple<Tensor, Tensor> network_linearize(const Tensor& x, const Tensor& theta, const Tensor& input_unit,
                                             const Tensor& output_unit, Sizes sizes, const Text& f, const Text& G,
                                             const Text& q, const Text& activation, double definiteness,
                                             const Text& method, const Text& ties, double kappa,
                                             std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  const LcpNetworkFormulas network(network_options(sizes, f, G, q, activation, definiteness));
  const auto found = network.linearize(x, theta, {input_unit, output_unit},
                                       ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {found.values, found.jacobian};
}

Tensor network_random(std::int64_t count, const std::optional<at::Generator>& generator, Sizes sizes, const Text& f,
                      const Text& G, const Text& q, const Text& activation, double definiteness) {
  return LcpNetworkFormulas(network_options(sizes, f, G, q, activation, definiteness))
      .random(count, generator.value_or(at::Generator()));
}

// smaller_sizes, smaller_f, ...: the options of the smaller network, whose parameters are theta.
Tensor network_grown(const Tensor& theta, const std::optional<at::Generator>& generator, Sizes smaller_sizes,
                     const Text& smaller_f, const Text& smaller_G, const Text& smaller_q, Sizes sizes, const Text& f,
                     const Text& G, const Text& q, const Text& activation, double definiteness) {
  const LcpNetworkFormulas smaller(
      network_options(smaller_sizes, smaller_f, smaller_G, smaller_q, activation, definiteness));
  return LcpNetworkFormulas(network_options(sizes, f, G, q, activation, definiteness))
      .grown(smaller, theta, generator.value_or(at::Generator()));
}

Tensor network_restricted(const Tensor& theta, const Tensor& unknowns, Sizes sizes, const Text& f, const Text& G,
                          const Text& q, const Text& activation, double definiteness) {
  return LcpNetworkFormulas(network_options(sizes, f, G, q, activation, definiteness)).restricted(theta, unknowns);
}

void save_network(at::TensorList parameters, at::TensorList buffers, const Text& path, std::int64_t positions,
                  std::int64_t motion_inputs, double dt, double mass, double gravity, Sizes sizes, const Text& f,
                  const Text& G, const Text& q, const Text& activation, double definiteness) {
  LcpNetwork network(network_options(sizes, f, G, q, activation, definiteness));
  assign_tensors(*network, parameters, buffers);
  write_bytes(torchscript_bytes(network, {positions, motion_inputs, dt, mass, gravity}), path);
}

LCP_LIBRARY_FRAGMENT(library) {
  const Text options = "int[] sizes, str f, str G, str q, str activation, float definiteness";
  const Text solve = options + ", " + ops::kSolveArguments, units = "Tensor input_unit, Tensor output_unit, *, ";
  const auto define = [&](const Text& schema, auto function) { ops::define_composite(library, schema, function); };
  define("_lcp_network_step(Tensor x, Tensor theta, " + units + solve +
             ") -> (Tensor y, Tensor z, Tensor status, Tensor activity)",
         TORCH_FN(network_step));
  define("_lcp_network_parts(Tensor x, Tensor theta, Tensor input_unit, *, " + options +
             ") -> (Tensor f, Tensor G, Tensor q, Tensor M)",
         TORCH_FN(network_parts));
  define("_lcp_network_matrix(Tensor theta, *, " + options + ") -> Tensor", TORCH_FN(matrix_of_network));
  define("_lcp_network_entry(Tensor theta, str name, *, " + options + ") -> Tensor", TORCH_FN(network_entry));
  define("_lcp_network_restricted(Tensor theta, Tensor unknowns, *, " + options + ") -> Tensor",
         TORCH_FN(network_restricted));
  // The operators below are called where modules are made or fitted, and not under transforms.
  library.def(("_lcp_network_parameters(*, " + options + ") -> (str[] names, Tensor[] values)").c_str(),
              TORCH_FN(network_parameters));
  library.def(
      ("_lcp_network_linearize(Tensor x, Tensor theta, " + units + solve + ") -> (Tensor values, Tensor jacobian)")
          .c_str(),
      TORCH_FN(network_linearize));
  library.def(("_lcp_network_random(int count, Generator? generator, *, " + options + ") -> Tensor").c_str(),
              TORCH_FN(network_random));
  library.def(("_lcp_network_grown(Tensor theta, Generator? generator, *, int[] smaller_sizes, str smaller_f, "
               "str smaller_G, str smaller_q, " +
               options + ") -> Tensor")
                  .c_str(),
              TORCH_FN(network_grown));
  library.def(
      ("_save_lcp_network(Tensor[] parameters, Tensor[] buffers, str path, *, int positions, int motion_inputs, "
       "float dt, float mass, float gravity, " +
       options + ") -> ()")
          .c_str(),
      TORCH_FN(save_network));
}

}  // namespace
}  // namespace lcp::nn
