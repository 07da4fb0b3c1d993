#include "friction/newton.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lcp::friction {

Newton::Newton(int contacts, int rows)
    : lu_(3 * contacts + rows, linalg::Pivoting::kPartial), local_(contacts), states_(rows) {
  for (std::vector<double>* const x : {&h_, &u_, &next_, &next_u_, &best_, &row_, &y_}) x->resize(3 * contacts + rows);
}

void Newton::velocities(const Impulses& problem, const Proximal& proximal, const double* h, double* u) const {
  problem.velocities(h, u);
  if (proximal.weight == 0) return;
  for (int i = 0; i < problem.size(); ++i) u[i] += proximal.weight * (h[i] - proximal.center[i]);
}

// Returns |F|, and keeps the state of each contact and row.
double Newton::evaluate(const Impulses& problem, const double* mu, double scale, const double* h, const double* u) {
  double sum = 0;
  for (int k = 0; k < problem.contacts; ++k) sum += linearize(h + 3 * k, u + 3 * k, mu[k], scale, local_[k]);
  if (problem.rows > 0) sum += evaluate_rows(problem, scale, h + 3 * problem.contacts, u + 3 * problem.contacts);
  return std::sqrt(sum);
}

double Newton::evaluate_rows(const Impulses& problem, double scale, const double* h, const double* u) {
  double sum = 0;
  for (int r = 0; r < problem.rows; ++r) {
    states_[r] = row_state(h[r], scale * u[r], problem.lower[r], problem.upper[r]);
    const double F = states_[r] == RowState::kFree    ? scale * u[r]
                     : states_[r] == RowState::kLower ? h[r] - problem.lower[r]
                                                      : h[r] - problem.upper[r];
    sum += F * F;
  }
  return sum;
}

// Sets next_ to h_ + the Newton step, the solution of the equations of all contacts with u = W next_ + q +
// regularization (next_ - h_). If `far`, the last term is regularization next_. Returns false where the equations are
// singular.
bool Newton::step(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, bool far) {
  const double regularization = settings.regularization;
  const int size = problem.size();
  int unknowns = 0;
  for (const AlartCurnier& at : local_) unknowns += at.unknowns;
  for (const RowState state : states_) unknowns += state == RowState::kFree ? 1 : 0;
  double* matrix = lu_.matrix(unknowns);
  const double shift = proximal.weight + regularization;
  int at_row = 0;
  const int rows_at = 3 * problem.contacts;
  // The part of velocity i that does not depend on the unknowns. The impulses of rows at their bounds are known.
  const auto constant_of = [&](int i, const double* row) {
    double sum = problem.q[i] - (far ? 0 : regularization) * h_[i];
    if (proximal.weight > 0) sum -= proximal.weight * proximal.center[i];
    for (int r = 0; r < problem.rows; ++r) {
      if (states_[r] == RowState::kLower) sum += row[rows_at + r] * problem.lower[r];
      if (states_[r] == RowState::kUpper) sum += row[rows_at + r] * problem.upper[r];
    }
    return sum;
  };
  // The change of a velocity, whose row of W is given, per unit of each unknown.
  const auto put = [&](const double* row, double* out) {
    for (int l = 0; l < problem.contacts; ++l, row += 3) {
      const AlartCurnier& of = local_[l];
      if (of.unknowns == 3) {
        for (int i = 0; i < 3; ++i) out[i] = row[i];
      } else if (of.unknowns == 2) {
        out[0] = problem.mu[l] * (of.t[0] * row[0] + of.t[1] * row[1]) + row[2];
        out[1] = of.t[0] * row[1] - of.t[1] * row[0];
      }
      out += of.unknowns;
    }
    for (int r = 0; r < problem.rows; ++r) {
      if (states_[r] == RowState::kFree) *out++ = row[r];
    }
  };
  for (int k = 0; k < problem.contacts; ++k) {
    const AlartCurnier& at = local_[k];
    const double* W_k = problem.W + static_cast<std::size_t>(3) * k * size;
    double constant[3];
    for (int i = 0; i < 3; ++i) constant[i] = constant_of(3 * k + i, W_k + static_cast<std::size_t>(i) * size);
    for (int r = 0; r < at.unknowns; ++r, ++at_row) {
      const bool sticks = at.unknowns == 3, across = !sticks && r == 1;
      const double* row = W_k + static_cast<std::size_t>(sticks ? r : 2) * size;
      y_[at_row] = -constant[sticks ? r : 2];
      if (across) {
        const double part = settings.scale * at.part, first = -part * at.t[1], second = part * at.t[0];
        for (int i = 0; i < size; ++i) row_[i] = first * W_k[i] + second * W_k[size + i];
        row = row_.data();
        y_[at_row] = -(first * constant[0] + second * constant[1]);
      }
      double* const out = matrix + static_cast<std::size_t>(at_row) * unknowns;
      put(row, out);
      out[at_row] += across ? settings.scale * at.part * shift + (1 - at.part) : shift;
    }
  }
  for (int r = 0; r < problem.rows; ++r) {
    if (states_[r] != RowState::kFree) continue;
    const double* const row = problem.W + static_cast<std::size_t>(rows_at + r) * size;
    y_[at_row] = -constant_of(rows_at + r, row);
    double* const out = matrix + static_cast<std::size_t>(at_row) * unknowns;
    put(row, out);
    out[at_row++] += shift;
  }
  if (lu_.factor(0) < unknowns) return false;
  lu_.solve(y_.data());
  const double* y = y_.data();
  for (int k = 0; k < problem.contacts; ++k) {
    const AlartCurnier& at = local_[k];
    impulse_of(at, problem.mu[k], y, next_.data() + 3 * static_cast<std::ptrdiff_t>(k));
    y += at.unknowns;
  }
  for (int r = 0; r < problem.rows; ++r) {
    next_[rows_at + r] = states_[r] == RowState::kFree    ? *y++
                         : states_[r] == RowState::kLower ? problem.lower[r]
                                                          : problem.upper[r];
  }
  return true;
}

double Newton::solve(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, double goal,
                     double* h, std::int64_t& steps, std::int64_t most, const double* start_mu) {
  const int size = problem.size();
  std::array<double, NewtonSettings::kMemory> norms = {};
  double best = std::numeric_limits<double>::infinity();
  int stalled = 0;
  std::copy_n(h, size, h_.data());
  velocities(problem, proximal, h_.data(), u_.data());
  double norm = evaluate(problem, start_mu != nullptr ? start_mu : problem.mu, settings.scale, h_.data(), u_.data());
  for (int k = 0;; ++k) {
    const double residual = problem.residual(h_.data(), u_.data());
    ++stalled;
    if (residual < best) {
      best = residual;
      std::copy_n(h_.data(), size, best_.data());
      stalled = 0;
    }
    if (best <= goal || k == settings.max_steps || steps >= most) break;
    if ((best <= NewtonSettings::kNear * goal && stalled > settings.patience) || !std::isfinite(norm)) break;
    const bool far = settings.share && residual > std::sqrt(settings.regularization);
    if (!step(problem, proximal, settings, far)) break;
    ++steps;
    velocities(problem, proximal, next_.data(), next_u_.data());
    norms[k % NewtonSettings::kMemory] = norm;
    const double largest = *std::max_element(norms.begin(), norms.end());
    norm = evaluate(problem, problem.mu, settings.scale, next_.data(), next_u_.data());
    double length = 1;
    for (int halving = 1; settings.line_search && halving < NewtonSettings::kHalvings; ++halving) {
      if (norm <= (1 - NewtonSettings::kDecrease * length) * largest) break;
      length /= 2;
      for (int i = 0; i < size; ++i) {
        next_[i] = (h_[i] + next_[i]) / 2;
        next_u_[i] = (u_[i] + next_u_[i]) / 2;  // u is affine in h
      }
      norm = evaluate(problem, problem.mu, settings.scale, next_.data(), next_u_.data());
    }
    h_.swap(next_);
    u_.swap(next_u_);
  }
  if (std::isfinite(best)) std::copy_n(best_.data(), size, h);
  return best;
}

}  // namespace lcp::friction
