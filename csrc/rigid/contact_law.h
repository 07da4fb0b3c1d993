// The laws that the contacts of a step may obey: the solution of its problem, and the derivative of that.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lcp/status.h"
#include "lcp/ties.h"
#include "rigid/scene.h"

namespace lcp::rigid {

/// The chosen contacts of a step, c of them, and the n = 6 b velocities of the bodies, row-major. The k rows of the
/// scene follow the contacts in every problem.
struct ContactProblem {
  const double* A;                     ///< [n, n]
  const double* v_free;                ///< [n]
  const double* J;                     ///< [3 c + k, n], of each contact (t1, t2, n)
  const double* b;                     ///< [3 c + k], m/s: b of friction::Problem, or -v_hat of contact::Problem
  const double* R;                     ///< [3 c], 1/kg, of compliant contact; nullptr for the other laws
  const double* mu;                    ///< [c]
  const double* lower = nullptr;       ///< [k], N s, the bounds of the impulses of rows
  const double* upper = nullptr;       ///< [k]
  const double* compliance = nullptr;  ///< [k], of rows, see friction::Problem
};

/// u := J v + b, [size], without the compliance of rows.
inline void contact_velocities(int size, std::ptrdiff_t n, const ContactProblem& problem, const double* v, double* u) {
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    u[i] = problem.b[i];
    for (std::ptrdiff_t j = 0; j < n; ++j) u[i] += problem.J[i * n + j] * v[j];
  }
}

/// u += compliance gamma, of k rows behind 3 c numbers.
inline void add_compliance(int contacts, int rows, const ContactProblem& problem, const double* gamma, double* u) {
  for (int r = 0; r < rows; ++r) u[3 * contacts + r] += problem.compliance[r] * gamma[3 * contacts + r];
}

/// Number and State are constant where the solution is only read.
template <class Number, class State>
struct ContactSolution {
  Number* v;      ///< [n]
  Number* gamma;  ///< [3 c + k], N s
  /// What the derivative needs besides: y of contact::Problem, [3 c], or z of the LCP, of the contacts and then of the
  /// rows. nullptr where it is not asked for.
  Number* unknowns;
  State* states;  ///< of the pairs of the LCP, as many; as `unknowns`
};
using ContactResult = ContactSolution<double, std::int8_t>;
using SolvedContacts = ContactSolution<const double, const std::int8_t>;

/// The solution depends on the data through p, s, R, mu and the bounds alone, where
///   dp = A dv_free - dA (v - v_free) + dJ' gamma,  ds = dJ v + db + dcompliance gamma.
/// In forward mode these are their derivatives in a direction, and in reverse mode the gradients with respect to them.
template <class Number>
struct ContactData {
  Number* p;   ///< [n], N s
  Number* s;   ///< [3 c + k], m/s
  Number* R;   ///< [3 c], of compliant contact; for the other laws it is neither read nor written
  Number* mu;  ///< [c]
  /// [n], of a pyramid with a smoothed derivative: p at the solution itself, while the others are those at the point.
  /// For the other laws it is neither read nor written.
  Number* p_of_solution = nullptr;
  Number* lower = nullptr;  ///< [k]
  Number* upper = nullptr;  ///< [k]
};

/// How many unknowns of each contact a derivative needs.
int unknowns_of(const Law& law);

class ContactSolver {
 public:
  virtual ~ContactSolver() = default;

  /// result is undefined where the status is not kSolved.
  virtual Status solve(int contacts, const ContactProblem& problem, const ContactResult& result) = 0;

  /// Newton steps of the last problem; 0 for an LCP.
  virtual std::int64_t iterations() const = 0;

 protected:
  ContactSolver() = default;
  ContactSolver(const ContactSolver&) = default;
  ContactSolver& operator=(const ContactSolver&) = default;
};

class ContactDerivative {
 public:
  virtual ~ContactDerivative() = default;

  /// The point at which the law is differentiated: the solution, or with Law::kappa > 0 the point of the path near it.
  /// It is overwritten by the next call. Must be called before a problem is differentiated.
  virtual SolvedContacts point(int /*contacts*/, const ContactProblem& /*problem*/, const SolvedContacts& solution) {
    return solution;
  }

  /// The gradients g of a function of the data for those of v and gamma. problem.v_free is not read.
  ///   at: what `point` returned. same: it was not called since the last call, so that matrices may be used again.
  virtual void adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                       const double* g_v, const double* g_gamma, const ContactData<double>& g) = 0;

  /// The derivatives of v and gamma for those of the data.
  virtual void tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                       const ContactData<const double>& d, double* dv, double* dgamma) = 0;

  /// The derivative of v in p, [n, n], and in s, [n, 3 c + k], whose sizes they have, of laws with a single point.
  virtual void jacobian(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                        Eigen::MatrixXd& by_p, Eigen::MatrixXd& by_s);

 protected:
  ContactDerivative() = default;
  ContactDerivative(const ContactDerivative&) = default;
  ContactDerivative& operator=(const ContactDerivative&) = default;
};

/// tolerance: of friction::Limits, contact::Limits or solver::Settings.
std::unique_ptr<ContactSolver> make_solver(const Scene& scene, double tolerance);

/// rank_tolerance: of friction::Derivative. ties: of an LCP.
std::unique_ptr<ContactDerivative> make_derivative(const Scene& scene, double rank_tolerance, Ties ties);

/// Workspaces for each number of contacts, made when they are first needed.
template <class T>
class ForEachCount {
 public:
  explicit ForEachCount(const Scene& scene) : all_(scene.contacts() + 1) {}

  template <class... Arguments>
  T& get(int contacts, const Arguments&... arguments) {
    std::unique_ptr<T>& found = all_[contacts];
    if (!found) found = std::make_unique<T>(arguments...);
    return *found;
  }

 private:
  std::vector<std::unique_ptr<T>> all_;
};

}  // namespace lcp::rigid
