#include "friction/problem.h"

#include <algorithm>

#include "contact/problem.h"

namespace lcp::friction {

bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts) {
  using contact::finite;
  return finite(problem.A, n * n) && finite(problem.v_free, n) && finite(problem.J, 3 * contacts * n) &&
         finite(problem.b, 3 * contacts) &&
         std::all_of(problem.mu, problem.mu + contacts, [](double mu) { return mu >= 0; }) &&
         contact::symmetric(problem.A, n);
}

}  // namespace lcp::friction
