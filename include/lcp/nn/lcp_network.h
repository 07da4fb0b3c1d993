// Motion learned as a network that ends in an LCP.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.2.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, section 3.1.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "lcp/solve.h"

namespace lcp::nn {

/// How a part of an LcpNetwork depends on x.
enum class Dependence {
  kAbsent,    ///< the part is 0
  kConstant,  ///< it does not depend on x
  kAffine,    ///< W x + b
  kNetwork    ///< W x + b + V a(C x + d), with the activation a
};

enum class Activation { kTanh, kRelu };

struct LcpNetworkOptions {
  LcpNetworkOptions(std::int64_t inputs, std::int64_t outputs, std::int64_t unknowns)
      : inputs_(inputs), outputs_(outputs), unknowns_(unknowns) {}

  TORCH_ARG(std::int64_t, inputs);    ///< p
  TORCH_ARG(std::int64_t, outputs);   ///< d
  TORCH_ARG(std::int64_t, unknowns);  ///< n
  TORCH_ARG(Dependence, f) = Dependence::kAbsent;
  TORCH_ARG(Dependence, G) = Dependence::kConstant;  ///< not kAbsent
  TORCH_ARG(Dependence, q) = Dependence::kAffine;    ///< or kNetwork
  TORCH_ARG(std::int64_t, hidden) = 8;               ///< width of the hidden layer of each part that is a network
  TORCH_ARG(Activation, activation) = Activation::kTanh;
  TORCH_ARG(double, definiteness) = 0.3;  ///< epsilon > 0, see LcpNetworkImpl
};

/// The map
///
///   y = f(x) + G(x) z,   0 <= z perp M z + q(x) >= 0,   M = L L' + epsilon I + U - U'
///
/// for the lower triangle L and the strict upper triangle U of a learned matrix. The symmetric part of M is positive
/// definite, so that the LCP has exactly one solution whatever q is [CPS, 3.1.6]. The map is continuous and, for affine
/// parts, piecewise affine. Any LCP with a positive definite M can be written so, since z may be scaled.
///
/// Without f, y is exactly 0 where z is, which is how a block that rests is represented [Notes, 3.2.3]. With f, a sum
/// that is nothing but the round-off of its terms counts as 0; its derivative is that of the sum.
///
/// x and y are measured in units of their own, the buffers input_unit [p] and output_unit [d], at first 1.
class LcpNetworkImpl : public torch::nn::Module {
 public:
  struct Step {
    torch::Tensor y;       ///< [..., d]
    torch::Tensor z;       ///< [..., n]
    torch::Tensor status;  ///< [...], int8, see lcp::Status
  };

  /// The parts of the map at x, in its units.
  struct Parts {
    torch::Tensor f;  ///< [..., d]; undefined where f is absent
    torch::Tensor G;  ///< [..., d, n]
    torch::Tensor q;  ///< [..., n]
    torch::Tensor M;  ///< [..., n, n]
  };

  /// Parameters are 0. Throws c10::Error where an option is out of its range.
  explicit LcpNetworkImpl(const LcpNetworkOptions& options);

  /// y, see `step`.  x: [..., p].
  torch::Tensor forward(const torch::Tensor& x) { return step(x).y; }

  Step step(const torch::Tensor& x, const SolveOptions& solve_options = {}) const {
    return step(x, theta(), solve_options);
  }

  /// The same with other parameters than its own, for many networks at once: theta [..., size()], see `theta`. The
  /// dimensions before the last ones of x and theta broadcast.
  Step step(const torch::Tensor& x, const torch::Tensor& theta, const SolveOptions& solve_options = {}) const;
  Parts parts(const torch::Tensor& x, const torch::Tensor& theta) const;
  torch::Tensor matrix(const torch::Tensor& theta) const;  ///< M, [..., n, n]

  /// The number of parameters.
  std::int64_t size() const { return size_; }

  /// All parameters in one vector, [size()], in the order of named_parameters().
  torch::Tensor theta() const;
  void set_theta(const torch::Tensor& theta);

  /// Random parameters for `count` networks, [count, size()], float64, for data whose x and y have the size 1.
  torch::Tensor random(std::int64_t count, at::Generator generator) const;

  void pretty_print(std::ostream& stream) const override;

  const LcpNetworkOptions options;
  torch::Tensor input_unit;   ///< [p], a buffer
  torch::Tensor output_unit;  ///< [d], a buffer

 private:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t first;  // of its entries in theta
    double deviation;    // of its random entries
  };

  void add(const std::string& name, std::vector<std::int64_t> shape, double deviation);
  void add_part(const std::string& name, Dependence dependence, std::int64_t outputs, double weight, double bias);
  torch::Tensor entry(const std::string& name, const torch::Tensor& theta) const;
  torch::Tensor value(const std::string& part, Dependence dependence, const torch::Tensor& x,
                      const torch::Tensor& theta) const;

  std::vector<Entry> entries_;
  std::int64_t size_ = 0;
};

TORCH_MODULE(LcpNetwork);

}  // namespace lcp::nn
