// The v_hat and R of lcp::solve_contact from what bodies are made of.
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
  double sigma =
      1e-3;  ///< R of the tangents over the Delassus diagonal w: what sticks creeps at sigma w times its impulse
  double beta = 1.0;  ///< where k is so large that the contact would swing faster than in beta time steps, it is softer
};

/// With these, the impulse of a contact that ends its step at the gap phi = gap + dt v_n is that of a spring and a
/// damper, gamma_n = dt (-k phi - k tau v_n) or 0 [CPH, sec. IV]:
///
///   v_hat = (0, 0, -gap / (dt + tau)),   R_n = max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau))),   R_t = sigma w
///
///   gap: [..., c], m, at the beginning of the step, negative where bodies overlap.
///   stiffness k: [..., c], N/m. dissipation tau: [..., c], s. delassus w: [..., c], 1/kg, as of delassus_diagonal.
///   All of one dtype; they broadcast. dt: s, > 0.
///
/// Differentiable in all of them. Where R_n is that of beta, nothing depends on k; beta = 0 is never that. Throws
/// c10::Error for a dt or options out of their range, shapes that do not broadcast, and dtypes.
LCP_API ContactParameters contact_parameters(const at::Tensor& gap, const at::Tensor& stiffness,
                                             const at::Tensor& dissipation, const at::Tensor& delassus, double dt,
                                             const RegularizationOptions& options = {});

/// [..., c]: the mean of the diagonal of J_k A^-1 J_k', the inverse of the mass that contact k feels, 1/kg. [CPH] has
/// the root mean square of the block's numbers; for a block w I this is w, and it is smooth.
///
///   A: [..., n, n], symmetric and positive definite (else NaN). J: [..., 3 c, n]. Their batch dimensions broadcast.
///
/// Differentiable in both. Throws c10::Error for shapes, dtypes or devices that are none of these.
LCP_API at::Tensor delassus_diagonal(const at::Tensor& A, const at::Tensor& J);

}  // namespace lcp
