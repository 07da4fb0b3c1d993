#include "solver/mixed.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "linalg/scale.h"
#include "solver/candidate.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

// A counts as singular, and is not eliminated, where a pivot is below this times the largest.
constexpr double kRegular = 1e-10;

// The rounding error of an entry of M - C A^-1 B whose terms cancel, relative to these terms.
constexpr double kCancelled = 1e-12;

}  // namespace

Mixed::Mixed(int k, int n, const Settings& settings)
    : k_(k),
      n_(n),
      size_(k + n),
      settings_(settings),
      single_precision_(settings.single_precision),
      equations_(size_, kRegular),
      basis_(size_, kNegligiblePivot),
      H_(static_cast<std::size_t>(size_) * size_),
      h_(size_),
      v_(size_),
      y_(size_),
      trial_v_(size_),
      trial_y_(size_),
      x_(size_),
      marked_(size_),
      guess_(n) {
  settings_.double_z = true;  // only the final v is rounded to float
}

Status Mixed::solve(const double* H, const double* h, const double* guess, double* v, double* y) {
  const double largest_H = linalg::largest_magnitude(H, H_.size());
  const double largest_h = linalg::largest_magnitude(h, h_.size());
  Status status = Status::kBadInput;
  if (std::isfinite(largest_H) && std::isfinite(largest_h)) {
    matrix_exponent_ = linalg::exponent_of(largest_H);
    vector_exponent_ = linalg::exponent_of(largest_h);
    scaled_exactly_ = linalg::PowerOfTwo(-matrix_exponent_).scale(H, H_.size(), H_.data());
    scaled_exactly_ &= linalg::PowerOfTwo(-vector_exponent_).scale(h, h_.size(), h_.data());
    given_H_ = H;
    given_h_ = h;
    const std::optional<Status> eliminated = eliminate(guess);
    status = eliminated ? *eliminated : split();
    if (status == Status::kSolved && !write(v, y)) status = Status::kNotFound;
    if (status == Status::kInfeasible && !scaled_exactly_) status = Status::kNotFound;
  }
  if (status != Status::kSolved) {
    std::fill_n(v, size_, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(y, size_, std::numeric_limits<double>::quiet_NaN());
  }
  return status;
}

// std::nullopt where A is too near singular, or where the status of the reduced problem need not be that of H.
std::optional<Status> Mixed::eliminate(const double* guess) {
  std::fill_n(marked_.begin(), k_, static_cast<unsigned char>(1));
  std::fill_n(marked_.begin() + k_, n_, static_cast<unsigned char>(0));
  equations_.factor(H_.data(), marked_.data());
  if (!equations_.regular()) return std::nullopt;
  const auto k = static_cast<std::size_t>(k_);
  const auto n = static_cast<std::size_t>(n_);
  const auto size = static_cast<std::size_t>(size_);
  X_.resize(k * (n + 1));
  M_.resize(n * n);
  q_.resize(n);
  z_.resize(n);
  w_.resize(n);
  for (std::size_t j = 0; j <= n; ++j) {
    double* x = X_.data() + j * k;
    for (std::size_t e = 0; e < k; ++e) x[e] = j < n ? H_[e * size + k + j] : h_[e];
    equations_.solve(x);
    for (std::size_t i = 0; i < n; ++i) {
      const double* row = H_.data() + (k + i) * size;
      double sum = j < n ? row[k + j] : h_[k + i];
      double magnitude = std::abs(sum);
      for (std::size_t e = 0; e < k; ++e) {
        sum -= row[e] * x[e];
        magnitude += std::abs(row[e] * x[e]);
      }
      // An entry that is nothing but round-off is set to 0: where equations leave no freedom, as joints may leave a
      // body no motion, the reduced problem is 0.
      (j < n ? M_[i * n + j] : q_[i]) = std::abs(sum) <= kCancelled * magnitude ? 0.0 : sum;
    }
  }
  if (!reduced_) reduced_.emplace(n_, settings_);
  if (guess != nullptr) linalg::PowerOfTwo(matrix_exponent_ - vector_exponent_).scale(guess, n, guess_.data());
  const double* const scaled_guess = guess == nullptr ? nullptr : guess_.data();
  const Status status = reduced_->solve(M_.data(), q_.data(), scaled_guess, z_.data(), w_.data());
  if (status == Status::kPivotLimit && settings_.max_pivots) return status;
  if (status == Status::kInfeasible && proved(reduced_->farkas())) return status;
  if (status != Status::kSolved) return std::nullopt;
  for (std::size_t e = 0; e < k; ++e) {
    v_[e] = -X_[n * k + e];
    for (std::size_t j = 0; j < n; ++j) v_[e] -= X_[j * k + e] * z_[j];
  }
  std::copy(z_.begin(), z_.end(), v_.begin() + k_);
  return accept() ? std::optional(Status::kSolved) : std::nullopt;
}

Status Mixed::split() {
  const auto k = static_cast<std::size_t>(k_);
  const auto size = static_cast<std::size_t>(size_);
  const std::size_t n = size + k;
  M_.resize(n * n);
  q_.resize(n);
  z_.resize(n);
  w_.resize(n);
  // Row and column i >= k of the LCP are i - k of H; those before are the same with the other sign.
  const auto sign = [k](std::size_t i) { return i < k ? -1.0 : 1.0; };
  const auto source = [k](std::size_t i) { return i < k ? i : i - k; };
  for (std::size_t i = 0; i < n; ++i) {
    q_[i] = sign(i) * h_[source(i)];
    for (std::size_t j = 0; j < n; ++j) M_[i * n + j] = sign(i) * sign(j) * H_[source(i) * size + source(j)];
  }
  if (!split_) split_.emplace(static_cast<int>(n), settings_);
  const Status status = split_->solve(M_.data(), q_.data(), nullptr, z_.data(), w_.data());
  if (status != Status::kSolved) return status;
  for (std::size_t i = 0; i < size; ++i) v_[i] = z_[k + i] - (i < k ? z_[i] : 0.0);
  return accept() ? Status::kSolved : Status::kNotFound;
}

bool Mixed::accept() {
  double claim = violation(size_, k_, H_.data(), h_.data(), v_.data(), settings_.tolerance, y_.data());
  for (int i = 0; i < size_; ++i) marked_[i] = i < k_ || v_[i] > 0;
  basis_.factor(H_.data(), marked_.data());
  for (int i = 0; i < basis_.size(); ++i) x_[i] = -h_[basis_.indices()[i]];
  basis_.solve(x_.data());
  std::fill(trial_v_.begin(), trial_v_.end(), 0.0);
  for (int i = 0; i < basis_.size(); ++i) {
    const int target = basis_.indices()[i];
    trial_v_[target] = target < k_ ? x_[i] : std::max(0.0, x_[i]);
  }
  const double trial =
      violation(size_, k_, H_.data(), h_.data(), trial_v_.data(), settings_.tolerance, trial_y_.data());
  if (trial < claim) {
    claim = trial;
    v_.swap(trial_v_);
    y_.swap(trial_y_);
  }
  return claim <= 1;
}

// Whether y >= 0, which proves the reduced problem infeasible, also proves this for H. y_e = -A^-T C'y is only known up
// to the error |A^-T rho| <= bound with rho = A'y_e + C'y; the signs of B'y_e + M'y and of p'y_e + q'y must not depend
// on it.
bool Mixed::proved(const double* y) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double rounding = 2 * size_ * kEpsilon;
  const double largest = linalg::largest_magnitude(y, n_);
  std::vector<double> multiplier(size_), bound(k_), column(k_);
  for (int i = 0; i < n_; ++i) multiplier[k_ + i] = y[i] / largest;
  const auto entry = [this](int i, int j) { return H_[static_cast<std::size_t>(i) * size_ + j]; };
  for (int j = 0; j < k_; ++j) {
    for (int i = k_; i < size_; ++i) multiplier[j] -= entry(i, j) * multiplier[i];
  }
  equations_.solve_transposed(multiplier.data());
  for (int j = 0; j < k_; ++j) {
    double rho = 0;
    double magnitude = 0;
    for (int i = 0; i < size_; ++i) {
      rho += entry(i, j) * multiplier[i];
      magnitude += std::abs(entry(i, j) * multiplier[i]);
    }
    std::fill(column.begin(), column.end(), 0.0);
    column[j] = 1;
    equations_.solve_transposed(column.data());
    for (int i = 0; i < k_; ++i) bound[i] += 2 * std::abs(column[i]) * (std::abs(rho) + rounding * magnitude);
  }
  const auto certainly = [&](const auto& coefficient, bool strict) {
    double sum = 0;
    double magnitude = 0;
    for (int i = 0; i < size_; ++i) {
      sum += coefficient(i) * multiplier[i];
      magnitude += std::abs(coefficient(i)) * (rounding * std::abs(multiplier[i]) + (i < k_ ? bound[i] : 0.0));
    }
    return sum + magnitude < 0 || (!strict && magnitude == 0);
  };
  for (int j = k_; j < size_; ++j) {
    if (!certainly([&](int i) { return entry(i, j); }, false)) return false;
  }
  return certainly([&](int i) { return h_[i]; }, true);
}

// As Candidate::give.
bool Mixed::write(double* v, double* y) {
  const int v_exponent = vector_exponent_ - matrix_exponent_;
  std::transform(v_.begin(), v_.end(), v, linalg::PowerOfTwo(v_exponent));
  if (single_precision_) std::transform(v, v + size_, v, [](double x) { return static_cast<float>(x); });
  if (!scaled_exactly_) {
    if (!(violation(size_, k_, given_H_, given_h_, v, settings_.tolerance, y) <= 1)) return false;
  } else {
    std::transform(v, v + size_, trial_v_.begin(), linalg::PowerOfTwo(-v_exponent));
    if (trial_v_ != v_ &&
        !(violation(size_, k_, H_.data(), h_.data(), trial_v_.data(), settings_.tolerance, y_.data()) <= 1)) {
      return false;
    }
    std::transform(y_.begin(), y_.end(), y, linalg::PowerOfTwo(vector_exponent_));
  }
  for (int i = 0; i < size_; ++i) {
    y[i] = i < k_ || v[i] > 0 ? 0.0 : std::max(0.0, y[i]);
    if (single_precision_) y[i] = static_cast<float>(y[i]);
    if (!std::isfinite(v[i]) || !std::isfinite(y[i])) return false;
  }
  return true;
}

}  // namespace lcp::solver
