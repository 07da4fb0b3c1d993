#include "solver/ladder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "solver/equilibrate.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

constexpr int kPivotsPerRow = 30;

enum class Matrix { kGiven, kEquilibrated, kShifted };

struct Rung {
  Lemke::Options options;
  Matrix matrix;
};

constexpr Lemke::Options kTight = {.pivot_tolerance = 1e-12, .tie_tolerance = 1e-14};

// See ladder.h.
constexpr std::array<Rung, 13> kRungs = {{{{}, Matrix::kGiven},
                                          {kTight, Matrix::kGiven},
                                          {{}, Matrix::kEquilibrated},
                                          {kTight, Matrix::kEquilibrated},
                                          {{}, Matrix::kShifted},
                                          {{.cover = 1}, Matrix::kGiven},
                                          {{.cover = 2}, Matrix::kGiven},
                                          {{.cover = 3}, Matrix::kGiven},
                                          {{.cover = 4}, Matrix::kGiven},
                                          {{.cover = 5}, Matrix::kGiven},
                                          {{.cover = 6}, Matrix::kGiven},
                                          {{.cover = 7}, Matrix::kGiven},
                                          {{.cover = 8}, Matrix::kGiven}}};

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
      basis_(n, 1e-15),
      M_(static_cast<std::size_t>(n) * n),
      q_(n),
      z_(n),
      w_(n),
      trial_z_(n),
      trial_w_(n),
      x_(n),
      row_exponent_(n),
      column_exponent_(n) {}

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
  const std::size_t rungs = settings_.method == Method::kAuto ? kRungs.size() : 1;
  const std::int64_t per_rung = std::int64_t{kPivotsPerRow} * n_;
  bool ran_out = false;
  is_equilibrated_ = false;
  for (std::size_t k = 0; k < rungs; ++k) {
    Lemke::Options options = kRungs[k].options;
    options.max_pivots = per_rung;
    if (settings_.max_pivots) {
      const std::int64_t left = *settings_.max_pivots - pivots_;
      options.max_pivots = settings_.method == Method::kAuto ? std::min(per_rung, left) : left;
    }
    const Lemke::End end = run(k, options);
    pivots_ += lemke_.pivots();
    if (end == Lemke::End::kBasis && accept()) return Status::kSolved;
    ran_out = ran_out || end == Lemke::End::kPivotLimit;
  }
  return ran_out ? Status::kPivotLimit : Status::kNotFound;
}

// Leaves Lemke's claim in z_.
Lemke::End Ladder::run(std::size_t rung, const Lemke::Options& options) {
  const Matrix matrix = kRungs[rung].matrix;
  if (matrix == Matrix::kEquilibrated) equilibrate_once();
  const auto move_diagonal = [&](double shift) {
    if (matrix != Matrix::kShifted) return;
    for (int i = 0; i < n_; ++i) {
      double& entry = M_[static_cast<std::size_t>(i) * n_ + i];
      if (shift > 0) x_[i] = entry;
      entry = shift > 0 ? entry + shift : x_[i];
    }
  };
  move_diagonal(settings_.single_precision ? 1e-7 : 1e-15);
  const Lemke::End end = matrix == Matrix::kEquilibrated
                             ? lemke_.run(equilibrated_M_.data(), equilibrated_q_.data(), options)
                             : lemke_.run(M_.data(), q_.data(), options);
  move_diagonal(0);
  if (end != Lemke::End::kBasis) return end;
  std::copy_n(lemke_.z(), n_, z_.begin());
  if (matrix == Matrix::kEquilibrated) {
    for (int i = 0; i < n_; ++i) z_[i] = std::ldexp(z_[i], equilibrated_exponent_ - column_exponent_[i]);
  }
  return end;
}

// 2^-r w = (2^-r M 2^-c) (2^c z) + 2^-r q.
void Ladder::equilibrate_once() {
  if (is_equilibrated_) return;
  is_equilibrated_ = true;
  equilibrated_M_ = M_;
  equilibrated_q_.resize(n_);
  equilibrate(n_, equilibrated_M_.data(), row_exponent_.data(), column_exponent_.data());
  for (int i = 0; i < n_; ++i) equilibrated_q_[i] = std::ldexp(q_[i], -row_exponent_[i]);
  equilibrated_exponent_ = exponent_of(largest_magnitude(equilibrated_q_.data(), equilibrated_q_.size()));
  for (double& q : equilibrated_q_) q = std::ldexp(q, -equilibrated_exponent_);
}

// Verifies Lemke's claim, solves its basis afresh where that helps, and keeps the better of the two.
bool Ladder::accept() {
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

// Back to the caller's scale, exactly complementary; false where the result, as the caller will see it, is none: z may
// be rounded to float, or under- or overflow.
bool Ladder::write(double* z, double* w) {
  const int z_exponent = vector_exponent_ - matrix_exponent_;
  const bool single = settings_.single_precision;
  std::transform(z_.begin(), z_.end(), z, PowerOfTwo(z_exponent));
  if (single) std::transform(z, z + n_, z, [](double x) { return static_cast<float>(x); });
  std::transform(z, z + n_, trial_z_.begin(), PowerOfTwo(-z_exponent));
  if (trial_z_ != z_ && !(violation(n_, M_.data(), q_.data(), trial_z_.data(), settings_.tolerance, w_.data()) <= 1)) {
    return false;
  }
  const PowerOfTwo unscale(vector_exponent_);
  for (int i = 0; i < n_; ++i) {
    w[i] = z[i] > 0 ? 0.0 : std::max(0.0, unscale(w_[i]));
    if (single) w[i] = static_cast<float>(w[i]);
    if (!std::isfinite(z[i]) || !std::isfinite(w[i])) return false;
  }
  return true;
}

}  // namespace lcp::solver
