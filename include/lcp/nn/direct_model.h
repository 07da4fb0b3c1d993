// A sliding block learned from known friction forces, as an LCP that can be stepped.
//
//   [Notes] Pfrommer: LCP Notes, 2019, sections 2.2, 3.1.1 and 3.1.2.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lcp/nn/state_map.h"

namespace lcp::nn {

/// The forces of the learned equation.
enum class DirectForces {
  kFriction,  ///< (lambda+, lambda-) [Notes, 3.1.1]
  kSlack      ///< what is left to the largest friction force F, (F - lambda-, F - lambda+) [Notes, 3.1.2]
};

struct DirectModelOptions {
  double max_friction() const { return mu_ * mass_ * gravity_; }  ///< F, N

  /// p, the forces that G multiplies, of lambda: [..., 2], N.
  torch::Tensor forces_of(const torch::Tensor& lambda) const;

  TORCH_ARG(double, mass) = 1;        ///< kg
  TORCH_ARG(double, dt) = 0.1;        ///< s
  TORCH_ARG(double, mu) = 0.3;        ///< friction coefficient, known
  TORCH_ARG(double, gravity) = 9.81;  ///< m/s^2
  TORCH_ARG(DirectForces, forces) = DirectForces::kFriction;
  TORCH_ARG(bool, bias) = true;  ///< of f; G has its constant part in any case
  /// See StateMapOptions; for f and G alike.
  TORCH_ARG(std::int64_t, hidden) = 0;
  TORCH_ARG(double, velocity_scale) = 1;
  TORCH_ARG(double, force_scale) = 1;
};

/// The direct formulation with learned f [2] and G [2, 2]:
///
///   x_next = f(v, u) + G(v, u) p,   x = (v+, v-),   p = lambda = (lambda+, lambda-)   or   p = F e - P lambda
///
/// where P swaps the two components, e = (1, 1), and F = mu m g is the largest friction force, which is known. The true
/// block has, with v* = v + dt u / m,
///
///   kFriction:  f = (v*, -v*),   G = -(dt / m) P        kSlack:  f = (v*, -v*) - dt (F / m) e,   G = (dt / m) I
///
/// The slack F e - P lambda is complementary to x_next. Put into the equation it gives the learned LCP: w = x_next,
/// z = F e - P lambda and M = -G P, q = f + F G e, or, learned with slack, M = G, q = f. A block that sticks has both
/// z > 0 and so rests exactly.
class DirectModelImpl : public torch::nn::Cloneable<DirectModelImpl> {
 public:
  struct Step {
    torch::Tensor v_next;  ///< [...], m/s
    torch::Tensor force;   ///< [...], N: the friction on the block, m (v_next - v) / dt - u
    torch::Tensor status;  ///< [...], int8, see lcp::Status
  };

  explicit DirectModelImpl(const DirectModelOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// f + G p [..., 2], m/s, before any head.  v: [...], m/s. u: [...], N. p: [..., 2], N.
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& p);

  torch::Tensor f_of(const torch::Tensor& v, const torch::Tensor& u);  ///< [..., 2], m/s
  torch::Tensor G_of(const torch::Tensor& v, const torch::Tensor& u);  ///< [..., 2, 2], s/kg

  /// The sum of squares of what the tanh layers contribute with, a scalar; 0 without them. f and G are not unique once
  /// they may be nonlinear, since the friction force is a function of v and u; a little of this keeps them plain.
  torch::Tensor nonlinearity() const;

  /// Solves the learned LCP, in the parameters' dtype.  v: [...], m/s. u: [...], N.
  Step step(const torch::Tensor& v, const torch::Tensor& u);

  DirectModelOptions options;
  StateMap f{nullptr};
  StateMap G{nullptr};
};

TORCH_MODULE(DirectModel);

/// Writes the model as TorchScript: forward(v, u) -> v_next and step(v, u) -> (v_next, force, status), which solve the
/// learned LCP by lcp::solve; attributes dt, mass, gravity, mu, format_version. It loads in C++ linked with
/// TorchLCP::torchlcp and in Python after torch.ops.load_library, its parameters trainable. An existing file is
/// replaced in one step, or, should anything fail, not at all.
void save_torchscript(const DirectModel& model, const std::string& path);

/// What save_torchscript writes.
std::string torchscript_bytes(const DirectModel& model);

}  // namespace lcp::nn
