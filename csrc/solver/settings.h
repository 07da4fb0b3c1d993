// How a problem is to be solved.
#pragma once

#include <cstdint>
#include <optional>

#include "solver/verify.h"

namespace lcp::solver {

enum class Method {
  kAuto,         ///< the whole ladder, see rungs.h
  kLemke,        ///< one run of Lemke's method with d = e
  kEnumeration,  ///< complementary bases, one after another
  kNewtonMin,    ///< Newton's method on min(z, w) = 0
  kCentralPath,  ///< one path z_i w_i = kappa, followed to kappa = 0
};

struct Settings {
  Method method = Method::kAuto;
  double tolerance = default_tolerance(false);  ///< see verify.h
  /// For one problem, all rungs together: pivots of Lemke's method, bases tried, Newton steps. Absent: 30 n pivots for
  /// each run of Lemke, 2^20 bases, 30 + n steps of Newton-min, 1500 steps along all paths.
  std::optional<std::int64_t> max_pivots;
  bool single_precision = false;  ///< z is rounded to float before it is verified
};

}  // namespace lcp::solver
