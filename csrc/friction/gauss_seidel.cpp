#include "friction/gauss_seidel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "friction/single_contact.h"
#include "interrupt/checkpoint.h"

namespace lcp::friction {

GaussSeidel::GaussSeidel(int contacts, int rows) : u_(3 * contacts + rows) {}

void GaussSeidel::sweep(const Impulses& problem, int sweeps, double* h) {
  const int size = problem.size(), contacts = problem.contacts, count = contacts + problem.rows;
  problem.velocities(h, u_.data());
  const auto set = [&](int i, double impulse) {
    const double change = impulse - h[i];
    h[i] = impulse;
    if (change == 0) return;
    const double* const row = problem.W + static_cast<std::size_t>(i) * size;  // W is symmetric
    for (int j = 0; j < size; ++j) u_[j] += row[j] * change;
  };
  interrupt::Pace pace;
  for (int s = 0; s < sweeps; ++s) {
    pace.spend(std::int64_t{size} * size);
    for (int c = 0; c < count; ++c) {
      const int k = s % 2 == 0 ? c : count - 1 - c, first = 3 * k;
      if (k >= contacts) {
        const int i = k + 2 * contacts, r = k - contacts;
        const double d = problem.W[static_cast<std::size_t>(i) * size + i];
        if (u_[i] == 0) continue;
        // A row that moves nothing, d = 0, goes to a bound.
        const double impulse = std::min(std::max(h[i] - u_[i] / d, problem.lower[r]), problem.upper[r]);
        if (std::isfinite(impulse)) set(i, impulse);
        continue;
      }
      const double* rows = problem.W + static_cast<std::size_t>(first) * size;
      double W[9], q[3], g[3];
      for (int i = 0; i < 3; ++i) {
        q[i] = u_[first + i];
        for (int j = 0; j < 3; ++j) {
          W[3 * i + j] = rows[static_cast<std::size_t>(i) * size + first + j];
          q[i] -= W[3 * i + j] * h[first + j];
        }
      }
      solve_one_contact(W, 3, q, problem.mu[k], g);
      for (int j = 0; j < 3; ++j) set(first + j, g[j]);
    }
  }
}

}  // namespace lcp::friction
