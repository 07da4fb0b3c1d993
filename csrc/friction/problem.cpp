#include "friction/problem.h"

#include <algorithm>
#include <limits>

#include "contact/problem.h"

namespace lcp::friction {

bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts, Eigen::Index rows) {
  using contact::finite;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Eigen::Index size = 3 * contacts + rows;
  for (Eigen::Index r = 0; r < rows; ++r) {
    const double lower = problem.lower[r], upper = problem.upper[r];
    if (!(lower <= upper && lower < infinity && upper > -infinity)) return false;
    if (problem.compliance != nullptr && !(problem.compliance[r] >= 0 && problem.compliance[r] < infinity))
      return false;
  }
  return finite(problem.A, n * n) && finite(problem.v_free, n) && finite(problem.J, size * n) &&
         finite(problem.b, size) && std::all_of(problem.mu, problem.mu + contacts, [](double mu) { return mu >= 0; }) &&
         contact::symmetric(problem.A, n);
}

}  // namespace lcp::friction
