// Rigid contact with polyhedral friction as a linear complementarity problem [ST].
//
//   [ST] Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and
//        Coulomb friction, International Journal for Numerical Methods in Engineering 39, 1996.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lcp/export.h"

namespace lcp {

/// The directions of friction of each contact, at the angles angle + 2 pi i / count from t1 towards t2.
struct FrictionDirections {
  std::int64_t count = 4;  ///< >= 3
  double angle = 0;        ///< radians
};

struct FrictionProblem {
  at::Tensor M;  ///< [..., f, f]
  at::Tensor q;  ///< [..., f]
};

struct FrictionMotion {
  at::Tensor v;      ///< [..., n], m/s
  at::Tensor gamma;  ///< [..., 3 c], N s, impulses (t1, t2, n) of each contact
};

/// The LCP w = M z + q, 0 <= z perp w >= 0, of the contacts that the other arguments define as in lcp::solve_friction,
/// with the pyramid that the directions span in place of each cone. It has f = c (count + 2) unknowns: the normal
/// impulses, [c]; the impulses in the directions, [c, count]; and the slip speeds, [c]. M is copositive, so that
/// in exact arithmetic Lemke's method finds a solution where b_t = 0 and b_n >= 0. Differentiable in all five, any
/// number of times. Throws c10::Error for shapes, dtypes, devices or directions that do not fit.
LCP_API FrictionProblem friction_problem(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                         const at::Tensor& b, const at::Tensor& mu,
                                         const FrictionDirections& directions = {});

/// v and gamma of a solution z, [..., f], of the friction_problem of A, v_free and J.
/// Throws c10::Error for shapes, dtypes, devices or directions that do not fit.
LCP_API FrictionMotion friction_motion(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                       const at::Tensor& z, const FrictionDirections& directions = {});

}  // namespace lcp
