#include "solver/central_path.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "linalg/equilibrate.h"
#include "linalg/scale.h"
#include "solver/random.h"

namespace lcp::solver {
namespace {

constexpr double kLastKappa = 1e-16;
constexpr int kStepsPerKappa = 10;
constexpr int kStepsToPoint = 60;
constexpr int kHalvings = 25;
constexpr double kNear = 1e-8;  // the error of a Newton step from here, relative to sqrt(kappa), is round-off

}  // namespace

CentralPath::CentralPath(int n, int num_equations)
    : n_(n),
      num_equations_(num_equations),
      lu_(n, linalg::Pivoting::kPartial),
      z_(n),
      w_(n),
      weight_(n),
      f_(n),
      d_(n),
      trial_z_(n),
      trial_w_(n),
      trial_f_(n),
      basic_(n) {}

// Fills w = M z + q and f; returns |f|^2. Where z + w > 0, f is written without the cancellation of its definition.
double CentralPath::merit(const double* z, double kappa, double* w, double* f) const {
  double sum = 0;
  for (int i = 0; i < n_; ++i) {
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    w[i] = q_[i];
    for (int j = 0; j < n_; ++j) w[i] += row[j] * z[j];
    if (i < num_equations_) {
      f[i] = w[i];
    } else {
      const double root = std::hypot(z[i] - w[i], 2 * std::sqrt(kappa * weight_[i]));
      const double total = z[i] + w[i];
      f[i] = total > 0 ? 4 * (z[i] * w[i] - kappa * weight_[i]) / (total + root) : total - root;
    }
    sum += f[i] * f[i];
  }
  return sum;
}

// One damped Newton step from z_, w_, f_; false where there is none that lowers the merit.
bool CentralPath::step(double kappa, double& value, int halvings) {
  double* A = lu_.matrix(n_);
  for (int i = 0; i < n_; ++i) {
    double along_z = 0;
    double along_w = 1;
    if (i >= num_equations_) {
      const double cosine = (z_[i] - w_[i]) / std::hypot(z_[i] - w_[i], 2 * std::sqrt(kappa * weight_[i]));
      along_z = 1 - cosine;
      along_w = 1 + cosine;
    }
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    for (int j = 0; j < n_; ++j) A[static_cast<std::size_t>(i) * n_ + j] = along_w * row[j];
    A[static_cast<std::size_t>(i) * n_ + i] += along_z;
    d_[i] = -f_[i];
  }
  if (lu_.factor(0) < n_) return false;
  lu_.solve(d_.data());
  double length = 1;
  for (int k = 0; k < halvings; ++k, length /= 2) {
    for (int i = 0; i < n_; ++i) trial_z_[i] = z_[i] + length * d_[i];
    const double trial = merit(trial_z_.data(), kappa, trial_w_.data(), trial_f_.data());
    if (!(trial < value * (1 - 1e-4 * length))) continue;
    value = trial;
    z_.swap(trial_z_);
    w_.swap(trial_w_);
    f_.swap(trial_f_);
    return true;
  }
  return false;
}

Termination CentralPath::run(const double* M, const double* q, std::uint64_t start, std::int64_t max_steps) {
  M_ = M;
  q_ = q;
  steps_ = 0;
  Random random(start);
  for (int i = 0; i < n_; ++i) {
    z_[i] = start == 0 ? 1.0 : std::exp2(random.uniform(-10, 0));
    weight_[i] = start == 0 ? 1.0 : std::exp2(random.uniform(-4, 4));
  }
  for (double kappa = 1; kappa >= kLastKappa; kappa /= 10) {
    double value = merit(z_.data(), kappa, w_.data(), f_.data());
    for (int k = 0; k < kStepsPerKappa && value > 0.01 * kappa; ++k) {
      if (steps_ >= max_steps) return Termination::kBudget;
      ++steps_;
      if (!step(kappa, value, kHalvings)) {
        if (k == 0) return Termination::kFailed;
        break;
      }
    }
  }
  for (int i = 0; i < n_; ++i) {
    if (!std::isfinite(z_[i])) return Termination::kFailed;
    basic_[i] = i < num_equations_ || z_[i] > w_[i];
    if (i >= num_equations_) z_[i] = basic_[i] ? std::max(0.0, z_[i]) : 0.0;
  }
  return Termination::kCandidate;
}

// The point is sought where rows and columns are of like size. With w = 2^(r+f) w' and z = 2^(f-c) z', the products
// z_i' w_i' are kappa 2^(c_i - r_i - 2f).
bool CentralPath::point(const double* M, const double* q, const double* z_0, double kappa, double* z, double* w) {
  scaled_M_.assign(M, M + static_cast<std::size_t>(n_) * n_);
  scaled_q_.resize(n_);
  row_exponent_.resize(n_);
  column_exponent_.resize(n_);
  const double largest_M = linalg::largest_magnitude(M, scaled_M_.size());
  if (!std::isfinite(largest_M)) return false;
  const linalg::PowerOfTwo unit(-linalg::exponent_of(largest_M));
  std::transform(scaled_M_.begin(), scaled_M_.end(), scaled_M_.begin(), unit);
  linalg::equilibrate(n_, scaled_M_.data(), row_exponent_.data(), column_exponent_.data());
  // The size of the point is that of q, of z_0, or the one that kappa gives it.
  int exponent = std::numeric_limits<int>::min();
  for (int i = 0; i < n_; ++i) {
    row_exponent_[i] += linalg::exponent_of(largest_M);
    if (!std::isfinite(q[i]) || !std::isfinite(z_0[i])) return false;
    const int e = linalg::exponent_of(kappa) + column_exponent_[i] - row_exponent_[i];
    exponent = std::max(exponent, e / 2);
    if (q[i] != 0) exponent = std::max(exponent, linalg::exponent_of(q[i]) - row_exponent_[i]);
    if (z_0[i] != 0) exponent = std::max(exponent, linalg::exponent_of(z_0[i]) + column_exponent_[i]);
  }
  for (int i = 0; i < n_; ++i) {
    scaled_q_[i] = std::ldexp(q[i], -row_exponent_[i] - exponent);
    z_[i] = std::ldexp(z_0[i], column_exponent_[i] - exponent);
    weight_[i] = std::ldexp(kappa, column_exponent_[i] - row_exponent_[i] - 2 * exponent);
  }
  M_ = scaled_M_.data();
  q_ = scaled_q_.data();
  double value = merit(z_.data(), 1, w_.data(), f_.data());
  const double least = n_ > 0 ? *std::min_element(weight_.begin(), weight_.end()) : 0;
  for (int k = 0; k < kStepsToPoint; ++k) {
    const bool is_near = value <= kNear * kNear * least;
    if (!step(1, value, is_near ? 1 : kHalvings) || is_near) break;
  }
  for (int i = 0; i < n_; ++i) {
    const double allowed = std::max(1e-9 * std::sqrt(weight_[i]), 1e-14);
    if (!(std::abs(f_[i]) <= allowed)) return false;
    z[i] = std::ldexp(z_[i], exponent - column_exponent_[i]);
    w[i] = std::ldexp(w_[i], exponent + row_exponent_[i]);
    if (i < num_equations_) {
      w[i] = 0;
      continue;
    }
    // The members of a pair have different units and are compared as they were scaled.
    (z_[i] > w_[i] ? w : z)[i] = kappa / (z_[i] > w_[i] ? z : w)[i];
    if (!(z[i] > 0 && w[i] > 0)) return false;
  }
  return true;
}

}  // namespace lcp::solver
