// The formulas of the modules of include/lcp/nn, with tensors as their only arguments. They serve the modules, files of
// TorchScript and, as operators, Python. A tensor may be undefined only where its comment says so. Dimensions before
// the named ones broadcast.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <string>
#include <utility>

#include "lcp/solve.h"

namespace lcp::nn {

/// The parameters of a StateMap.
struct StateMapTensors {
  at::Tensor affine_weight;      ///< [outputs, 2]
  at::Tensor affine_bias;        ///< [outputs], or undefined
  at::Tensor hidden_in_weight;   ///< [hidden, 2], or undefined: there is no tanh layer
  at::Tensor hidden_in_bias;     ///< [hidden], or undefined
  at::Tensor hidden_out_weight;  ///< [outputs, hidden], undefined where hidden_in_weight is
};

/// The value of a StateMap, [..., outputs].
at::Tensor state_map(const at::Tensor& v, const at::Tensor& u, const StateMapTensors& parameters, double velocity_scale,
                     double force_scale);

/// The matrices A_i [n (n - 1) / 2, n, n] and S_i [their number, n, n] of a StructuredMatrix. S is undefined for
/// "none".
///   basis: "none", "diagonal" or "nonnegative". Throws c10::Error for another.
std::pair<at::Tensor, at::Tensor> structured_bases(std::int64_t n, const std::string& basis);

/// M of a StructuredMatrix, [..., n, n]. alpha and S may both be undefined.
at::Tensor structured_matrix(const at::Tensor& phi, const at::Tensor& beta, const at::Tensor& alpha,
                             const at::Tensor& A, const at::Tensor& S);

/// f [..., 2], m/s, and G [..., 2, 2], s/kg, of a DirectModel, for the values [..., 2] and [..., 4] of its maps.
at::Tensor direct_f(const at::Tensor& map, double velocity_scale);
at::Tensor direct_G(const at::Tensor& map, double velocity_scale, double force_scale);

/// G p + f, [..., n].
at::Tensor affine(const at::Tensor& G, const at::Tensor& p, const at::Tensor& f);

/// The forces p of a DirectModel, [..., 2], for the friction forces lambda [..., 2], N.
at::Tensor direct_forces(const at::Tensor& lambda, double max_friction, bool slack);

/// The penalty DirectModelImpl::nonlinearity, of the output weights of the tanh layers of both maps, or undefined
/// tensors where there are none.
///   f_weight: [2, hidden]. G_weight: [4, hidden].
at::Tensor direct_nonlinearity(const at::Tensor& f_weight, const at::Tensor& G_weight,
                               const at::TensorOptions& options);

struct ModelStep {
  at::Tensor v_next;  ///< [...], m/s
  at::Tensor force;   ///< [...], N
  at::Tensor status;  ///< [...], int8
};

/// The step of a DirectModel with these f and G.
ModelStep direct_step(const at::Tensor& v, const at::Tensor& u, const at::Tensor& f, const at::Tensor& G,
                      double max_friction, bool slack, double mass, double dt);

/// The units of a TraditionalModel.
struct BlockUnits {
  double mass, dt, force_unit;

  double velocity_unit() const { return force_unit * dt / mass; }  ///< m/s
};

/// The rows [M|W] of a true block whose largest friction force is `limit` units, [3, 6], float64.
at::Tensor true_rows(double limit);

/// The rows of the model kFriction: the rows of a block without friction, [3, 6], with W33 = factor mu.
at::Tensor friction_rows(const at::Tensor& frictionless_rows, const at::Tensor& mu, double factor);

/// The rows of the model kRows, [..., 3, 6].
///   learned: [..., 3, 6]. negative: [..., 3, 3], or undefined. held, values: [3, 6].
at::Tensor learned_rows(const at::Tensor& learned, const at::Tensor& negative, const at::Tensor& held,
                        const at::Tensor& values, bool monotone, bool revive);

/// G of the model kRows with affine_matrix, [..., 3, 3], in the units of the model.
///   rows: [..., 3, 6]. slopes: [..., 3, 3, 2], without a meaning for held entries. held: [3, 6].
///   v: [...], m/s. u: [...], N.
at::Tensor affine_matrix(const at::Tensor& rows, const at::Tensor& slopes, const at::Tensor& held, const at::Tensor& v,
                         const at::Tensor& u, const BlockUnits& units);

/// The penalty TraditionalModelImpl::overlap of the model kRows with relu pairs; arguments as for learned_rows.
at::Tensor rows_overlap(const at::Tensor& learned, const at::Tensor& negative, const at::Tensor& held, bool revive);

/// The penalties TraditionalModelImpl::missed for G, [..., 3, 3]: [..., 9].
at::Tensor missed_entries(const at::Tensor& G, const at::Tensor& held, const at::Tensor& values);

/// The rows of the model kStructured, [..., 3, 6].
///   M: [..., 3, 3]. learned: [..., 3, 3]. held, values: [3, 6].
at::Tensor structured_rows(const at::Tensor& M, const at::Tensor& learned, const at::Tensor& held,
                           const at::Tensor& values);

/// f = W (v, u, 1)' of the rows [..., 3, 6], in the units of the model: [..., 3].
///   v: [...], m/s. u: [...], N.
at::Tensor f_of_rows(const at::Tensor& rows, const at::Tensor& v, const at::Tensor& u, const BlockUnits& units);

/// G of the model kNetworks, [..., 3, 3].
///   phi: [..., 3]. upper: [..., 3], the upper triangle of the antisymmetric part.
at::Tensor network_matrix(const at::Tensor& phi, const at::Tensor& upper);

struct TraditionalTensors {
  at::Tensor v_next;  ///< [...], m/s
  at::Tensor lambda;  ///< [..., 2], N
  at::Tensor gamma;   ///< [...], m/s
  at::Tensor force;   ///< [...], N
  at::Tensor status;  ///< [...], int8
};

/// Whether a solution of a TraditionalModel says that the block sticks.
at::Tensor solution_sticks(const at::Tensor& lambda, const at::Tensor& gamma);

/// The step of a TraditionalModel with these G and f.
///   dynamics: [6]. rests_by_gamma: whether v_next is 0 where gamma = 0, as for kFriction. exact_rest: whether v_next
///   is 0 wherever the solution says that the block sticks.
TraditionalTensors traditional_step(const at::Tensor& v, const at::Tensor& u, const at::Tensor& G, const at::Tensor& f,
                                    const at::Tensor& dynamics, const BlockUnits& units, bool rests_by_gamma,
                                    bool exact_rest, const SolveOptions& options);

}  // namespace lcp::nn
