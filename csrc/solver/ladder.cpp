#include "solver/ladder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/verify.h"

namespace lcp::solver {
namespace {

constexpr int kRandomCovers = 8;
constexpr int kPivotsPerRow = 30;

// A claim this close to round-off needs no second solve of its basis.
constexpr double kNearRoundOff = 1e-13;

// x 2^exponent; in two factors, since 2^1074 alone would overflow.
class PowerOfTwo {
 public:
  explicit PowerOfTwo(int exponent)
      : first_(std::ldexp(1.0, exponent / 2)), second_(std::ldexp(1.0, exponent - exponent / 2)) {}
  double operator()(double x) const { return x == 0 ? 0.0 : x * first_ * second_; }

 private:
  double first_, second_;
};

double largest_magnitude(const double* x, std::size_t count) {
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::abs(x[i]);
    if (!(magnitude <= largest)) largest = magnitude;  // keeps a NaN or an infinity
    if (!std::isfinite(largest)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

}  // namespace

Ladder::Ladder(int n, const Settings& settings)
    : n_(n),
      settings_(settings),
      lemke_(n),
      basis_(n),
      M_(static_cast<std::size_t>(n) * n),
      q_(n),
      z_(n),
      w_(n),
      trial_z_(n),
      trial_w_(n),
      x_(n) {}

Status Ladder::solve(const double* M, const double* q, double* z, double* w) {
  pivots_ = 0;
  Status status = load(M, q) ? climb() : Status::kBadInput;
  if (status == Status::kSolved && !write(z, w)) status = Status::kNotFound;
  if (status != Status::kSolved) {
    std::fill_n(z, n_, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(w, n_, std::numeric_limits<double>::quiet_NaN());
  }
  return status;
}

bool Ladder::load(const double* M, const double* q) {
  const double largest_m = largest_magnitude(M, M_.size());
  const double largest_q = largest_magnitude(q, q_.size());
  if (!std::isfinite(largest_m) || !std::isfinite(largest_q)) return false;
  matrix_exponent_ = exponent_of(largest_m);
  vector_exponent_ = exponent_of(largest_q);
  std::transform(M, M + M_.size(), M_.begin(), PowerOfTwo(-matrix_exponent_));
  std::transform(q, q + q_.size(), q_.begin(), PowerOfTwo(-vector_exponent_));
  return true;
}

Status Ladder::climb() {
  if (std::all_of(q_.begin(), q_.end(), [](double x) { return x >= 0; })) {
    std::fill(z_.begin(), z_.end(), 0.0);
    w_ = q_;
    return Status::kSolved;
  }
  const int rungs = settings_.method == Method::kAuto ? 2 + kRandomCovers : 1;
  bool ran_out = false;
  for (int rung = 0; rung < rungs; ++rung) {
    Lemke::Options options;
    options.max_pivots = settings_.max_pivots.value_or(std::int64_t{kPivotsPerRow} * n_);
    if (settings_.max_pivots) options.max_pivots -= pivots_;
    if (settings_.method == Method::kAuto) {
      options.max_pivots = std::min(options.max_pivots, std::int64_t{kPivotsPerRow} * n_);
    }
    if (rung == 1) options.pivot_tolerance = 1e-12;
    if (rung > 1) options.cover = static_cast<std::uint64_t>(rung);
    const Lemke::End end = lemke_.run(M_.data(), q_.data(), options);
    pivots_ += lemke_.pivots();
    if (end == Lemke::End::kBasis && accept()) return Status::kSolved;
    ran_out = ran_out || end == Lemke::End::kPivotLimit;
  }
  return ran_out ? Status::kPivotLimit : Status::kNotFound;
}

// Verifies Lemke's claim, solves its basis afresh where that helps, and keeps the better of the two.
bool Ladder::accept() {
  std::copy_n(lemke_.z(), n_, z_.begin());
  double claim = violation(n_, M_.data(), q_.data(), z_.data(), settings_.tolerance, w_.data());
  if (claim * settings_.tolerance > kNearRoundOff) {
    basis_.factor(M_.data(), lemke_.basic());
    for (int i = 0; i < basis_.size(); ++i) x_[i] = -q_[basis_.indices()[i]];
    basis_.solve(x_.data());
    std::fill(trial_z_.begin(), trial_z_.end(), 0.0);
    for (int i = 0; i < basis_.size(); ++i) trial_z_[basis_.indices()[i]] = std::max(0.0, x_[i]);
    const double trial = violation(n_, M_.data(), q_.data(), trial_z_.data(), settings_.tolerance, trial_w_.data());
    if (trial < claim) {
      claim = trial;
      z_.swap(trial_z_);
      w_.swap(trial_w_);
    }
  }
  return claim <= 1;
}

// Back to the caller's scale, exactly complementary; false where the result, as the caller will see it, is none.
bool Ladder::write(double* z, double* w) {
  const int z_exponent = vector_exponent_ - matrix_exponent_;
  std::transform(z_.begin(), z_.end(), z, PowerOfTwo(z_exponent));
  if (settings_.single_precision) {
    for (int i = 0; i < n_; ++i) z[i] = static_cast<float>(z[i]);
    std::transform(z, z + n_, z_.begin(), PowerOfTwo(-z_exponent));
    if (!(violation(n_, M_.data(), q_.data(), z_.data(), settings_.tolerance, w_.data()) <= 1)) return false;
  }
  const PowerOfTwo unscale(vector_exponent_);
  for (int i = 0; i < n_; ++i) {
    w[i] = z[i] > 0 ? 0.0 : std::max(0.0, unscale(w_[i]));
    if (!std::isfinite(z[i]) || !std::isfinite(w[i])) return false;
  }
  return true;
}

}  // namespace lcp::solver
