#include "solver/elimination.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace lcp::solver {
namespace {

// The second pivot of a block counts as 0 if it is this much smaller than the terms of the difference that it is.
constexpr double kSingular = 1e-6;

}  // namespace

Elimination::Elimination(int k, int n)
    : k_(k),
      n_(n),
      size_(k + n),
      table_(static_cast<std::size_t>(size_) * (size_ + 1)),
      terms_(table_.size()),
      equations_(k),
      unknowns_(k),
      pair_row_(n),
      pair_column_(n),
      unknown_row_(k),
      unknown_column_(k),
      exchanged_(n) {}

void Elimination::run(const double* H, const double* h, const Pivoting& pivoting) {
  negligible_ = pivoting.negligible;
  for (int i = 0; i < size_; ++i) {
    std::copy_n(H + static_cast<std::ptrdiff_t>(i) * size_, size_, &entry(i, 0));
    entry(i, size_) = h[i];
  }
  std::transform(table_.begin(), table_.end(), terms_.begin(), [](double x) { return std::abs(x); });
  equations_.resize(k_);
  std::iota(equations_.begin(), equations_.end(), 0);
  unknowns_ = equations_;
  unknown_column_ = unknowns_;
  std::fill(unknown_row_.begin(), unknown_row_.end(), -1);
  std::iota(pair_row_.begin(), pair_row_.end(), k_);
  pair_column_ = pair_row_;
  std::fill(exchanged_.begin(), exchanged_.end(), static_cast<unsigned char>(0));
  bool only_bounds = pivoting.bounds_first;
  while (!equations_.empty()) {
    Pivot pivot = only_bounds ? best_block(true) : best_entry();
    if (!only_bounds && !(pivot.size > pivoting.smallest)) {
      const Pivot block = best_block(false);
      if (pivot.size <= pivoting.smallest * block.size) pivot = block;
    }
    if (pivot.size == 0) {
      if (std::exchange(only_bounds, false)) continue;
      break;
    }
    const int i = equations_[pivot.equation];
    const int l = unknowns_[pivot.unknown];
    const int column = unknown_column_[l];
    if (pivot.pair < 0) {
      exchange(i, column);
      drop(column);
      unknown_row_[l] = i;
    } else {
      int& row = pair_row_[pivot.pair];
      exchange(i, pair_column_[pivot.pair]);
      drop(pair_column_[pivot.pair]);
      exchange(row, column);
      unknown_row_[l] = std::exchange(row, i);
      pair_column_[pivot.pair] = column;
      exchanged_[pivot.pair] ^= 1;
    }
    unknown_column_[l] = -1;
    equations_.erase(equations_.begin() + pivot.equation);
    unknowns_.erase(unknowns_.begin() + pivot.unknown);
  }
}

Elimination::Pivot Elimination::best_entry() const {
  Pivot best;
  for (int i = 0; i < left(); ++i) {
    for (int l = 0; l < left(); ++l) {
      const double size = std::abs(entry(equations_[i], unknown_column_[unknowns_[l]]));
      if (size > best.size) best = {size, i, l, -1};
    }
  }
  return best;
}

// Whether w_j is an unknown x_l up to a factor and a constant.
bool Elimination::is_bound(int j) const {
  int count = 0;
  for (int l = 0; l < size_; ++l) count += entry(pair_row_[j], l) != 0;
  return count == 1 && std::any_of(unknowns_.begin(), unknowns_.end(),
                                   [&](int l) { return entry(pair_row_[j], unknown_column_[l]) != 0; });
}

Elimination::Pivot Elimination::best_block(bool only_bounds) const {
  Pivot best;
  for (int j = 0; j < n_; ++j) {
    if (only_bounds && !is_bound(j)) continue;
    for (int i = 0; i < left(); ++i) {
      const double first = std::abs(entry(equations_[i], pair_column_[j]));
      if (!(first > best.size)) continue;
      const double ratio = entry(pair_row_[j], pair_column_[j]) / entry(equations_[i], pair_column_[j]);
      for (int l = 0; l < left(); ++l) {
        const double entry_of_unknown = entry(pair_row_[j], unknown_column_[unknowns_[l]]);
        const double term = ratio * entry(equations_[i], unknown_column_[unknowns_[l]]);
        const double second = std::abs(entry_of_unknown - term);
        if (second <= kSingular * std::abs(term)) continue;  // otherwise the block pivot is regular
        const double size = std::min(first, second);
        if (size > best.size) best = {size, i, l, j};
      }
    }
  }
  return best;
}

// The variable of row r becomes independent, the variable of column c dependent.
void Elimination::exchange(int r, int c) {
  const int columns = size_ + 1;
  double* const pivot_row = &entry(r, 0);
  double* const pivot_terms = terms_.data() + static_cast<std::ptrdiff_t>(r) * columns;
  const double pivot = pivot_row[c];
  for (int j = 0; j < columns; ++j) {
    pivot_row[j] /= -pivot;
    pivot_terms[j] /= std::abs(pivot);
  }
  pivot_row[c] = 0;
  for (int i = 0; i < size_; ++i) {
    double* const row = &entry(i, 0);
    double* const terms = terms_.data() + static_cast<std::ptrdiff_t>(i) * columns;
    const double factor = row[c];
    if (i == r || factor == 0) continue;
    for (int j = 0; j < columns; ++j) {
      const double term = factor * pivot_row[j];
      const double sum = row[j] + term;
      terms[j] = std::max(terms[j], std::abs(term));
      row[j] = std::abs(sum) <= negligible_ * terms[j] ? 0.0 : sum;
    }
    row[c] = factor / pivot;
    terms[c] /= std::abs(pivot);
  }
  pivot_row[c] = 1 / pivot;
}

// Drops the variable of column c, which is 0 since it belongs to an equation.
void Elimination::drop(int c) {
  for (int i = 0; i < size_; ++i) entry(i, c) = 0;
}

void Elimination::reduced(double* M, double* q) const {
  const int m = order();
  const int e = left();
  const auto row = [&](int i) { return i < 2 * e ? equations_[i % e] : pair_row_[i - 2 * e]; };
  const auto column = [&](int j) { return j < 2 * e ? unknown_column_[unknowns_[j % e]] : pair_column_[j - 2 * e]; };
  const auto sign = [e](int i) { return i < e ? -1.0 : 1.0; };
  for (int i = 0; i < m; ++i) {
    q[i] = sign(i) * entry(row(i), size_);
    for (int j = 0; j < m; ++j)
      M[static_cast<std::ptrdiff_t>(i) * m + j] = sign(i) * sign(j) * entry(row(i), column(j));
  }
}

void Elimination::propose(const double* guess, double* z) const {
  const int e = left();
  std::fill_n(z, 2 * e, 0.0);
  for (int j = 0; j < n_; ++j) {
    z[2 * e + j] = !exchanged(j) ? guess[j] : (guess[j] > 0 ? 0.0 : 1.0);
  }
}

void Elimination::expand(const double* z, const double* w, double* v) const {
  const int e = left();
  for (int j = 0; j < n_; ++j) v[k_ + j] = (exchanged(j) ? w : z)[2 * e + j];
  for (int l = 0; l < e; ++l) v[unknowns_[l]] = z[e + l] - z[l];
  for (int l = 0; l < k_; ++l) {
    if (unknown_row_[l] < 0) continue;
    double sum = entry(unknown_row_[l], size_);
    for (int j = 0; j < n_; ++j) sum += entry(unknown_row_[l], pair_column_[j]) * z[2 * e + j];
    for (const int free : unknowns_) sum += entry(unknown_row_[l], unknown_column_[free]) * v[free];
    v[l] = sum;
  }
}

}  // namespace lcp::solver
