#include "solver/scaled_problem.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "linalg/equilibrate.h"
#include "linalg/scale.h"

namespace lcp::solver {
namespace {

// The largest magnitude of usual exponents of 2. Products with such entries of M neither under- nor overflow where z
// and q are of usual size.
constexpr int kUsualExponent = 64;

// A row whose largest entry is below this share of the largest of M has other units.
constexpr double kOtherUnits = 0x1p-12;

}  // namespace

ScaledProblem::ScaledProblem(int n) : n_(n), q_(n), spans_(n), row_exponent_(n), column_exponent_(n) {}

bool ScaledProblem::load(const double* M, const double* q) {
  given_M_ = M;
  given_q_ = q;
  is_equilibrated_ = false;
  const double largest_m = linalg::kernels().rows.scan(n_, M, spans_.data());
  const double largest_q = linalg::largest_magnitude(q, q_.size());
  if (!std::isfinite(largest_m) || !std::isfinite(largest_q)) return false;
  vector_exponent_ = linalg::exponent_of(largest_q);
  is_exact_ = linalg::PowerOfTwo(-vector_exponent_).scale(q, q_.size(), q_.data());
  has_small_row_.reset();
  has_row_units_ = false;
  matrix_ = M;
  matrix_exponent_ = 0;
  normalized_exponent_ = linalg::exponent_of(largest_m);
  has_normalized_matrix_ = false;
  small_entry_ = std::ldexp(kOtherUnits, normalized_exponent_);
  if (std::abs(normalized_exponent_) > kUsualExponent) {
    M_.resize(static_cast<std::size_t>(n_) * n_);
    is_exact_ = linalg::PowerOfTwo(-normalized_exponent_).scale(M, M_.size(), M_.data()) && is_exact_;
    matrix_ = M_.data();
    matrix_exponent_ = std::exchange(normalized_exponent_, 0);
    small_entry_ = kOtherUnits;
  }
  return true;
}

bool ScaledProblem::is_small_row(int i) const {
  const double* const row = matrix_ + static_cast<std::size_t>(i) * n_;
  return linalg::kernels().rows.largest(n_, row) < small_entry_;
}

bool ScaledProblem::has_small_row() const {
  if (!has_small_row_) has_small_row_ = linalg::kernels().rows.has_small_row(matrix(), small_entry_);
  return *has_small_row_;
}

// q is one more column: where M leaves the units of a row open, as a diagonal M does, they follow from q.
const int* ScaledProblem::row_units() const {
  if (!has_row_units_) {
    const std::size_t size = spans_.size() + 1;
    std::vector<double> augmented(size * size);
    for (std::size_t i = 0; i + 1 < size; ++i) {
      double* const row = std::copy_n(matrix_ + i * (size - 1), size - 1, augmented.data() + i * size);
      *row = q_[i];
    }
    std::vector<int> columns(size);
    row_unit_.resize(size);
    linalg::remove_units(static_cast<int>(size), augmented.data(), row_unit_.data(), columns.data());
    has_row_units_ = true;
  }
  return row_unit_.data();
}

const double* ScaledProblem::normalized_matrix() {
  if (normalized_exponent_ == 0) return matrix_;
  if (!has_normalized_matrix_) {
    M_.resize(static_cast<std::size_t>(n_) * n_);
    is_exact_ = linalg::PowerOfTwo(-normalized_exponent_).scale(matrix_, M_.size(), M_.data()) && is_exact_;
    has_normalized_matrix_ = true;
  }
  return M_.data();
}

// 2^-r w = (2^-r M 2^-c) (2^c z) + 2^-r q.
void ScaledProblem::equilibrate() {
  if (is_equilibrated_) return;
  is_equilibrated_ = true;
  transformed_M_.assign(normalized_matrix(), normalized_matrix() + spans_.size() * spans_.size());
  transformed_q_.resize(n_);
  linalg::equilibrate(n_, transformed_M_.data(), row_exponent_.data(), column_exponent_.data());
  // Both exponents at once, since 2^-r q may overflow.
  constexpr int kNone = std::numeric_limits<int>::min();
  q_exponent_ = kNone;
  for (int i = 0; i < n_; ++i) {
    if (q_[i] != 0) q_exponent_ = std::max(q_exponent_, linalg::exponent_of(q_[i]) - row_exponent_[i]);
  }
  if (q_exponent_ == kNone) q_exponent_ = 0;
  for (int i = 0; i < n_; ++i) transformed_q_[i] = std::ldexp(q_[i], -row_exponent_[i] - q_exponent_);
}

int ScaledProblem::unit_spread() const {
  const auto [least_row, largest_row] = std::minmax_element(row_exponent_.begin(), row_exponent_.end());
  const auto [least_column, largest_column] = std::minmax_element(column_exponent_.begin(), column_exponent_.end());
  return std::max(*largest_row - *least_row, *largest_column - *least_column);
}

void ScaledProblem::scale_rows_by_q() {
  const double* const M = normalized_matrix();
  transformed_M_.resize(spans_.size() * spans_.size());
  transformed_q_.resize(n_);
  q_exponent_ = 0;
  std::fill(column_exponent_.begin(), column_exponent_.end(), std::numeric_limits<int>::min());
  for (int i = 0; i < n_; ++i) {
    row_exponent_[i] = linalg::exponent_of(q_[i]);
    transformed_q_[i] = std::ldexp(q_[i], -row_exponent_[i]);
    for (int j = 0; j < n_; ++j) {
      const double entry = M[static_cast<std::size_t>(i) * n_ + j];
      if (entry != 0) {
        column_exponent_[j] = std::max(column_exponent_[j], linalg::exponent_of(entry) - row_exponent_[i]);
      }
    }
  }
  for (int j = 0; j < n_; ++j) {
    if (column_exponent_[j] == std::numeric_limits<int>::min()) column_exponent_[j] = 0;
    for (int i = 0; i < n_; ++i) {
      const auto k = static_cast<std::size_t>(i) * n_ + j;
      transformed_M_[k] = std::ldexp(M[k], -row_exponent_[i] - column_exponent_[j]);
    }
  }
  is_equilibrated_ = false;
}

void ScaledProblem::shift_diagonal(double shift) {
  const double* const M = normalized_matrix();
  transformed_M_.assign(M, M + spans_.size() * spans_.size());
  for (std::size_t i = 0; i < transformed_M_.size(); i += spans_.size() + 1) transformed_M_[i] += shift;
  is_equilibrated_ = false;
}

void ScaledProblem::untransform(const double* z, double* normalized_z) const {
  for (int i = 0; i < n_; ++i) normalized_z[i] = std::ldexp(z[i], q_exponent_ - column_exponent_[i]);
}

}  // namespace lcp::solver
