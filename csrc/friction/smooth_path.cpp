#include "friction/smooth_path.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::friction {
namespace {

constexpr int kSteps = 100, kStalled = 3;
constexpr double kInside = 0.9;             // the share of the way to h_n = 0 or u_n = 0 that a step takes
constexpr double kConverged = 1e-13;        // a residual that is small enough
constexpr double kRounding = 1e-5;          // a residual that is small enough if it no longer falls
constexpr double kFast = 0.1, kSlow = 0.5;  // the factors by which kappa falls

}  // namespace

SmoothLaw::SmoothLaw(const double* h, const double* u, double mu, double kappa) {
  const double slip = mu * std::hypot(u[0], u[1]), speed = std::hypot(u[2], slip);
  for (int i = 0; i < 2; ++i) {
    F[i] = h[i] * speed + mu * mu * h[2] * u[i];
    for (int j = 0; j < 2; ++j) C[i][j] = mu * mu * (h[i] * u[j] / speed + (i == j ? h[2] : 0));
    C[i][2] = h[i] * u[2] / speed;
    D[i][i] = speed;
    D[i][2] = mu * mu * u[i];
    E[i] = -mu * (h[i] * (u[0] * u[0] + u[1] * u[1]) / speed + 2 * h[2] * u[i]);
  }
  F[2] = h[2] * u[2] - kappa;
  C[2][2] = h[2];
  D[2][2] = u[2];
}

SmoothPath::SmoothPath(int contacts)
    : lu_(3 * contacts, linalg::Pivoting::kPartial),
      h_(3 * contacts),
      u_(3 * contacts),
      step_h_(3 * contacts),
      step_u_(3 * contacts),
      gap_(3 * contacts) {}

// The residual of the path: the error of the law relative to kappa and to the friction of a sliding contact. gap_ := W
// h + q - u.
double SmoothPath::evaluate(const Impulses& problem, double kappa) {
  problem.velocities(h_.data(), gap_.data());
  double worst = 0;
  for (int i = 0; i < problem.size(); ++i) {
    gap_[i] -= u_[i];
    worst = std::max(worst, std::abs(gap_[i]));
  }
  for (int k = 0; k < problem.contacts; ++k) {
    const SmoothLaw law(h_.data() + 3 * k, u_.data() + 3 * k, problem.mu[k], kappa);
    const double sliding = h_[3 * k + 2] * law.D[0][0];
    worst = std::max({worst, std::abs(law.F[0]) / sliding, std::abs(law.F[1]) / sliding, std::abs(law.F[2]) / kappa});
  }
  return worst;
}

// Takes Newton steps from h_ and u_, whose normal parts are > 0. Each step aims at a kappa that falls with the mean of
// h_n u_n, so that no contact reaches its bound before the others.
bool SmoothPath::newton(const Impulses& problem, double kappa, double fall) {
  const int size = problem.size();
  double least = std::numeric_limits<double>::infinity();
  int since = 0;
  for (int k = 0; k < kSteps; ++k) {
    double mean = 0;
    for (int i = 2; i < size; i += 3) mean += h_[i] * u_[i] / problem.contacts;
    const double target = std::max(kappa, fall * mean);
    const double norm = evaluate(problem, kappa);
    if (!std::isfinite(norm)) return false;
    // A residual that no longer falls consists of rounding errors.
    since = norm < 0.5 * least ? 0 : since + 1;
    least = std::min(least, norm);
    if (norm <= kConverged) return true;
    if (norm <= kRounding && since > kStalled) return true;
    double* matrix = lu_.matrix(size);
    for (int a = 0; a < problem.contacts; ++a) {
      const SmoothLaw law(h_.data() + 3 * a, u_.data() + 3 * a, problem.mu[a], target);
      for (int i = 0; i < 3; ++i) {
        double* row = matrix + static_cast<std::size_t>(3 * a + i) * size;
        std::fill_n(row, size, 0.0);
        double& right = step_h_[3 * a + i];
        right = -law.F[i];
        for (int l = 0; l < 3; ++l) {
          if (law.C[i][l] == 0) continue;
          const double* W_row = problem.W + static_cast<std::size_t>(3 * a + l) * size;
          for (int j = 0; j < size; ++j) row[j] += law.C[i][l] * W_row[j];
          right -= law.C[i][l] * gap_[3 * a + l];
        }
        for (int l = 0; l < 3; ++l) row[3 * a + l] += law.D[i][l];
      }
    }
    if (lu_.factor(0) < size) return false;
    lu_.solve(step_h_.data());
    double length = 1;
    for (int i = 0; i < size; ++i) {
      const double* row = problem.W + static_cast<std::size_t>(i) * size;
      step_u_[i] = gap_[i];
      for (int j = 0; j < size; ++j) step_u_[i] += row[j] * step_h_[j];
      if (i % 3 != 2) continue;
      if (step_h_[i] < 0) length = std::min(length, -kInside * h_[i] / step_h_[i]);
      if (step_u_[i] < 0) length = std::min(length, -kInside * u_[i] / step_u_[i]);
    }
    for (int i = 0; i < size; ++i) {
      h_[i] += length * step_h_[i];
      u_[i] += length * step_u_[i];
    }
  }
  return false;
}

bool SmoothPath::point(const Impulses& problem, double kappa, double* h, double* u) {
  const int size = problem.size();
  const auto start_at_least = [&](double least) {
    for (int i = 2; i < size; i += 3) {
      h_[i] = std::max(h_[i], least);
      u_[i] = std::max(u_[i], least);
    }
  };
  std::copy_n(h, size, h_.data());
  std::copy_n(u, size, u_.data());
  start_at_least(std::sqrt(kappa));
  bool found = newton(problem, kappa, kFast);
  if (!found) {
    std::fill(h_.begin(), h_.end(), 0.0);
    std::fill(u_.begin(), u_.end(), 0.0);
    start_at_least(std::max(1.0, std::sqrt(kappa)));
    found = newton(problem, kappa, kSlow);
  }
  std::copy_n(h_.data(), size, h);
  std::copy_n(u_.data(), size, u);
  return found;
}

}  // namespace lcp::friction
