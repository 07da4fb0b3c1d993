#include "contact/problem.h"

#include <algorithm>
#include <cmath>

namespace lcp::contact {

bool finite(const double* x, Eigen::Index size) {
  return std::all_of(x, x + size, [](double number) { return std::isfinite(number); });
}

bool symmetric(const double* A, Eigen::Index n) {
  double largest = 0, difference = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      largest = std::max({largest, std::abs(A[i * n + j]), std::abs(A[j * n + i])});
      difference = std::max(difference, std::abs(A[i * n + j] - A[j * n + i]));
    }
  }
  return difference <= kMaxAsymmetry * largest;
}

bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts) {
  if (!finite(problem.A, n * n) || !finite(problem.v_free, n) || !finite(problem.J, 3 * contacts * n)) return false;
  if (!finite(problem.v_hat, 3 * contacts) || !finite(problem.R, 3 * contacts)) return false;
  if (!finite(problem.mu, contacts) || !symmetric(problem.A, n)) return false;
  for (Eigen::Index k = 0; k < contacts; ++k) {
    if (!is_valid_law(problem.R + 3 * k, problem.mu[k])) return false;
  }
  return true;
}

}  // namespace lcp::contact
