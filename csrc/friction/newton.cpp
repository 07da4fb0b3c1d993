#include "friction/newton.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lcp::friction {
namespace {

constexpr int kMemory = 4;     // steps that the nonmonotone line search looks back at
constexpr int kHalvings = 10;  // of a step, at most
constexpr double kDecrease = 1e-3;
// Near the goal, by this factor, the method stops when a few steps have not come nearer.
constexpr double kNear = 100;
constexpr int kStalled = 3;

}  // namespace

Newton::Newton(int contacts)
    : lu_(3 * contacts, linalg::Pivoting::kPartial),
      linear_(contacts),
      F_(3 * contacts),
      u_(3 * contacts),
      step_(3 * contacts),
      change_(3 * contacts),
      trial_(3 * contacts),
      trial_u_(3 * contacts),
      best_(3 * contacts),
      x_(3 * contacts) {
  touching_.reserve(contacts);
}

void Newton::velocities(const Impulses& problem, const Proximal& proximal, const double* h, double* u) const {
  problem.velocities(h, u);
  if (proximal.weight == 0) return;
  for (int i = 0; i < problem.size(); ++i) u[i] += proximal.weight * (h[i] - proximal.center[i]);
}

// F and, if asked for, its derivative. Returns |F|.
double Newton::evaluate(const Impulses& problem, Equation equation, const double* h, const double* u, bool linearize) {
  double sum = 0;
  for (int k = 0; k < problem.contacts; ++k) {
    const double *h_k = h + 3 * k, *u_k = u + 3 * k, mu = problem.mu[k];
    const double z[3] = {h_k[0] - u_k[0], h_k[1] - u_k[1], h_k[2] - u_k[2]};
    const double slip = std::sqrt(z[0] * z[0] + z[1] * z[1]);
    const double radius = mu * std::max(0.0, equation == Equation::kJeanMoreau ? h_k[2] : z[2]);
    const bool pressed = z[2] > 0, sticks = radius > 0 && slip <= radius;
    const double t[2] = {slip > 0 ? z[0] / slip : 0, slip > 0 ? z[1] / slip : 0};
    double* F = F_.data() + 3 * k;
    F[2] = pressed ? u_k[2] : h_k[2];
    for (int i = 0; i < 2; ++i) F[i] = sticks ? u_k[i] : h_k[i] - radius * t[i];
    sum += F[0] * F[0] + F[1] * F[1] + F[2] * F[2];
    if (!linearize) continue;
    Linear& at = linear_[k];
    at = {{{0, 0, 0}, {0, 0, 0}, {0, 0, pressed ? 1. : 0.}},
          {{0, 0, 0}, {0, 0, 0}, {0, 0, pressed ? 0. : 1.}},
          !pressed && radius == 0};
    for (int i = 0; i < 2; ++i) {
      if (sticks) {
        at.C[i][i] = 1;
        continue;
      }
      at.D[i][i] = 1;
      if (radius == 0) continue;
      for (int j = 0; j < 2; ++j) {
        const double across = radius / slip * ((i == j ? 1 : 0) - t[i] * t[j]);
        at.C[i][j] = across;
        at.D[i][j] -= across;
      }
      at.D[i][2] = -mu * t[i];
      if (equation == Equation::kAlartCurnier) at.C[i][2] = mu * t[i];
    }
  }
  return std::sqrt(sum);
}

// step_ := the Newton step. Separate contacts have h = 0 after it; the others solve a linear system. False where that
// is singular.
bool Newton::step(const Impulses& problem, double regularization) {
  const int size = problem.size();
  touching_.clear();
  bool moved = false;  // whether a separate contact had an impulse
  for (int k = 0; k < problem.contacts; ++k) {
    if (!linear_[k].separate) {
      touching_.push_back(k);
      continue;
    }
    for (int i = 3 * k; i < 3 * k + 3; ++i) {
      step_[i] = -F_[i];
      moved = moved || F_[i] != 0;
    }
  }
  const int unknowns = 3 * static_cast<int>(touching_.size());
  double* matrix = lu_.matrix(unknowns);
  for (int a = 0; a < unknowns / 3; ++a) {
    const int k = touching_[a];
    const Linear& at = linear_[k];
    const double* W_k = problem.W + static_cast<std::size_t>(3) * k * size;
    double pushed[3] = {0, 0, 0};  // the change of u_k by the contacts that become separate
    if (moved) {
      for (int s = 0; s < problem.contacts; ++s) {
        if (!linear_[s].separate) continue;
        for (int i = 0; i < 3; ++i) {
          for (int j = 3 * s; j < 3 * s + 3; ++j) pushed[i] += W_k[static_cast<std::size_t>(i) * size + j] * step_[j];
        }
      }
    }
    for (int i = 0; i < 3; ++i) {
      double* row = matrix + static_cast<std::size_t>(3 * a + i) * unknowns;
      std::fill_n(row, unknowns, 0.0);
      x_[3 * a + i] = -F_[3 * k + i];
      for (int l = 0; l < 3; ++l) {
        const double c = at.C[i][l];
        if (c == 0) continue;
        const double* W_row = W_k + static_cast<std::size_t>(l) * size;
        for (int s = 0; s < unknowns / 3; ++s) {
          const double* block = W_row + 3 * static_cast<std::size_t>(touching_[s]);
          for (int j = 0; j < 3; ++j) row[3 * s + j] += c * block[j];
        }
        row[3 * a + l] += c * regularization;
        x_[3 * a + i] -= c * pushed[l];
      }
      for (int j = 0; j < 3; ++j) row[3 * a + j] += at.D[i][j];
    }
  }
  if (lu_.factor(0) < unknowns) return false;
  lu_.solve(x_.data());
  for (int a = 0; a < unknowns; ++a) step_[3 * touching_[a / 3] + a % 3] = x_[a];
  return std::all_of(step_.begin(), step_.begin() + size, [](double x) { return std::isfinite(x); });
}

double Newton::solve(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, double goal,
                     double* h, std::int64_t& steps, std::int64_t most) {
  const int size = problem.size();
  std::array<double, kMemory> norms = {};
  double best = std::numeric_limits<double>::infinity();
  int stalled = 0;
  for (int k = 0;; ++k) {
    velocities(problem, proximal, h, u_.data());
    const double norm = evaluate(problem, settings.equation, h, u_.data(), true);
    const double residual = problem.residual(h, u_.data());
    ++stalled;
    if (residual < best) {
      best = residual;
      std::copy_n(h, size, best_.data());
      stalled = 0;
    }
    if (best <= goal || k == settings.max_steps || steps >= most) break;
    if ((best <= kNear * goal && stalled > kStalled) || !std::isfinite(norm)) break;
    if (!step(problem, proximal.weight + settings.regularization)) break;
    ++steps;
    double length = 1;
    if (settings.line_search) {
      norms[k % kMemory] = norm;
      const double largest = *std::max_element(norms.begin(), norms.end());
      for (int i = 0; i < size; ++i) trial_[i] = h[i] + step_[i];
      velocities(problem, proximal, trial_.data(), trial_u_.data());
      for (int i = 0; i < size; ++i) change_[i] = trial_u_[i] - u_[i];  // u is affine in h
      for (int halving = 0; halving < kHalvings; ++halving, length /= 2) {
        for (int i = 0; i < size; ++i) {
          trial_[i] = h[i] + length * step_[i];
          trial_u_[i] = u_[i] + length * change_[i];
        }
        if (evaluate(problem, settings.equation, trial_.data(), trial_u_.data(), false) <=
            (1 - kDecrease * length) * largest) {
          break;
        }
      }
    }
    for (int i = 0; i < size; ++i) h[i] += length * step_[i];
  }
  if (std::isfinite(best)) std::copy_n(best_.data(), size, h);
  return best;
}

}  // namespace lcp::friction
