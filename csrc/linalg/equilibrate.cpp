#include "linalg/equilibrate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lcp::linalg {
namespace {

// Each sweep halves the exponents by which rows and columns still differ.
constexpr int kSweeps = 8;

// The exponent by which one sweep scales a row whose largest entry is x times that of the matrix: half that of x,
// rounded to nearest.
int half_exponent(double x) { return x > 0 ? static_cast<int>(std::lround(std::log2(x) / 2)) : 0; }

}  // namespace

void equilibrate(int n, double* A, int* r, int* c) {
  std::fill_n(r, n, 0);
  std::fill_n(c, n, 0);
  double target = 0;
  for (std::ptrdiff_t k = 0; k < static_cast<std::ptrdiff_t>(n) * n; ++k) target = std::max(target, std::abs(A[k]));
  bool changes = true;
  for (int sweep = 0; sweep < kSweeps && changes; ++sweep) {
    changes = false;
    // The rows, then the columns of what the rows left.
    for (const bool rows : {true, false}) {
      const int along = rows ? 1 : n;
      const int across = rows ? n : 1;
      for (int i = 0; i < n; ++i) {
        double* line = A + static_cast<std::ptrdiff_t>(i) * across;
        double largest = 0;
        for (int j = 0; j < n; ++j) largest = std::max(largest, std::abs(line[static_cast<std::ptrdiff_t>(j) * along]));
        const int exponent = half_exponent(largest / target);
        if (exponent == 0) continue;
        changes = true;
        (rows ? r : c)[i] += exponent;
        for (int j = 0; j < n; ++j) {
          double& entry = line[static_cast<std::ptrdiff_t>(j) * along];
          entry = std::ldexp(entry, -exponent);
        }
      }
    }
  }
}

}  // namespace lcp::linalg
