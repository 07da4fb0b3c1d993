// A sliding block learned as the LCP of the traditional formulation.
//
//   [Notes] Pfrommer: LCP Notes, 2019, sections 2.6, 3.1.3 and 3.2.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

#include "lcp/nn/state_map.h"
#include "lcp/nn/structured_matrix.h"
#include "lcp/solve.h"

namespace lcp::nn {

/// What of a TraditionalModel is learned.
enum class Parameters {
  kFriction,    ///< the friction coefficient; all else is true
  kRows,        ///< [M|W]: G = M and f = W (v, u, 1)', of which any numbers may be held
  kStructured,  ///< the same with M a StructuredMatrix of rank 1
  kNetworks     ///< G = phi phi' + an antisymmetric part and f, each entry a StateMap of v and u
};

struct TraditionalModelOptions {
  TORCH_ARG(double, mass) = 1;     ///< kg
  TORCH_ARG(double, dt) = 1;       ///< s
  TORCH_ARG(double, gravity) = 1;  ///< m/s^2
  /// Friction coefficient, where it is known; NaN: it is not.
  TORCH_ARG(double, mu) = std::numeric_limits<double>::quiet_NaN();
  TORCH_ARG(double, force_unit) = 1;  ///< N, see TraditionalModel
  TORCH_ARG(Parameters, parameters) = Parameters::kRows;
  TORCH_ARG(SymmetricBasis, basis) = SymmetricBasis::kNone;  ///< of kStructured
  TORCH_ARG(std::int64_t, hidden) = 0;                       ///< width of the tanh layers of kNetworks
};

/// One step of a block as the LCP [Notes, 2.6]
///
///   w = G(v, u) z + f(v, u),  0 <= z perp w >= 0,  z = (lambda_plus, lambda_minus, gamma)
///   v_next = dynamics . (v, u, 1, z)
///
/// All of it in units in which dt / m = 1: forces in force_unit, velocities in force_unit dt / m. There a true block
/// has
///
///   G = [1 -1 1; -1 1 1; -1 -1 0],  f = (v + u, -v - u, F),  dynamics = (1, 1, 0, 1, -1, 0)
///
/// with F the largest friction force, mu m g. Each row of [G|f] may be scaled; where forces are not observed, (f_0 +
/// f_1) / 2 may be anything <= 0 as well.
class TraditionalModelImpl : public torch::nn::Cloneable<TraditionalModelImpl> {
 public:
  struct Step {
    torch::Tensor v_next;  ///< [...], m/s
    torch::Tensor lambda;  ///< [..., 2], lambda_plus and lambda_minus, N
    torch::Tensor gamma;   ///< [...], m/s
    torch::Tensor force;   ///< [...], N: the friction on the block, m (v_next - v) / dt - u
    torch::Tensor status;  ///< [...], int8, see lcp::Status
  };

  /// Throws c10::Error where an option is out of its range.
  explicit TraditionalModelImpl(const TraditionalModelOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// v_next, see `step`.
  torch::Tensor forward(const torch::Tensor& v, const torch::Tensor& u) { return step(v, u).v_next; }

  /// Solves the learned LCP, in the parameters' dtype. v: [...], m/s. u: [...], N.
  /// A block of kFriction that sticks, gamma = 0, rests exactly; of the others none does.
  Step step(const torch::Tensor& v, const torch::Tensor& u, const SolveOptions& solve_options = {});

  /// The same with G: [..., 3, 3] and f: [..., 3] in the model's units in place of its own.
  Step step(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& G, const torch::Tensor& f,
            const SolveOptions& solve_options = {}) const;

  /// In the model's units: [..., 3, 3], or [3, 3] where it does not depend on v and u, and [..., 3].
  torch::Tensor G_of(const torch::Tensor& v, const torch::Tensor& u);
  torch::Tensor f_of(const torch::Tensor& v, const torch::Tensor& u);

  /// [M|W], [3, 6], in the model's units; of all but kNetworks.
  torch::Tensor rows();

  /// The rows of a true block whose largest friction force is `limit` units, [3, 6], float64.
  static torch::Tensor true_rows(double limit);

  /// The sum of squares of what makes G depend on v and u and f depend on them by more than W, a scalar; 0 without
  /// networks. Observed motion leaves networks much freedom; a little of this keeps them plain.
  torch::Tensor nonlinearity() const;

  /// Starts learning from a block with friction coefficient mu, each learned number off by `noise` times a normal one.
  void start(double mu, double noise);

  /// Holds the numbers of [M|W] where `mask`, [3, 6], bool, is true at those of `values`, [3, 6]. A StructuredMatrix
  /// and networks cannot be held: see `missed`.
  void hold(const torch::Tensor& mask, const torch::Tensor& values);

  /// How far G, [..., 3, 3], is from its held numbers: the sum of the mean absolute differences, a scalar to penalise.
  torch::Tensor missed(const torch::Tensor& G) const;

  /// m/s: the unit of velocities, whose forces are in units of force_unit.
  double velocity_unit() const { return options.force_unit() * options.dt() / options.mass(); }

  TraditionalModelOptions options;
  torch::Tensor mu;                  ///< [], of kFriction
  torch::Tensor learned;             ///< [3, 6], of kRows: [M|W] where it is not held; [3, 3], of kStructured: W
  StructuredMatrix matrix{nullptr};  ///< of kStructured
  StateMap phi{nullptr};             ///< 3, of kNetworks
  StateMap beta{nullptr};            ///< 3, of kNetworks
  StateMap f{nullptr};               ///< 3, of kNetworks
  torch::Tensor dynamics;            ///< [6], a buffer, the true one to begin with
  torch::Tensor held;                ///< [3, 6], a buffer: 1 where a number is held
  torch::Tensor values;              ///< [3, 6], a buffer: of the held numbers
};

TORCH_MODULE(TraditionalModel);

/// Writes the model as TorchScript: forward(v, u) -> v_next and step(v, u) -> (v_next, force, status), which solve the
/// learned LCP by lcp::solve; attributes dt, mass, gravity, format_version, and mu where friction is known (a float) or
/// learned (the parameter of kFriction). An existing file is replaced in one step, or, should anything fail, not at
/// all.
void save_torchscript(const TraditionalModel& model, const std::string& path);

/// What save_torchscript writes.
std::string torchscript_bytes(const TraditionalModel& model);

}  // namespace lcp::nn
