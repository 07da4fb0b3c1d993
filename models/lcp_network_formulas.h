// The map of an LcpNetwork as functions of its parameters: for the module and, as operators, for Python.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lcp/nn/lcp_network.h"

namespace lcp::nn {

/// The units in which an LcpNetwork measures x and y.
struct NetworkUnits {
  at::Tensor input;   ///< [p]
  at::Tensor output;  ///< [d]
};

/// The functions of LcpNetworkImpl, where their documentation stands. They depend on its options, on parameters theta
/// [..., size()] and on the units.
class LcpNetworkFormulas {
 public:
  /// A parameter as a part of theta.
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t first;    ///< the place in theta of its first number
    double deviation;      ///< the standard deviation of its random numbers
    std::int64_t unknown;  ///< the dimension that counts unknowns, or -1; M has two
  };

  using Parts = LcpNetworkImpl::Parts;
  using Step = LcpNetworkImpl::Step;
  using Linearization = LcpNetworkImpl::Linearization;

  /// Throws c10::Error where an option is out of its range.
  explicit LcpNetworkFormulas(const LcpNetworkOptions& options);

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t size() const { return size_; }

  at::Tensor entry(const std::string& name, const at::Tensor& theta) const;
  at::Tensor matrix(const at::Tensor& theta) const;
  Parts parts(const at::Tensor& x, const at::Tensor& theta, const at::Tensor& input_unit) const;
  Step step(const at::Tensor& x, const at::Tensor& theta, const NetworkUnits& units,
            const SolveOptions& solve_options) const;
  Linearization linearize(const at::Tensor& x, const at::Tensor& theta, const NetworkUnits& units,
                          const SolveOptions& solve_options) const;
  at::Tensor random(std::int64_t count, at::Generator generator) const;
  at::Tensor grown(const LcpNetworkFormulas& smaller, const at::Tensor& theta, at::Generator generator) const;
  at::Tensor restricted(const at::Tensor& theta, const at::Tensor& unknowns) const;

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, double deviation, std::int64_t unknown);
  void add_part(const std::string& name, Dependence dependence, const std::vector<std::int64_t>& outputs, double weight,
                double bias, std::int64_t unknown);
  at::Tensor value(const std::string& part, Dependence dependence, const at::Tensor& x, const at::Tensor& theta) const;
  at::Tensor assembled(const Parts& at_x, const at::Tensor& z, const at::Tensor& output_unit) const;

  LcpNetworkOptions options_;
  std::vector<Entry> entries_;
  std::int64_t size_ = 0;
};

}  // namespace lcp::nn
