// Motion learned as a network that ends in an LCP.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.2.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, section 3.1.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "lcp/export.h"
#include "lcp/solve.h"

namespace lcp::nn {

/// The dependence of a part of an LcpNetwork on x.
enum class Dependence {
  kAbsent,    ///< the part is 0
  kConstant,  ///< it does not depend on x
  kAffine,    ///< W x + b
  kNetwork    ///< W x + b + V a(C x + d), with the activation a
};

enum class Activation { kTanh, kRelu };

/// "absent", "constant", "affine" or "network", and back. Throws c10::Error for another name, with that of the part.
LCP_API const char* dependence_name(Dependence dependence);
LCP_API Dependence dependence_named(const std::string& name, const std::string& part);

/// That of the name "tanh" or "relu". Throws c10::Error for another.
LCP_API Activation activation_named(const std::string& name);

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

class LcpNetworkFormulas;

/// The map
///
///   y = f(x) + G(x) z,   0 <= z perp M z + q(x) >= 0,   M = L L' + epsilon I + U - U'
///
/// for the lower triangle L and the strict upper triangle U of a learned matrix. The symmetric part of M is positive
/// definite, so that the LCP has exactly one solution whatever q is [CPS, 3.1.6]. The map is continuous and, for affine
/// parts, piecewise affine. Any LCP with a positive definite M can be written so, since z may be scaled.
///
/// Where z = 0, y is f, and without f exactly 0, which is how a block that rests is represented [Notes, 3.2.3]. A y
/// that is at most 64 epsilon times the sum of its unit and of its terms' absolute values is round-off and counts as 0.
/// Its derivative is the derivative of the sum of its terms.
///
/// x and y are measured in units of their own, the buffers input_unit [p] and output_unit [d], at first 1.
class LCP_API LcpNetworkImpl : public torch::nn::Cloneable<LcpNetworkImpl> {
 public:
  struct Step {
    torch::Tensor y;       ///< [..., d]
    torch::Tensor z;       ///< [..., n]
    torch::Tensor status;  ///< [...], int8, see lcp::Status
    /// [...], the sum of |G_i| z_i over the unknowns, with the norms of the columns of G: 0 where no unknown has an
    /// effect. Unlike z it does not depend on how the unknowns are scaled.
    torch::Tensor activity;
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

  /// Sets the parameters to 0 and the units to 1.
  void reset() override;

  /// y, see `step`.  x: [..., p].
  torch::Tensor forward(const torch::Tensor& x) { return step(x).y; }

  Step step(const torch::Tensor& x, const SolveOptions& solve_options = {}) const {
    return step(x, theta(), solve_options);
  }

  /// The step with other parameters than the network's own, for many networks at once: theta [..., size()], see
  /// `theta`. The dimensions before the last ones of x and theta broadcast.
  Step step(const torch::Tensor& x, const torch::Tensor& theta, const SolveOptions& solve_options = {}) const;
  Parts parts(const torch::Tensor& x, const torch::Tensor& theta) const;
  torch::Tensor matrix(const torch::Tensor& theta) const;  ///< M, [..., n, n]

  struct Linearization {
    torch::Tensor values;    ///< [b, s, d + 1]: y, in output_unit, and the activity
    torch::Tensor jacobian;  ///< [b, s, d + 1, size()], of the values in theta
  };

  /// The values and their Jacobians of many networks, at a fraction of the cost of a backward pass to theta for each
  /// sample and output. The result has no gradient.
  ///   x: [s, p]. theta: [b, size()]. solve_options: with kappa = 0.
  Linearization linearize(const torch::Tensor& x, const torch::Tensor& theta,
                          const SolveOptions& solve_options = {}) const;

  /// The parameter `name` as a part of theta, [..., size()], with which it shares memory: [..., its shape]. Throws
  /// c10::Error where there is none.
  torch::Tensor entry(const std::string& name, const torch::Tensor& theta) const;

  /// The number of parameters.
  std::int64_t size() const;

  /// All parameters in one vector, [size()], in the order of named_parameters().
  torch::Tensor theta() const;
  void set_theta(const torch::Tensor& theta);

  /// Random parameters for `count` networks, [count, size()], float64, for data whose x and y have the size 1.
  torch::Tensor random(std::int64_t count, at::Generator generator) const;

  /// Parameters of a network that begins as a smaller one, which has some of its parts, and fewer or as many unknowns
  /// and hidden units. Parts that the smaller network lacks are random; new unknowns have M_ii = 1 and a small effect
  /// G.
  ///   theta: [smaller.size()]. Returns [size()].
  torch::Tensor grown(const LcpNetworkImpl& smaller, const torch::Tensor& theta, at::Generator generator) const;

  /// Parameters of this network with only some of its unknowns, for a network with as many: the same map wherever the
  /// other unknowns are 0.
  ///   theta: [size()]. unknowns: [k], int64, indices in ascending order.
  torch::Tensor restricted(const torch::Tensor& theta, const torch::Tensor& unknowns) const;

  void pretty_print(std::ostream& stream) const override;

  LcpNetworkOptions options;
  torch::Tensor input_unit;   ///< [p], a buffer
  torch::Tensor output_unit;  ///< [d], a buffer

 private:
  std::shared_ptr<const LcpNetworkFormulas> formulas_;
};

TORCH_MODULE(LcpNetwork);

/// The motion that an LcpNetwork of x = (positions, velocities, inputs) describes; y are the velocities after a step.
struct MotionLayout {
  std::int64_t positions;  ///< number of positions; that of the velocities is outputs()
  std::int64_t inputs;     ///< number of inputs, N
  double dt;               ///< s, or NaN: not known
  double mass;             ///< kg, or NaN: not known
  double gravity;          ///< m/s^2
};

/// The bytes of a TorchScript file with the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status)
/// or, where there are positions, forward(v, u, x) and step(v, u, x). Its attributes are dt, mass, gravity and
/// format_version. v, u, x, v_next and force have a last dimension where they have more than one component; without
/// inputs u is not used. The force beside u is mass (v_next - v) / dt, less u where each velocity has its input. Where
/// dt or mass is NaN, so is force; v_next does not depend on them.
LCP_API std::string torchscript_bytes(const LcpNetwork& network, const MotionLayout& layout);

}  // namespace lcp::nn
