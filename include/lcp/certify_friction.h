// The accuracy of a solution of lcp::solve_friction, and how well its derivative is defined.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lcp/export.h"
#include "lcp/solve_friction.h"

namespace lcp {

/// One value of each kind per element of the batch, [...]. Where lcp::solve_friction would report kBadInput and where v
/// or gamma is not finite, residual and margin are NaN, rank is 0 and unique false.
struct FrictionCertificate {
  /// The larger one of two errors. The first is the distance to Coulomb's law that FrictionOptions::tolerance bounds,
  /// relative to the largest |J v_free + b|. The second is the relative error of A (v - v_free) = J' gamma, each
  /// component in the unit sqrt(A_ii).
  at::Tensor residual;

  /// The least distance of a contact to a change between stick, slide and being apart, where the derivative jumps. It
  /// is relative to the largest |J v_free + b|:
  ///   - apart: u_n;
  ///   - stick: the smaller of d gamma_n and the distance of d gamma to the surface of the cone;
  ///   - slide: the smaller of d gamma_n and, where mu > 0, |u_t|;
  ///   - a row: |s| at a bound, else the distance of d h to the nearest bound, in the units of FrictionOptions::rows.
  /// It can be negative where v and gamma are no solution. Infinity without contacts.
  at::Tensor margin;

  /// int64, the rank of the linearised law in the impulses: 3 c, with rows 3 c + k, where gamma is determined.
  at::Tensor rank;

  /// bool, whether v is determined: false where the impulses of contacts may change so that bodies move and all
  /// contacts still obey the law. The derivative is one of many there.
  at::Tensor unique;
};

/// Certifies v: [..., n], m/s, and gamma: [..., 3 c], N s, with rows [..., 3 c + k], as a solution, whichever method
/// found it. The other arguments define the problem as in lcp::solve_friction, with the sizes and rows of
/// FrictionOptions. The result is not differentiable. Throws c10::Error for shapes, dtypes or devices that do not fit.
LCP_API FrictionCertificate certify_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                             const at::Tensor& b, const at::Tensor& mu, const at::Tensor& v,
                                             const at::Tensor& gamma, const std::optional<at::Tensor>& sizes = {},
                                             const std::optional<FrictionRows>& rows = {});

}  // namespace lcp
