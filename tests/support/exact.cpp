#include "support/exact.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace lcp::testing {
namespace {

// The integer types, and the largest double below the largest of each.
using Int64 = std::int64_t;
using Int128 = __int128;
constexpr double kLargestInt64 = 0x1p63 - 0x1p10;
constexpr double kLargestInt128 = 0x1p127 - 0x1p74;

Int64 integer(double x) {
  if (x != std::floor(x)) throw std::invalid_argument("entries must be integers; got " + std::to_string(x));
  return static_cast<Int64>(x);
}

// A bound on the numbers that are divided below: twice the square of a minor of (M, q), which Hadamard's inequality
// bounds by the product of the norms of its rows. Throws where an entry is no integer.
double largest_number(const Problem& problem) {
  double minor = 1;
  for (int i = 0; i < problem.n(); ++i) {
    double least = std::abs(problem.q[i]);
    double squares = problem.q[i] * problem.q[i];
    integer(problem.q[i]);
    for (const double x : problem.M.row(i)) {
      integer(x);
      least = std::min(least, std::abs(x));
      squares += x * x;
    }
    minor *= std::max(1.0, std::sqrt(squares - least * least));  // a minor leaves out one column of (M, q) or more
  }
  return 2 * minor * minor;
}

[[noreturn]] void refuse(const Problem& problem) {
  const double largest = std::max(problem.M.cwiseAbs().maxCoeff(), problem.q.cwiseAbs().maxCoeff());
  throw std::invalid_argument("n = " + std::to_string(problem.n()) + " with entries up to " + std::to_string(largest) +
                              " is too large for exact integers");
}

// Equations a'x = b of integers, solved as they come by Gauss-Jordan elimination free of fractions: all numbers are
// minors of the equations' coefficients, and each division is exact [Bareiss, Sylvester's identity and multistep
// integer-preserving Gaussian elimination, 1968].
template <class Integer>
class Equations {
 public:
  explicit Equations(int unknowns) : unknowns_(unknowns) {}

  int rank() const { return static_cast<int>(rows_.size()); }

  // Adds an equation (a, b) of unknowns + 1 integers; false where it contradicts the others.
  bool add(const std::vector<Integer>& equation) {
    std::vector<Integer> rest(equation.size());
    for (int j = 0; j <= unknowns_; ++j) {
      rest[j] = determinant_ * equation[j];
      for (int p = 0; p < rank(); ++p) rest[j] -= equation[column_[p]] * rows_[p][j];
    }
    int column = 0;
    while (column < unknowns_ && rest[column] == 0) ++column;
    if (column == unknowns_) return rest[unknowns_] == 0;
    const Integer pivot = rest[column];
    for (std::vector<Integer>& row : rows_) {
      const Integer factor = row[column];
      for (int j = 0; j <= unknowns_; ++j) row[j] = (pivot * row[j] - factor * rest[j]) / determinant_;
    }
    rows_.push_back(rest);
    column_.push_back(column);
    determinant_ = pivot;
    return true;
  }

  // Where the rank is that of the unknowns: x_unknown(p) = numerator(p) / denominator(), with a positive denominator.
  Integer denominator() const { return determinant_ > 0 ? determinant_ : -determinant_; }
  Integer numerator(int p) const { return determinant_ > 0 ? rows_[p][unknowns_] : -rows_[p][unknowns_]; }
  int unknown(int p) const { return column_[p]; }  // which the p-th equation was solved for

 private:
  int unknowns_;
  Integer determinant_ = 1;
  std::vector<std::vector<Integer>> rows_;  // the columns of the pivots are those of determinant_ times the identity
  std::vector<int> column_;
};

// The extreme points whose z is positive in S at most: w = 0 in the rows of S, and in as many others as make the
// columns of M in S independent.
template <class Integer>
class Face {
 public:
  Face(const Problem& problem, unsigned set, const std::function<bool(const Eigen::VectorXd&)>& accept)
      : problem_(problem), accept_(accept) {
    for (int i = 0; i < problem.n(); ++i) ((set >> i & 1) != 0 ? basic_ : others_).push_back(i);
  }

  bool search() const {
    Equations<Integer> equations(static_cast<int>(basic_.size()));
    for (const int i : basic_) {
      if (!equations.add(equation(i))) return false;
    }
    return search(equations, 0);
  }

 private:
  std::vector<Integer> equation(int i) const {
    std::vector<Integer> result;
    result.reserve(basic_.size() + 1);
    for (const int j : basic_) result.push_back(integer(problem_.M(i, j)));
    result.push_back(-integer(problem_.q[i]));
    return result;
  }

  bool search(const Equations<Integer>& equations, std::size_t next) const {
    if (equations.rank() == static_cast<int>(basic_.size())) return is_accepted(equations);
    for (; next < others_.size(); ++next) {
      Equations<Integer> more = equations;
      if (more.add(equation(others_[next])) && more.rank() > equations.rank() && search(more, next + 1)) return true;
    }
    return false;
  }

  bool is_accepted(const Equations<Integer>& equations) const {
    const Integer denominator = equations.denominator();
    std::vector<Integer> numerator(basic_.size());
    Eigen::VectorXd z = Eigen::VectorXd::Zero(problem_.n());
    for (int p = 0; p < equations.rank(); ++p) {
      if (equations.numerator(p) < 0) return false;
      numerator[equations.unknown(p)] = equations.numerator(p);
      z[basic_[equations.unknown(p)]] = static_cast<double>(equations.numerator(p)) / static_cast<double>(denominator);
    }
    for (const int i : others_) {
      Integer w = integer(problem_.q[i]) * denominator;
      for (std::size_t j = 0; j < basic_.size(); ++j) w += integer(problem_.M(i, basic_[j])) * numerator[j];
      if (w < 0) return false;
    }
    return accept_(z);
  }

  const Problem& problem_;
  const std::function<bool(const Eigen::VectorXd&)>& accept_;
  std::vector<int> basic_, others_;
};

template <class Integer>
bool any_solution_in(const Problem& problem, const std::function<bool(const Eigen::VectorXd&)>& accept) {
  for (unsigned set = 0; set < 1U << problem.n(); ++set) {
    if (Face<Integer>(problem, set, accept).search()) return true;
  }
  return false;
}

// Whether q lies in the cone of all columns of I and -M. By Caratheodory's theorem a cone is the union of those that
// its linearly independent generators span.
bool is_feasible(const Problem& problem) {
  const int n = problem.n();
  for (unsigned set = 0; set < 1U << (2 * n); ++set) {
    std::vector<int> columns;
    for (int j = 0; j < 2 * n; ++j) {
      if ((set >> j & 1) != 0) columns.push_back(j);
    }
    if (static_cast<int>(columns.size()) > n) continue;
    Equations<Int64> equations(static_cast<int>(columns.size()));
    bool contradicts = false;
    for (int i = 0; i < n && !contradicts; ++i) {
      std::vector<Int64> equation;
      equation.reserve(columns.size() + 1);
      for (const int j : columns) equation.push_back(j < n ? (i == j ? 1 : 0) : -integer(problem.M(i, j - n)));
      equation.push_back(integer(problem.q[i]));
      contradicts = !equations.add(equation);
    }
    bool is_inside = !contradicts && equations.rank() == static_cast<int>(columns.size());
    for (int p = 0; is_inside && p < equations.rank(); ++p) is_inside = equations.numerator(p) >= 0;
    if (is_inside) return true;
  }
  return false;
}

}  // namespace

bool any_solution(const Problem& problem, const std::function<bool(const Eigen::VectorXd&)>& accept) {
  const double largest = largest_number(problem);
  if (largest <= kLargestInt64) return any_solution_in<Int64>(problem, accept);
  if (largest <= kLargestInt128) return any_solution_in<Int128>(problem, accept);
  refuse(problem);
}

Truth truth_of(const Problem& problem) {
  constexpr int kLargestOrder = 5;
  if (problem.n() > kLargestOrder) {
    throw std::invalid_argument("n must be at most 5; got " + std::to_string(problem.n()));
  }
  if (!(largest_number(problem) <= kLargestInt64)) refuse(problem);
  const bool solvable = any_solution(problem, [](const Eigen::VectorXd&) { return true; });
  return {solvable || is_feasible(problem), solvable};
}

}  // namespace lcp::testing
