// The options of a solve.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/method.h"
#include "solver/verify.h"

namespace lcp::solver {

using lcp::Method;

struct Settings {
  Method method = Method::kAuto;
  double tolerance = default_tolerance(false);  ///< see verify.h
  /// The limit for one problem and all rungs together: pivots of Lemke's method, bases tried, Newton steps. Absent: 30
  /// n pivots for each run of Lemke, 2^20 bases, 30 + n steps of Newton-min, 1500 steps along all paths.
  std::optional<std::int64_t> max_pivots;
  bool single_precision = false;  ///< M and q hold floats; z is rounded to float before it is verified
  bool quick = false;             ///< kAuto: only the rungs that take a time like that of Lemke's method
  /// Whether the problem was computed from another, and more is computed from its z. Then z is not rounded in single
  /// precision. Rows with small terms, which may be only round-off, need not hold as well as the others.
  bool derived = false;
};

}  // namespace lcp::solver
