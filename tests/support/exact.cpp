#include "support/exact.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lcp::testing {
namespace {

constexpr int kLargestOrder = 5;
constexpr int kLargestEntry = 32;

using Vector = std::array<std::int64_t, kLargestOrder>;

// Whether q = x_1 c_1 + ... + x_k c_k with x >= 0, for linearly independent c; false for dependent ones.
///
// Gauss-Jordan elimination free of fractions [Bareiss, Sylvester's identity and multistep integer-preserving Gaussian
// elimination, 1968]: after step s all entries are minors of [C q] of order s + 1 <= 5, each division is exact. By
// Hadamard's inequality a minor is at most (32 sqrt(5))^5 < 1.9e9, and what is divided at most 2 (1.9e9)^2 < 2^63.
bool is_in_cone(int n, const std::vector<const Vector*>& columns, const Vector& q) {
  const int k = static_cast<int>(columns.size());
  std::array<Vector, kLargestOrder + 1> A;  // by columns; the last is q
  for (int j = 0; j < k; ++j) A[j] = *columns[j];
  A[k] = q;
  std::int64_t previous = 1;
  for (int s = 0; s < k; ++s) {
    int r = s;
    while (r < n && A[s][r] == 0) ++r;
    if (r == n) return false;
    for (int j = s; j <= k; ++j) std::swap(A[j][s], A[j][r]);
    const std::int64_t pivot = A[s][s];
    const Vector factor = A[s];
    for (int j = s; j <= k; ++j) {
      const std::int64_t top = A[j][s];
      for (int i = 0; i < n; ++i) {
        if (i != s) A[j][i] = (pivot * A[j][i] - factor[i] * top) / previous;
      }
    }
    previous = pivot;
  }
  for (int i = 0; i < n; ++i) {  // x_i = A[k][i] / previous for i < k; the other rows must agree
    if (i < k ? (previous > 0 ? A[k][i] < 0 : A[k][i] > 0) : A[k][i] != 0) return false;
  }
  return true;
}

// Whether q lies in the cone of some linearly independent choice of at most one column of each group. By
// Caratheodory's theorem a cone is the union of those that its linearly independent generators span.
class Search {
 public:
  Search(int n, const Vector& q) : n_(n), q_(q) {}

  bool find(const std::vector<std::vector<Vector>>& groups, std::size_t next = 0) {
    if (next == groups.size()) return is_in_cone(n_, chosen_, q_);
    if (find(groups, next + 1)) return true;
    if (static_cast<int>(chosen_.size()) == n_) return false;
    for (const Vector& column : groups[next]) {
      chosen_.push_back(&column);
      const bool found = find(groups, next + 1);
      chosen_.pop_back();
      if (found) return true;
    }
    return false;
  }

 private:
  int n_;
  const Vector& q_;
  std::vector<const Vector*> chosen_;
};

std::int64_t small_integer(double x) {
  if (!(std::abs(x) <= kLargestEntry) || x != std::floor(x)) {
    throw std::invalid_argument("entries must be integers of at most 32; got " + std::to_string(x));
  }
  return static_cast<std::int64_t>(x);
}

}  // namespace

// q = I w - M z: feasible if q is in the cone of all columns of I and -M, solvable if in that of one of each pair.
Truth truth_of(const Problem& problem) {
  const int n = problem.n();
  if (n > kLargestOrder) throw std::invalid_argument("n must be at most 5; got " + std::to_string(n));
  Vector q{};
  std::vector<std::vector<Vector>> pairs(n), single;
  for (int j = 0; j < n; ++j) {
    q[j] = small_integer(problem.q[j]);
    Vector of_w{}, of_z{};
    of_w[j] = 1;
    for (int i = 0; i < n; ++i) of_z[i] = -small_integer(problem.M(i, j));
    pairs[j] = {of_w, of_z};
    single.push_back({of_w});
    single.push_back({of_z});
  }
  Search search(n, q);
  const bool solvable = search.find(pairs);
  return {solvable || search.find(single), solvable};
}

}  // namespace lcp::testing
