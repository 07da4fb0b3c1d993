#include "solver/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/scale.h"
#include "solver/kernels.h"

namespace lcp::solver {
namespace {

// The number of rows of M that one call of the kernel sums before their violations are looked at.
constexpr int kRows = 64;

// The least scale of a row, relative to |q|_inf. Times the tolerance it is 1e-13, which is above the rounding errors of
// a q_i that should be 0. Such a q_i is the sum of terms as large as |q|_inf. M z does not have these terms if the row
// is that of a contact that others make redundant.
constexpr double kLeastScale = 1e-4;

}  // namespace

double accurate_sum(int n, const double* row, const double* z, double q) {
  double sum = q;
  double error = 0;
  for (int j = 0; j < n; ++j) {
    const double product = row[j] * z[j];
    const double next = sum + product;
    const double part = next - sum;
    error += std::fma(row[j], z[j], -product) + ((sum - (next - part)) + (product - part));
    sum = next;
  }
  return sum + error;
}

double scale_of_row(double terms, double largest_q) {
  const double least = kLeastScale * largest_q;
  const double scale = terms < least ? least : terms;
  return scale < largest_q ? scale : largest_q;
}

double violation(int n, int num_equations, const double* M, const double* q, const double* z, double tolerance,
                 double* w, double* terms, bool* rows_hold) {
  return violation({n, M, nullptr}, num_equations, q, z, tolerance, w, terms, rows_hold);
}

double violation(const linalg::Rows& M, int num_equations, const double* q, const double* z, double tolerance,
                 double* w, double* terms, bool* rows_hold) {
  const int n = M.n;
  const double largest_q = linalg::largest_magnitude(q, static_cast<std::size_t>(n));
  const double per_term = std::numeric_limits<double>::epsilon() * (n + 1);
  const RowRule rule = {tolerance, kLeastScale * largest_q, largest_q, per_term};
  double worst = 0;
  bool hold = true;
  if (rows_hold != nullptr) *rows_hold = false;
  double of_rows[kRows];
  for (int from = 0; from < n; from += kRows) {
    const int count = std::min(kRows, n - from);
    double* const magnitudes = terms != nullptr ? terms + from : of_rows;
    linalg::kernels().rows.sums(M, from, count, q, z, w + from, magnitudes);
    const RowErrors errors = kernels().row_errors(count, z + from, w + from, magnitudes, rule);
    if (!errors.in_doubt && from >= num_equations) {
      worst = std::max(worst, errors.worst);
      hold = hold && errors.hold;
      continue;
    }
    for (int i = from; i < from + count; ++i) {
      const double magnitude = magnitudes[i - from];
      const double allowed = tolerance * scale_of_row(magnitude, largest_q);
      const double rounding = per_term * magnitude;
      if (rounding > 0.01 * allowed) {
        w[i] = accurate_sum(n, M.M + static_cast<std::size_t>(i) * n, z, q[i]);
        // The terms are so large that even twice the precision cannot decide, except for a w_i that is surely positive.
        const double error = 2 * rounding * (rounding / magnitude);
        const bool positive = i >= num_equations && z[i] == 0 && w[i] > 4 * error;
        if (error > 0.01 * allowed && !positive) return std::numeric_limits<double>::infinity();
      }
      if (!std::isfinite(w[i]) || !std::isfinite(z[i])) return std::numeric_limits<double>::infinity();
      const double residual = i < num_equations || z[i] > 0 ? std::abs(w[i]) : std::abs(std::min(z[i], w[i]));
      worst = std::max(worst, residual / allowed);  // std::max ignores the NaN of 0 / 0
      hold = hold && residual <= kSmallRowResidual * magnitude;
    }
  }
  if (rows_hold != nullptr) *rows_hold = hold;
  return worst;
}

double row_residual(int n, const double* q, const double* z, const double* w, const double* terms, const int* r) {
  const double largest_q = linalg::largest_magnitude(q, static_cast<std::size_t>(n));
  double largest_in_units = 0;
  for (int i = 0; i < n; ++i) largest_in_units = std::max(largest_in_units, std::ldexp(std::abs(q[i]), -r[i]));
  double worst = 0;
  for (int i = 0; i < n; ++i) {
    const double residual = row_error(z[i], w[i]);
    const double floor = kLeastScale * std::ldexp(largest_in_units, r[i]);
    const double scale = std::min(largest_q, std::max(terms[i], floor));
    if (residual > kSmallRowResidual * scale) worst = std::max(worst, residual / scale);
  }
  return worst;
}

void complement(int n, const double* M, const double* q, const double* z, double* w) {
  for (int i = 0; i < n; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n;
    double sum = q[i];
    for (int j = 0; j < n; ++j) sum += row[j] * z[j];
    w[i] = z[i] > 0 ? 0.0 : (sum < 0 ? 0.0 : sum);
  }
}

}  // namespace lcp::solver
