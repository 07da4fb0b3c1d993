// The parameters v_hat and R of lcp::solve_contact for given stiffnesses and dampings.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp {

struct ContactParameters {
  at::Tensor v_hat;  ///< [..., 3 c], m/s
  at::Tensor R;      ///< [..., 3 c], 1/kg
};

struct RegularizationOptions {
  /// R_t / w, with the Delassus diagonal w. A contact that sticks creeps with the velocity sigma w times its impulse.
  double sigma = 1e-3;

  /// The shortest period of the contact's oscillation, in time steps. Where the stiffness k would give a shorter one,
  /// the contact is made softer.
  double beta = 1.0;
};

/// Parameters with which the normal impulse of a contact is that of a spring and a damper at the end of the step. With
/// the gap phi = gap + dt v_n there, gamma_n = max(0, dt (-k phi - k tau v_n)) [CPH, sec. IV]:
///
///   v_hat = (0, 0, -gap / (dt + tau)),   R_n = max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau))),   R_t = sigma w
///
///   gap: [..., c], m, at the beginning of the step, negative where bodies overlap.
///   stiffness k: [..., c], N/m. dissipation tau: [..., c], s. delassus w: [..., c], 1/kg, see delassus_diagonal.
///   All of one dtype; they broadcast. dt: s, > 0.
///
/// Differentiable in all four tensors. Where R_n is the bound with beta, nothing depends on k; with beta = 0 there is
/// no such bound. Throws c10::Error for a dt or an option out of its range, shapes that do not broadcast, and different
/// or unsupported dtypes.
LCP_API ContactParameters contact_parameters(const at::Tensor& gap, const at::Tensor& stiffness,
                                             const at::Tensor& dissipation, const at::Tensor& delassus, double dt,
                                             const RegularizationOptions& options = {});

/// w, [..., c], 1/kg: the mean of the diagonal of J_k A^-1 J_k', the inverse of the effective mass at contact k. [CPH]
/// uses the root mean square of the block's entries instead. Both are w for a block w I, but only the mean is smooth.
///
///   A: [..., n, n], symmetric and positive definite (otherwise the result is NaN). J: [..., 3 c, n]. Their batch
///   dimensions broadcast.
///
/// Differentiable in both. Throws c10::Error for other shapes, dtypes or devices.
LCP_API at::Tensor delassus_diagonal(const at::Tensor& A, const at::Tensor& J);

}  // namespace lcp
