// A sliding block learned from known friction forces, as an LCP that can be stepped.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 2.2, 3.1.1 and 3.1.2.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lcp/export.h"
#include "lcp/nn/state_map.h"

namespace lcp::nn {

/// The forces in the learned equation.
enum class DirectForces {
  kFriction,  ///< (lambda+, lambda-) [Notes, 3.1.1]
  kSlack      ///< (F - lambda-, F - lambda+), where F is the largest friction force [Notes, 3.1.2]
};

struct LCP_API DirectModelOptions {
  double max_friction() const { return mu_ * mass_ * gravity_; }  ///< F, N

  /// p, [..., 2], the forces that G multiplies, for the friction forces lambda, [..., 2], N.
  torch::Tensor forces_of(const torch::Tensor& lambda) const;

  TORCH_ARG(double, mass) = 1;        ///< kg
  TORCH_ARG(double, dt) = 0.1;        ///< s
  TORCH_ARG(double, mu) = 0.3;        ///< friction coefficient; NaN where it is not known, for kSlack
  TORCH_ARG(double, gravity) = 9.81;  ///< m/s^2
  TORCH_ARG(DirectForces, forces) = DirectForces::kFriction;
  TORCH_ARG(bool, bias) = true;  ///< gives f a constant part; G always has one
  /// The StateMapOptions of both f and G.
  TORCH_ARG(std::int64_t, hidden) = 0;
  TORCH_ARG(double, velocity_scale) = 1;
  TORCH_ARG(double, force_scale) = 1;
};

/// The direct formulation with learned f [2] and G [2, 2]:
///
///   x_next = f(v, u) + G(v, u) p,   x = (v+, v-),   p = lambda = (lambda+, lambda-)   or   p = F e - P lambda
///
/// where P swaps the two components, e = (1, 1), and F = mu m g is the largest friction force, which is known. For the
/// true block, with v* = v + dt u / m,
///
///   kFriction:  f = (v*, -v*),   G = -(dt / m) P        kSlack:  f = (v*, -v*) - dt (F / m) e,   G = (dt / m) I
///
/// The slack F e - P lambda is complementary to x_next. Substituted into the equation, it gives the learned LCP with
/// w = x_next and z = F e - P lambda. Its data are M = -G P, q = f + F G e for kFriction, and M = G, q = f for kSlack.
/// A block that sticks has z > 0 in both components, and so rests exactly.
class LCP_API DirectModelImpl : public torch::nn::Cloneable<DirectModelImpl> {
 public:
  struct Step {
    torch::Tensor v_next;  ///< [...], m/s
    torch::Tensor force;   ///< [...], N: the friction on the block, m (v_next - v) / dt - u
    torch::Tensor status;  ///< [...], int8, see lcp::Status
  };

  explicit DirectModelImpl(const DirectModelOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// f + G p [..., 2], m/s, without a relu head.  v: [...], m/s. u: [...], N. p: [..., 2], N.
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& p);

  torch::Tensor f_of(const torch::Tensor& v, const torch::Tensor& u);  ///< [..., 2], m/s
  torch::Tensor G_of(const torch::Tensor& v, const torch::Tensor& u);  ///< [..., 2, 2], s/kg

  /// A penalty, a scalar: the sum of squares of the output weights of the tanh layers; 0 without such layers. Nonlinear
  /// f and G are not unique, since the friction force is a function of v and u; a small penalty selects simple ones.
  torch::Tensor nonlinearity() const;

  /// Solves the learned LCP, in the dtype of the parameters.  v: [...], m/s. u: [...], N.
  Step step(const torch::Tensor& v, const torch::Tensor& u);

  DirectModelOptions options;
  StateMap f{nullptr};
  StateMap G{nullptr};
};

TORCH_MODULE(DirectModel);

/// Writes the model as TorchScript with the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status),
/// which solve the learned LCP by lcp::solve. Its attributes are dt, mass, gravity, mu (where it is known) and
/// format_version. The file can be loaded, and trained further, in C++ linked with TorchLCP::torchlcp and in Python
/// after torch.ops.load_library. An existing file is replaced completely or, where writing fails, not at all. Throws
/// c10::Error or std::system_error.
LCP_API void save_torchscript(const DirectModel& model, const std::string& path);

/// The bytes of the file that save_torchscript writes.
LCP_API std::string torchscript_bytes(const DirectModel& model);

/// Sets the parameters to those of a file that save_torchscript wrote for a model of the same kind of forces and with
/// the same units. For any other file, throws c10::Error that names the file, and leaves the model as it was.
LCP_API void load_torchscript(const DirectModel& model, const std::string& path);

}  // namespace lcp::nn
