#include "support/completeness.h"

#include <cmath>
#include <iterator>
#include <vector>

#include "solver/verify.h"
#include "support/exact.h"

namespace lcp::testing {
namespace {

using Random = std::mt19937_64;

int integer(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

RowMatrix matrix(Random& random, int rows, int columns, int largest, double zeros) {
  std::bernoulli_distribution zero(zeros);
  return RowMatrix::NullaryExpr(rows, columns, [&] { return zero(random) ? 0.0 : integer(random, -largest, largest); });
}

Eigen::VectorXd vector(Random& random, int n, int largest) {
  return Eigen::VectorXd::NullaryExpr(n, [&] { return static_cast<double>(integer(random, -largest, largest)); });
}

// q such that a random z of integers solves the problem, with ties.
Problem with_solution(Random& random, const RowMatrix& M) {
  const auto n = static_cast<int>(M.rows());
  Eigen::VectorXd z = Eigen::VectorXd::Zero(n), w = z;
  for (int i = 0; i < n; ++i) (integer(random, 0, 1) == 0 ? z : w)[i] = integer(random, 0, 1);
  return {M, w - M * z};
}

// Contacts of bodies of one degree of freedom each, with two directions of friction: the normal impulse, two tangential
// ones and the slip speed.
Problem friction(Random& random, int n, const std::vector<double>& inverse_masses, const std::function<double()>& mu) {
  const int contacts = n / 4;
  RowMatrix M = RowMatrix::Zero(n, n);
  Eigen::VectorXd q = Eigen::VectorXd::Zero(n);
  const Eigen::Map<const Eigen::VectorXd> inverse_mass(inverse_masses.data(), std::ssize(inverse_masses));
  const RowMatrix J = matrix(random, 2 * contacts, static_cast<int>(inverse_mass.size()), 1, 0.2);
  for (int a = 0; a < contacts; ++a) {
    const int row = 4 * a;
    for (int b = 0; b < contacts; ++b) {
      const int column = 4 * b;
      const RowMatrix W = J.middleRows(2 * a, 2) * inverse_mass.asDiagonal() * J.middleRows(2 * b, 2).transpose();
      M.block(row, column, 3, 3) << W(0, 0), W(0, 1), -W(0, 1), W(1, 0), W(1, 1), -W(1, 1), -W(1, 0), -W(1, 1), W(1, 1);
    }
    M(row + 1, row + 3) = M(row + 2, row + 3) = 1;
    M(row + 3, row) = mu();
    M(row + 3, row + 1) = M(row + 3, row + 2) = -1;
    q[row] = integer(random, -2, 2);
    q[row + 1] = integer(random, -2, 2);
    q[row + 2] = -q[row + 1];
  }
  for (int i = 4 * contacts; i < n; ++i) M(i, i) = 1;
  return {M, q};
}

// Half of the variables z_j have an upper bound, w_i = q_i - z_j, with the multiplier z_i.
Problem bounded(Random& random, int n) {
  Problem problem{matrix(random, n, n, 2, 0.4), vector(random, n, 2)};
  for (int i = n / 2; i < n; ++i) {
    problem.M.row(i).setZero();
    problem.M.col(i).setZero();
    problem.M(i - n / 2, i) = 1;
    problem.M(i, i - n / 2) = -1;
    problem.q[i] = integer(random, 0, 2);
  }
  return problem;
}

}  // namespace

Problem IntegerProblem::problem() const {
  Problem result = integers;
  for (int i = 0; i < result.n(); ++i) {
    for (int j = 0; j < result.n(); ++j) result.M(i, j) = std::ldexp(result.M(i, j), rows[i] + columns[j]);
    result.q[i] = std::ldexp(result.q[i], rows[i]);
  }
  return result;
}

Verdict verdict(const IntegerProblem& problem, const solver::Settings& settings) {
  const Problem scaled = problem.problem();
  const Answer answer = solve(scaled, settings);
  if (!answer_error(scaled, settings, answer).empty()) return Verdict::kFalse;
  if (answer.status == Status::kSolved) return Verdict::kSolved;
  if (answer.status == Status::kInfeasible) return Verdict::kInfeasible;
  bool has_solution = false;
  const bool misses = any_solution(problem.integers, [&](const Eigen::VectorXd& z) {
    has_solution = true;
    Eigen::VectorXd rounded = z;
    for (int j = 0; j < scaled.n(); ++j) {
      rounded[j] = std::ldexp(z[j], -problem.columns[j]);
      if (settings.single_precision) rounded[j] = static_cast<float>(rounded[j]);
    }
    Eigen::VectorXd w(scaled.n());
    return solver::violation(scaled.n(), 0, scaled.M.data(), scaled.q.data(), rounded.data(), settings.tolerance,
                             w.data()) <= 1;
  });
  return misses ? Verdict::kMissed : has_solution ? Verdict::kUnrepresentable : Verdict::kUnsolvable;
}

const std::vector<IntegerFamily>& integer_families() {
  static const std::vector<IntegerFamily> families = {
      {"entries of -1..1, half of them 0", 1, 10,
       [](Random& r, int n) {
         return Problem{matrix(r, n, n, 1, 0.5), vector(r, n, 1)};
       }},
      {"entries of -2..2", 1, 10,
       [](Random& r, int n) {
         return Problem{matrix(r, n, n, 2, 0), vector(r, n, 2)};
       }},
      {"entries of -2..2, most of them 0", 1, 10,
       [](Random& r, int n) {
         return Problem{matrix(r, n, n, 2, 0.7), vector(r, n, 2)};
       }},
      {"entries of -32..32", 1, 5,
       [](Random& r, int n) {
         return Problem{matrix(r, n, n, 32, 0), vector(r, n, 32)};
       }},
      {"rank n / 2, planted", 2, 6,
       [](Random& r, int n) { return with_solution(r, matrix(r, n, n / 2, 1, 0.3) * matrix(r, n / 2, n, 1, 0.3)); }},
      {"planted, with ties", 1, 6, [](Random& r, int n) { return with_solution(r, matrix(r, n, n, 2, 0.3)); }},
      {"friction cones", 4, 8, [](Random& r, int n) { return friction(r, n, {1}, [&] { return integer(r, 0, 2); }); }},
      {"friction cones, mass ratio up to 2^16, mu to 2^11", 4, 4,
       [](Random& r, int n) {
         return friction(r, n, {std::ldexp(1, integer(r, 0, 16)), 1}, [&] { return std::ldexp(1, integer(r, 0, 11)); });
       }},
      {"bounds", 2, 8, bounded},
  };
  return families;
}

IntegerProblem draw(Random& random, const IntegerFamily& family) {
  const int n = integer(random, family.smallest, family.largest);
  IntegerProblem problem{family.make(random, n), Eigen::VectorXi::Zero(n), Eigen::VectorXi::Zero(n)};
  if (integer(random, 0, 1) == 0) return problem;
  for (int& exponent : problem.rows) exponent = integer(random, -12, 12);
  for (int& exponent : problem.columns) exponent = integer(random, -12, 12);
  return problem;
}

}  // namespace lcp::testing
