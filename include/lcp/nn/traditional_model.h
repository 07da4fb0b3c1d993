// A sliding block learned as the LCP of the traditional formulation.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 2.6, 3.1.3 and 3.2.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, section 3.1.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "lcp/export.h"
#include "lcp/nn/structured_matrix.h"
#include "lcp/solve.h"

namespace lcp::nn {

/// The part of a TraditionalModel that is learned.
enum class Parameters {
  kFriction,    ///< the friction coefficient; everything else is known
  kRows,        ///< the matrices M and W of G = M and f = W (v, u, 1)'; any of their entries may be held
  kStructured,  ///< as kRows, but M is a StructuredMatrix of rank 1
  kNetworks     ///< G = phi phi' + an antisymmetric matrix, and f; each of their entries is a StateMap of v and u
};

struct TraditionalModelOptions {
  TORCH_ARG(double, mass) = 1;     ///< kg
  TORCH_ARG(double, dt) = 1;       ///< s
  TORCH_ARG(double, gravity) = 1;  ///< m/s^2
  /// Friction coefficient; NaN where it is not known.
  TORCH_ARG(double, mu) = std::numeric_limits<double>::quiet_NaN();
  TORCH_ARG(double, force_unit) = 1;  ///< N, see TraditionalModelImpl
  TORCH_ARG(Parameters, parameters) = Parameters::kRows;
  /// For kRows: M is monotone, that is z'M z >= 0 for all z, which makes each feasible LCP solvable [CPS, 3.1.2]. The
  /// entries that are learned obey M33 = 0, M13 = -M31, M23 = -M32, and M11, M22 >= |M12 + M21| / 2, as those of a true
  /// block do. Otherwise a small error of M33 leaves LCPs without a solution, or with several.
  TORCH_ARG(bool, monotone) = false;
  TORCH_ARG(bool, relu_pairs) = false;  ///< for kRows: learns the entries of M as relu_pair
  /// For kRows, neither monotone nor with relu_pairs: the entries of G that are not held are affine in v and u, as
  /// [Notes, 3.1.3] first try. Known solutions do not determine such a G.
  TORCH_ARG(bool, affine_matrix) = false;
  TORCH_ARG(SymmetricBasis, basis) = SymmetricBasis::kNone;  ///< for kStructured
  TORCH_ARG(std::int64_t, hidden) = 0;                       ///< for kNetworks: width of the tanh layers
};

/// One step of a block as the LCP [Notes, 2.6]
///
///   w = G(v, u) z + f(v, u),  0 <= z perp w >= 0,  z = (lambda_plus, lambda_minus, gamma)
///   v_next = dynamics . (v, u, 1, z)
///
/// in units in which dt / m = 1: forces in force_unit, velocities in force_unit dt / m. In these units a true block has
///
///   G = [1 -1 1; -1 1 1; -1 -1 0],  f = (v + u, -v - u, F),  dynamics = (1, 1, 0, 1, -1, 0)
///
/// where F = mu m g is the largest friction force. Each row of [G|f] may be scaled by a positive number without a
/// change of the motion; where forces are not observed, (f_0 + f_1) / 2 may have any value <= 0 as well.
///
/// This is the interface of four models, one for each of `Parameters`. The learned tensors of a model are its
/// named_parameters():
///
///   kFriction    mu []
///   kRows        learned [3, 6], which is [M|W]; with relu_pairs it has P in place of M, and negative [3, 3] is N;
///                with affine_matrix, G = M + slopes . (v, u), slopes [3, 3, 2]
///   kStructured  matrix.phi, matrix.alpha and matrix.beta, see StructuredMatrix; learned [3, 3], which is W
///   kNetworks    the parameters of the StateMaps phi [3], beta [3], which holds the upper triangle, and f [3]
class LCP_API TraditionalModelImpl : public torch::nn::Module {
 public:
  struct Step {
    torch::Tensor v_next;  ///< [...], m/s
    torch::Tensor lambda;  ///< [..., 2], lambda_plus and lambda_minus, N
    torch::Tensor gamma;   ///< [...], m/s
    torch::Tensor force;   ///< [...], N: the friction on the block, m (v_next - v) / dt - u
    torch::Tensor status;  ///< [...], int8, see lcp::Status
  };

  /// v_next, see `step`.
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u) { return step(v, u).v_next; }

  /// Solves the learned LCP, in the dtype of the parameters.
  ///   v: [...], m/s. u: [...], N.
  /// A block of kFriction rests exactly while it sticks, which is where gamma = 0; the other models leave round-off.
  Step step(const torch::Tensor& v, const torch::Tensor& u, const SolveOptions& solve_options = {});

  /// Whether a solution says that the block sticks, [...], bool: where gamma = 0 or both friction forces are positive.
  /// gamma alone does not say so. Errors of f make gamma of a sticking block positive wherever (f_0 + f_1) / 2 < 0;
  /// then both forces are positive, so that w_0 = w_1 = 0. A block that slides has one force, at its limit, and
  /// gamma > 0. The active set changes only where the block is within the size of the errors from sliding, and needs no
  /// threshold.
  ///   lambda: [..., 2]. gamma: [...]. In any units.
  static torch::Tensor sticks(const torch::Tensor& lambda, const torch::Tensor& gamma);

  /// Whether `step` returns a v_next of exactly 0, with the derivative 0, where `sticks`. The exact rest is not part of
  /// what is learned: where the model errs about sticking there is no gradient.
  bool exact_rest = false;

  /// The step above with other G [..., 3, 3] and f [..., 3], in the units of the model, than its own.
  Step step(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& G, const torch::Tensor& f,
            const SolveOptions& solve_options = {}) const;

  /// G [..., 3, 3], or [3, 3] where it does not depend on v and u, and f [..., 3], in the units of the model.
  torch::Tensor G_of(const torch::Tensor& v, const torch::Tensor& u) const { return G_of(v, u, theta()); }
  torch::Tensor f_of(const torch::Tensor& v, const torch::Tensor& u) const { return f_of(v, u, theta()); }

  /// [M|W], [3, 6], in the units of the model; M is G at v = u = 0. Throws c10::Error for kNetworks, which have no such
  /// matrices.
  torch::Tensor rows() const { return rows(theta()); }

  /// G, f and [M|W] for other parameters than the model's own, also for many models at once: theta [..., size()]. The
  /// dimensions of v and u, and those of theta before the last, broadcast.
  virtual torch::Tensor G_of(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& theta) const;
  virtual torch::Tensor f_of(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& theta) const;
  virtual torch::Tensor rows(const torch::Tensor& theta) const;

  std::int64_t size() const;    ///< the number of parameters
  torch::Tensor theta() const;  ///< all parameters in one vector, [size()], in the order of named_parameters()
  void set_theta(const torch::Tensor& theta);

  /// Parameters of the same model that satisfy its constraints, [..., size()]. A step of training followed by this
  /// projection is one of projected descent. Without it an entry that a monotone M limits has no gradient while its
  /// parameter is beyond the limit, where M11 and M22 of a true block are.
  virtual torch::Tensor projected(const torch::Tensor& theta) const { return theta; }

  /// The rows of a true block whose largest friction force is `limit` units, [3, 6], float64.
  static torch::Tensor true_rows(double limit);

  /// The parameters, [..., k], by which G depends on v and u, and by which f is not affine, to be penalised, since the
  /// samples leave them much freedom. Only kNetworks and kRows with affine_matrix have such parameters.
  virtual torch::Tensor nonlinear(const torch::Tensor& theta) const;

  /// The sum over the entries of M that are not held of relu_pair_overlap, a scalar to penalise; 0 without relu_pairs.
  virtual torch::Tensor overlap() const;

  /// Whether a relu pair that is 0 may change again, see relu_pair.
  bool revive = false;

  /// Sets the parameters to those of a block with friction coefficient mu, and adds normal noise of the standard
  /// deviation `noise` to each but the mu of kFriction.
  virtual void start(double mu, double noise) = 0;

  /// Random parameters of `count` models, [count, size()], float64, for forces and velocities of size 1 in the units of
  /// the model.
  virtual torch::Tensor random(std::int64_t count, at::Generator generator) const;

  /// Holds the entries of [M|W] where `mask`, [3, 6], bool, is true at the entries of `values`, [3, 6]. A
  /// StructuredMatrix and networks hold nothing; `missed` is a penalty for them.
  void hold(const torch::Tensor& mask, const torch::Tensor& values);

  /// The differences of G, [..., 3, 3], to the held entries of M, [..., 9], to be penalised; 0 elsewhere.
  torch::Tensor missed(const torch::Tensor& G) const;

  /// The unit of velocities, m/s, which follows from the unit of forces.
  double velocity_unit() const { return options.force_unit() * options.dt() / options.mass(); }

  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const override;

  const TraditionalModelOptions options;
  torch::Tensor dynamics;  ///< [6], a buffer; to begin with the true one
  torch::Tensor held;      ///< [3, 6], a buffer: 1 where an entry of [M|W] is held, else 0
  torch::Tensor values;    ///< [3, 6], a buffer: the values of the held entries

 protected:
  /// Throws c10::Error where an option is out of its range.
  explicit TraditionalModelImpl(const TraditionalModelOptions& options);

  /// The rows of a true block with the friction coefficient mu, [3, 6], float64.
  torch::Tensor rows_of(double mu) const;
};

class LCP_API TraditionalModel : public torch::nn::ModuleHolder<TraditionalModelImpl> {
 public:
  using Impl = TraditionalModelImpl;

  /// The model of options.parameters(). Throws c10::Error where an option is out of its range.
  explicit TraditionalModel(const TraditionalModelOptions& options);
};

/// Writes the model as TorchScript with the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status),
/// which solve the learned LCP by lcp::solve. Its attributes are dt, mass, gravity, format_version, and mu: a number
/// where friction is known, and the parameter of kFriction. An existing file is replaced completely or, where writing
/// fails, not at all. Throws c10::Error or std::system_error.
LCP_API void save_torchscript(const TraditionalModel& model, const std::string& path);

/// The bytes of the file that save_torchscript writes.
LCP_API std::string torchscript_bytes(const TraditionalModel& model);

/// Sets the parameters to those of a file that save_torchscript wrote for a model with the same kind of parameters and
/// the same units. For any other file, throws c10::Error that names the file, and leaves the model as it was.
LCP_API void load_torchscript(const TraditionalModel& model, const std::string& path);

}  // namespace lcp::nn
