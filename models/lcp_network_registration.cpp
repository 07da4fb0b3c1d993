// LcpNetwork as operators, for Python. The options of a network are the first keywords of each.
#include <torch/library.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lcp/nn/torchscript.h"
#include "models/lcp_network_formulas.h"
#include "models/module_tensors.h"
#include "ops/composite.h"

namespace lcp::nn {

LCP_ENUMERATORS(Dependence, "absent", "constant", "affine", "network")
LCP_ENUMERATORS(Activation, "tanh", "relu")
LCP_MEMBERS(LcpNetworkFormulas::Step, y, z, status, activity)
LCP_MEMBERS(LcpNetworkFormulas::Parts, f, G, q, M)
LCP_MEMBERS(LcpNetworkFormulas::Linearization, values, jacobian)
LCP_MEMBERS(MotionLayout, positions, motion_inputs, dt, mass, gravity)
LCP_MEMBERS(NetworkUnits, input_unit, output_unit)

namespace {

using at::Tensor;
using ops::define;
using ops::define_plain;
using Text = std::string;
using Tensors = std::vector<Tensor>;

// A network as the options of an operator.
struct Network {
  std::vector<std::int64_t> sizes;  // inputs, outputs, unknowns and hidden
  Dependence f, G, q;
  Activation activation;
  double definiteness;

  operator LcpNetworkOptions() const {  // NOLINT(google-explicit-constructor)
    return LcpNetworkOptions(sizes[0], sizes[1], sizes[2])
        .f(f)
        .G(G)
        .q(q)
        .hidden(sizes[3])
        .activation(activation)
        .definiteness(definiteness);
  }
  LcpNetworkFormulas formulas() const { return LcpNetworkFormulas(*this); }
};
LCP_MEMBERS(Network, sizes, f, G, q, activation, definiteness)

// The parts of the smaller of two networks, as far as they may differ.
struct SmallerNetwork {
  std::vector<std::int64_t> sizes;
  Dependence f, G, q;
};
LCP_MEMBERS(SmallerNetwork, smaller_sizes, smaller_f, smaller_G, smaller_q)

struct ParameterList {
  std::vector<Text> names;
  Tensors values;
};
LCP_MEMBERS(ParameterList, names, values)

LCP_LIBRARY_FRAGMENT(library) {
  define(library, "_lcp_network_step(x, theta, units, *, network, options=)",
         [](const Tensor& x, const Tensor& theta, const NetworkUnits& units, const Network& network,
            const SolveOptions& options) { return network.formulas().step(x, theta, units, options); });
  define(library, "_lcp_network_parts(x, theta, input_unit, *, network)",
         [](const Tensor& x, const Tensor& theta, const Tensor& input_unit, const Network& network) {
           return network.formulas().parts(x, theta, input_unit);
         });
  define(library, "_lcp_network_matrix(theta, *, network)",
         [](const Tensor& theta, const Network& network) { return network.formulas().matrix(theta); });
  define(library, "_lcp_network_entry(theta, name, *, network)",
         [](const Tensor& theta, const Text& name, const Network& network) {
           return network.formulas().entry(name, theta);
         });
  define(library, "_lcp_network_restricted(theta, unknowns, *, network)",
         [](const Tensor& theta, const Tensor& unknowns, const Network& network) {
           return network.formulas().restricted(theta, unknowns);
         });
  // These are called where modules are made or fitted, and not under transforms.
  define_plain(library, "_lcp_network_parameters(*, network)", [](const Network& network) {
    const LcpNetworkFormulas formulas = network.formulas();
    ParameterList all;
    for (const auto& entry : formulas.entries()) {
      all.names.push_back(entry.name);
      all.values.push_back(at::zeros(entry.shape, at::kDouble));
    }
    return all;
  });
  define_plain(library, "_lcp_network_linearize(x, theta, units, *, network, options=)",
               [](const Tensor& x, const Tensor& theta, const NetworkUnits& units, const Network& network,
                  const SolveOptions& options) { return network.formulas().linearize(x, theta, units, options); });
  define_plain(library, "_lcp_network_random(count, generator?, *, network)",
               [](std::int64_t count, const at::Generator& generator, const Network& network) {
                 return network.formulas().random(count, generator);
               });
  define_plain(
      library, "_lcp_network_grown(theta, generator?, *, smaller, network)",
      [](const Tensor& theta, const at::Generator& generator, const SmallerNetwork& smaller, const Network& network) {
        const Network from{smaller.sizes, smaller.f, smaller.G, smaller.q, network.activation, network.definiteness};
        return network.formulas().grown(from.formulas(), theta, generator);
      });
  define_plain(library, "_save_lcp_network(parameters, buffers, path, *, motion, network)",
               [](const Tensors& parameters, const Tensors& buffers, const Text& path, const MotionLayout& motion,
                  const Network& network) {
                 LcpNetwork module{LcpNetworkOptions(network)};
                 assign_tensors(*module, parameters, buffers);
                 write_bytes(torchscript_bytes(module, motion), path);
               });
}

}  // namespace
}  // namespace lcp::nn
