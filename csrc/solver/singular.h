// The size of a pivot below which a matrix counts as singular.
#pragma once

namespace lcp::solver {

/// M_aa counts as singular if a pivot is below this share of the largest, which is the error of the entries.
constexpr double negligible_pivot(bool single_precision) { return single_precision ? 1e-5 : 1e-12; }

}  // namespace lcp::solver
