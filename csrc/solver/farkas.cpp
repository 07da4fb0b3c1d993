#include "solver/farkas.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "linalg/scale.h"

namespace lcp::solver {
namespace {

// A sum that loses nothing: its parts do not overlap, the last is the largest [Shewchuk, Adaptive precision
// floating-point arithmetic, Discrete & Computational Geometry 18, 1997].
class ExactSum {
 public:
  // False where a b needs digits below the smallest double's.
  bool add_product(double a, double b) {
    if (a == 0 || b == 0) return true;
    const double product = a * b;
    if (std::abs(product) < 0x1p-900) return false;
    add(std::fma(a, b, -product));
    add(product);
    return true;
  }

  double sign() const { return parts_.empty() ? 0.0 : parts_.back(); }

 private:
  void add(double x) {
    std::size_t kept = 0;
    for (const double part : parts_) {
      const double sum = x + part;
      const double from_x = sum - part;
      const double error = (x - from_x) + (part - (sum - from_x));
      if (error != 0) parts_[kept++] = error;
      x = sum;
    }
    parts_.resize(kept);
    if (x != 0) parts_.push_back(x);
  }

  std::vector<double> parts_;
};

// The bound on |(M'y)_j|, with M and y of unit size, below which the inequality is taken to hold with equality.
constexpr double kTight = 1e-10;

// The smallest denominator of a fraction that is x but for rounding, by its continued fraction.
double denominator(double x) {
  double before = 0;
  double now = 1;
  double rest = x;
  while (std::abs(x * now - std::round(x * now)) > 1e-9 * std::max(1.0, x * now) && now < 1e9) {
    rest = 1 / (rest - std::floor(rest));
    before = std::exchange(now, std::floor(rest) * now + before);
  }
  return now;
}

}  // namespace

Farkas::Farkas(int n)
    : n_(n),
      lemke_(2 * n),
      M_(static_cast<std::size_t>(n) * n),
      q_(n),
      big_M_(static_cast<std::size_t>(4) * n * n),
      big_q_(static_cast<std::size_t>(2) * n),
      y_(n) {}

Termination Farkas::run(const double* M, const double* q, const int* r, const int* c, std::int64_t max_pivots) {
  pivots_ = 0;
  if (!scale(M, q, r, c)) return Termination::kFailed;
  const auto n = static_cast<std::size_t>(n_);
  std::fill(big_M_.begin(), big_M_.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      big_M_[j * 2 * n + n + i] = -M_[i * n + j];
      big_M_[(n + i) * 2 * n + j] = M_[i * n + j];
    }
    big_M_[(n + i) * 2 * n + n + i] = 1;
    big_q_[i] = 0;
    big_q_[n + i] = q_[i];
  }
  const Termination end = lemke_.run(big_M_.data(), big_q_.data(), {.max_pivots = max_pivots});
  pivots_ = lemke_.pivots();
  if (end != Termination::kCandidate) return end;
  std::copy_n(lemke_.z() + n_, n_, y_.begin());
  const double largest = *std::max_element(y_.begin(), y_.end());
  if (!(largest > 0)) return Termination::kFailed;
  for (double& y : y_) y /= largest;
  for (const double negligible : {1e-13, 1e-10, 1e-7}) {
    for (double& y : y_) y = y > negligible ? y : 0.0;
    if (prove_inside() || proved(y_) || prove_integers())
      return unscale(r) ? Termination::kCandidate : Termination::kFailed;
  }
  return Termination::kFailed;
}

// Scales row i by 2^-r_i and column j by 2^-c_j. The former only turns y_i into 2^r_i y_i, the latter changes no sign.
// Returns false where the scaling is not exact.
bool Farkas::scale(const double* M, const double* q, const int* r, const int* c) {
  const int matrix_exponent = linalg::exponent_of(linalg::largest_magnitude(M, M_.size()));
  int vector_exponent = -5000;
  for (int i = 0; i < n_; ++i) {
    if (q[i] != 0) vector_exponent = std::max(vector_exponent, linalg::exponent_of(q[i]) - r[i]);
  }
  bool exact = true;
  const auto scaled = [&exact](double x, int exponent) {
    const double result = std::ldexp(x, exponent);
    exact = exact && (x == 0 || std::abs(result) >= 0x1p-800);
    return result;
  };
  for (int i = 0; i < n_; ++i) {
    q_[i] = scaled(q[i], -r[i] - vector_exponent);
    for (int j = 0; j < n_; ++j) {
      const auto k = static_cast<std::size_t>(i) * n_ + j;
      M_[k] = scaled(M[k], -matrix_exponent - r[i] - c[j]);
    }
  }
  return exact;
}

bool Farkas::proved(const std::vector<double>& y) {
  ExactSum along_q;
  for (int i = 0; i < n_; ++i) {
    if (!(y[i] >= 0) || !along_q.add_product(q_[i], y[i])) return false;
  }
  if (!(along_q.sign() < 0)) return false;
  for (int j = 0; j < n_; ++j) {
    ExactSum column;
    for (int i = 0; i < n_; ++i) {
      if (!column.add_product(M_[static_cast<std::size_t>(i) * n_ + j], y[i])) return false;
    }
    if (column.sign() > 0) return false;
  }
  return true;
}

// Moves y so that the inequalities that hold with equality, the set T, become strict: M_ST'd = -e on its support S.
bool Farkas::prove_inside() {
  std::vector<int> support, tight;
  for (int i = 0; i < n_; ++i) {
    if (y_[i] > 0) support.push_back(i);
  }
  for (int j = 0; j < n_; ++j) {
    double sum = 0;
    double magnitude = 0;
    for (const int i : support) {
      const double term = M_[static_cast<std::size_t>(i) * n_ + j] * y_[i];
      sum += term;
      magnitude += std::abs(term);
    }
    if (magnitude > 0 && sum > -kTight * magnitude) tight.push_back(j);
  }
  if (tight.empty()) return proved(y_);
  Eigen::MatrixXd A(tight.size(), support.size());
  for (Eigen::Index j = 0; j < A.rows(); ++j) {
    for (Eigen::Index i = 0; i < A.cols(); ++i) A(j, i) = M_[static_cast<std::size_t>(support[i]) * n_ + tight[j]];
  }
  const Eigen::VectorXd strict = -Eigen::VectorXd::Ones(A.rows());
  const Eigen::VectorXd d = A.completeOrthogonalDecomposition().solve(strict);
  if (!d.allFinite() || !((A * d - strict).cwiseAbs().maxCoeff() < 0.5)) return false;
  double length = 1;
  for (Eigen::Index i = 0; i < A.cols(); ++i) {
    if (d[i] != 0) length = std::min(length, y_[support[i]] / std::abs(d[i]));
  }
  for (const double share : {0x1p-10, 0x1p-20, 0x1p-30, 0x1p-40}) {
    std::vector<double> y(y_);
    for (Eigen::Index i = 0; i < A.cols(); ++i) y[support[i]] += share * length * d[i];
    if (!proved(y)) continue;
    y_ = std::move(y);
    return true;
  }
  return false;
}

// Integer data have a y of fractions; their common denominator turns it into a y of integers.
bool Farkas::prove_integers() {
  double smallest = 1;
  for (const double y : y_) {
    if (y > 0) smallest = std::min(smallest, y);
  }
  double common = 1;
  for (const double y : y_) common *= denominator(y / smallest * common);
  if (!(common / smallest < 1e12)) return false;
  std::vector<double> y(y_);
  for (double& value : y) value = std::round(value / smallest * common);
  if (!proved(y)) return false;
  y_ = std::move(y);
  return true;
}

// Brings y to the units of M and q, but for a common factor; false where y is beyond the range of numbers there.
bool Farkas::unscale(const int* r) {
  int largest = std::numeric_limits<int>::min();
  for (int i = 0; i < n_; ++i) {
    if (y_[i] > 0) largest = std::max(largest, linalg::exponent_of(y_[i]) - r[i]);
  }
  for (int i = 0; i < n_; ++i) {
    if (y_[i] == 0) continue;
    y_[i] = std::ldexp(y_[i], -r[i] - largest);
    if (y_[i] < std::numeric_limits<double>::min()) return false;
  }
  return true;
}

}  // namespace lcp::solver
