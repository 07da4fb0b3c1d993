// The errors of rows by the rule of verify.h, a vector of rows at a time.
#pragma once

#include <limits>

#include "simd/vectors.h"
#include "solver/kernels.h"

namespace lcp::solver::LCP_ISA {

using namespace simd::LCP_ISA;

inline RowErrors row_errors(int count, const double* z, const double* w, const double* terms, const RowRule& rule) {
  const Vector largest = std::numeric_limits<double>::max();
  Vector worst = 0;
  Mask<Vector> certain(true), hold(true);
  const auto see = [&](Vector z_i, Vector w_i, Vector terms_i) LCP_INLINE_LAMBDA {
    const Vector scale = stdx::min(stdx::max(terms_i, Vector(rule.least_scale)), Vector(rule.largest_scale));
    const Vector allowed = rule.tolerance * scale;
    Vector error = stdx::min(z_i, w_i);
    stdx::where(z_i > Vector(0), error) = w_i;
    error = stdx::abs(error);
    const Vector excess = error / allowed;
    stdx::where(excess > worst, worst) = excess;  // false for NaN, as in a row without terms if q is 0
    certain =
        certain && rule.rounding * terms_i <= 0.01 * allowed && stdx::abs(w_i) <= largest && stdx::abs(z_i) <= largest;
    hold = hold && error <= kSmallRowResidual * terms_i;
  };
  int i = 0;
  for (; i + kWidth <= count; i += kWidth) see(get(z + i), get(w + i), get(terms + i));
  if (i < count) see(get(z + i, count - i), get(w + i, count - i), get(terms + i, count - i));
  return {stdx::hmax(worst), !stdx::all_of(certain), stdx::all_of(hold)};
}

}  // namespace lcp::solver::LCP_ISA
