#include "solver/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "linalg/scale.h"
#include "solver/find_pair_states.h"

namespace lcp::solver {
namespace {

// The rows of M that are summed by one call of the kernel, before their violations are looked at.
constexpr int kRows = 64;

// Where residuals of rows with q_i = 0 are above this, the round-off among their terms is told from the others.
constexpr double kLargeResidual = 1e-12;

// max_i e_i / min(|q|_inf, sum_j |M_ij z_j|) over the rows with q_i = 0, where each z_j that is round-off in all others
// (find_pair_states.h) counts as 0.
double homogeneous_row_residual(int n, int num_equations, const double* M, const double* q, const double* z,
                                double largest_q) {
  constexpr double kRoundOff = kRoundOffInEpsilon * std::numeric_limits<double>::epsilon();
  const auto row = [&](int i) { return M + static_cast<std::size_t>(i) * n; };
  std::vector<double> significant(n, 0.0);  // z without round-off
  for (int i = 0; i < n; ++i) {
    if (q[i] == 0) continue;
    double terms = std::abs(q[i]);
    for (int j = 0; j < n; ++j) terms += std::abs(row(i)[j] * z[j]);
    for (int j = 0; j < n; ++j) {
      if (std::abs(row(i)[j] * z[j]) > kRoundOff * terms) significant[j] = z[j];
    }
  }
  double worst = 0;
  for (int i = 0; i < n; ++i) {
    if (q[i] != 0) continue;
    const double w = accurate_sum(n, row(i), significant.data(), 0);
    double terms = 0;
    for (int j = 0; j < n; ++j) terms += std::abs(row(i)[j] * significant[j]);
    const double residual = i < num_equations || significant[i] > 0 ? std::abs(w) : std::max(0.0, -w);
    if (residual > 0) worst = std::max(worst, residual / std::min(largest_q, terms));
  }
  return worst;
}

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
  // Times the tolerance this is 1e-13: above the rounding errors of a q_i that is 0 but for them, the sum of terms as
  // large as |q|_inf, of which M z has nothing if the row is that of a contact that others make redundant.
  constexpr double kLeastScale = 1e-4;
  const double least = kLeastScale * largest_q;
  const double scale = terms < least ? least : terms;
  return scale < largest_q ? scale : largest_q;
}

double violation(int n, int num_equations, const double* M, const double* q, const double* z, double tolerance,
                 double* w, double* row_residual) {
  return violation({n, M, nullptr}, num_equations, q, z, tolerance, w, row_residual);
}

double violation(const linalg::Rows& M, int num_equations, const double* q, const double* z, double tolerance,
                 double* w, double* row_residual) {
  const int n = M.n;
  const double largest_q = linalg::largest_magnitude(q, static_cast<std::size_t>(n));
  const double per_term = std::numeric_limits<double>::epsilon() * (n + 1);
  constexpr double largest = std::numeric_limits<double>::max();
  double worst = 0, worst_of_row = 0, worst_of_homogeneous = 0;
  if (row_residual != nullptr) *row_residual = std::numeric_limits<double>::infinity();
  double magnitudes[kRows], excess[kRows], of_row[kRows], of_homogeneous[kRows];
  for (int from = 0; from < n; from += kRows) {
    const int count = std::min(kRows, n - from);
    linalg::kernels().rows.sums(M, from, count, q, z, w + from, magnitudes);
    std::int64_t in_doubt = 0;
    for (int k = 0; k < count; ++k) {  // without branches, which the processor could not predict
      const double allowed = tolerance * scale_of_row(magnitudes[k], largest_q);
      const double w_k = w[from + k];
      const double z_k = z[from + k];
      const double least = z_k < w_k ? z_k : w_k;
      const double residual = std::abs(z_k > 0 ? w_k : least);
      excess[k] = residual / allowed;
      const double relative = residual / std::min(largest_q, magnitudes[k]);
      of_row[k] = q[from + k] == 0 ? 0.0 : relative;
      of_homogeneous[k] = q[from + k] == 0 ? relative : 0.0;
      in_doubt |= per_term * magnitudes[k] <= 0.01 * allowed ? 0 : 1;
      in_doubt |= std::abs(w_k) <= largest ? 0 : 1;
      in_doubt |= std::abs(z_k) <= largest ? 0 : 1;
    }
    if (in_doubt != 0 || from < num_equations) {
      for (int i = from; i < from + count; ++i) {
        const double magnitude = magnitudes[i - from];
        const double allowed = tolerance * scale_of_row(magnitude, largest_q);
        const double rounding = per_term * magnitude;
        if (rounding > 0.01 * allowed) {
          w[i] = accurate_sum(n, M.M + static_cast<std::size_t>(i) * n, z, q[i]);
          // Terms so large that even twice the precision cannot decide, but for a w_i that is surely positive.
          const double error = 2 * rounding * (rounding / magnitude);
          const bool positive = i >= num_equations && z[i] == 0 && w[i] > 4 * error;
          if (error > 0.01 * allowed && !positive) return std::numeric_limits<double>::infinity();
        }
        if (!std::isfinite(w[i]) || !std::isfinite(z[i])) return std::numeric_limits<double>::infinity();
        const double residual = i < num_equations || z[i] > 0 ? std::abs(w[i]) : std::abs(std::min(z[i], w[i]));
        excess[i - from] = residual / allowed;
        (q[i] == 0 ? of_homogeneous : of_row)[i - from] = residual / std::min(largest_q, magnitude);
      }
    }
    for (int k = 0; k < count; ++k) {  // std::max ignores the NaN of 0 / 0
      worst = std::max(worst, excess[k]);
      worst_of_row = std::max(worst_of_row, of_row[k]);
      worst_of_homogeneous = std::max(worst_of_homogeneous, of_homogeneous[k]);
    }
  }
  if (row_residual == nullptr) return worst;
  if (worst_of_homogeneous > kLargeResidual && worst <= 1) {
    worst_of_homogeneous = homogeneous_row_residual(n, num_equations, M.M, q, z, largest_q);
  }
  *row_residual = std::max(worst_of_row, worst_of_homogeneous);
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
