#include "solver/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::solver {
namespace {

// q + row . z as if in twice the precision [Ogita, Rump, Oishi, 2005, alg. 5.3].
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

}  // namespace

double violation(int n, int free, const double* M, const double* q, const double* z, double tolerance, double* w) {
  double largest_q = 0;
  for (int i = 0; i < n; ++i) largest_q = std::max(largest_q, std::abs(q[i]));
  double worst = 0;
  for (int i = 0; i < n; ++i) {
    const double* row = M + static_cast<std::size_t>(i) * n;
    double sum = q[i];
    double magnitude = std::abs(q[i]);
    for (int j = 0; j < n; ++j) {
      const double term = row[j] * z[j];
      sum += term;
      magnitude += std::abs(term);
    }
    const double allowed = tolerance * std::min(largest_q, std::max(magnitude, 1e-6 * largest_q));
    const double rounding = std::numeric_limits<double>::epsilon() * (n + 1) * magnitude;
    if (rounding > 0.01 * allowed) {
      // Beyond what twice the precision can tell, nothing is accepted.
      if (2 * rounding * rounding > 0.01 * allowed * magnitude) return std::numeric_limits<double>::infinity();
      sum = accurate_sum(n, row, z, q[i]);
    }
    if (!std::isfinite(sum) || !std::isfinite(z[i])) return std::numeric_limits<double>::infinity();
    w[i] = sum;
    const double residual = i < free || z[i] > 0 ? std::abs(sum) : std::abs(std::min(z[i], sum));
    if (residual > 0) worst = std::max(worst, residual / allowed);
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
