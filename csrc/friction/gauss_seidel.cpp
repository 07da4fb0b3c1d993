#include "friction/gauss_seidel.h"

#include <cstddef>

#include "friction/single_contact.h"
#include "interrupt/checkpoint.h"

namespace lcp::friction {

GaussSeidel::GaussSeidel(int contacts) : u_(3 * contacts) {}

void GaussSeidel::sweep(const Impulses& problem, int sweeps, double* h) {
  const int size = problem.size(), contacts = problem.contacts;
  problem.velocities(h, u_.data());
  interrupt::Pace pace;
  for (int s = 0; s < sweeps; ++s) {
    pace.spend(std::int64_t{size} * size);
    for (int c = 0; c < contacts; ++c) {
      const int k = s % 2 == 0 ? c : contacts - 1 - c, first = 3 * k;
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
      for (int j = 0; j < 3; ++j) {
        const double change = g[j] - h[first + j];
        h[first + j] = g[j];
        if (change == 0) continue;
        const double* row = rows + static_cast<std::size_t>(j) * size;  // W is symmetric
        for (int i = 0; i < size; ++i) u_[i] += row[i] * change;
      }
    }
  }
}

}  // namespace lcp::friction
