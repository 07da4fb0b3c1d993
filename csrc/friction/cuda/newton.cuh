// The Gauss-Seidel method and Newton's method, see friction/gauss_seidel.h and friction/newton.h, in a warp.
#pragma once

#include "friction/alart_curnier.h"
#include "friction/attempt.h"
#include "friction/cuda/impulses.cuh"
#include "friction/single_contact.h"
#include "linalg/cuda/elimination.cuh"

namespace lcp::friction::cuda {

template <int size>
__device__ double sweep(const WarpImpulses<size>& problem, int sweeps, double h) {
  double u = problem.velocities(h);
  for (int s = 0; s < sweeps; ++s) {
    for (int c = 0; c < problem.contacts(); ++c) {
      const int first = 3 * (s % 2 == 0 ? c : problem.contacts() - 1 - c);
      double W[9], q[3], before[3], g[3];
      for (int i = 0; i < 3; ++i) before[i] = from_lane(h, first + i);
      for (int i = 0; i < 3; ++i) {
        q[i] = from_lane(u, first + i);
        for (int j = 0; j < 3; ++j) {
          W[3 * i + j] = problem.W(first + i, first + j);
          q[i] -= W[3 * i + j] * before[j];
        }
      }
      solve_one_contact(W, 3, q, from_lane(problem.mu(), first / 3), g);
      for (int j = 0; j < 3; ++j) {
        if (lane() == first + j) h = g[j];
        if (problem.exists()) u = multiply_add(problem.W(lane(), first + j), g[j] - before[j], u);
      }
    }
  }
  return h;
}

template <int size>
class WarpNewton {
 public:
  __device__ WarpNewton(const WarpImpulses<size>& problem) : problem_(problem) {}

  // Solves as Newton::solve without a proximal term does: returns the step with the least residual.
  __device__ double solve(const NewtonSettings& settings, double goal, double h, std::int64_t& steps) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double norms[NewtonSettings::kMemory] = {};
    double best = infinity, best_h = h;
    int stalled = 0;
    double u = problem_.velocities(h);
    double norm = evaluate(settings.scale, h, u);
    for (int k = 0;; ++k) {
      const double residual = problem_.residual(h, u);
      ++stalled;
      if (residual < best) {
        best = residual;
        best_h = h;
        stalled = 0;
      }
      if (best <= goal || k == settings.max_steps) break;
      if ((best <= NewtonSettings::kNear * goal && stalled > settings.patience) || !is_finite(norm)) break;
      const bool far = settings.share && residual > sqrt(settings.regularization);
      double next = step(settings, far, h);
      if (any_lane(!is_finite(next))) break;
      ++steps;
      double next_u = problem_.velocities(next);
#pragma unroll
      for (int m = 0; m < NewtonSettings::kMemory; ++m) {
        if (m == k % NewtonSettings::kMemory) norms[m] = norm;
      }
      double largest = 0;
      for (const double one : norms) largest = stdx::max(largest, one);
      norm = evaluate(settings.scale, next, next_u);
      double length = 1;
      for (int halving = 1; settings.line_search && halving < NewtonSettings::kHalvings; ++halving) {
        if (norm <= (1 - NewtonSettings::kDecrease * length) * largest) break;
        length /= 2;
        next = (h + next) / 2;
        next_u = (u + next_u) / 2;
        norm = evaluate(settings.scale, next, next_u);
      }
      h = next;
      u = next_u;
    }
    return best_h;
  }

 private:
  // Returns |F|, and keeps the equations of each contact in its lane.
  __device__ double evaluate(double scale, double h, double u) {
    double square = 0;
    problem_.for_contacts(
        h, u, [&](const double* h_k, const double* u_k) { square = linearize(h_k, u_k, problem_.mu(), scale, at_); });
    return sqrt(sum_of_lanes(square));
  }

  // The solution of the equations of all contacts. Lane 3 k + r has equation and unknown r of contact k, or 1 = 1 where
  // there is none.
  __device__ double step(const NewtonSettings& settings, bool far, double h) {
    const int k = problem_.exists() ? lane() / 3 : 0, r = lane() % 3;
    const int unknowns = from_lane(at_.unknowns, k);
    const double t[2] = {from_lane(at_.t[0], k), from_lane(at_.t[1], k)}, part = from_lane(at_.part, k);
    const bool counts = problem_.exists() && r < unknowns, sticks = unknowns == 3, across = !sticks && r == 1;
    // The row is a sum of rows of W, with these weights.
    double weights[3];
    for (int i = 0; i < 3; ++i) weights[i] = i == (sticks ? r : 2) ? 1.0 : 0.0;
    if (across) {
      weights[0] = -settings.scale * part * t[1];
      weights[1] = settings.scale * part * t[0];
      weights[2] = 0;
    }
    const double constant = problem_.q() - (far ? 0.0 : settings.regularization) * h;
    double right = 0;
    for (int i = 0; i < 3; ++i) right -= weights[i] * from_lane(constant, 3 * k + i);
    const double shift =
        across ? settings.scale * part * settings.regularization + (1 - part) : settings.regularization;
    double row[size];
#pragma unroll
    for (int l = 0; l < (size + 2) / 3; ++l) {
      double entry[3] = {0, 0, 0}, turned[3] = {0, 0, 0};
      if (l < problem_.contacts()) {
        for (int j = 0; counts && j < 3; ++j) {
          for (int i = 0; i < 3; ++i) entry[j] += weights[i] * problem_.W(3 * k + i, 3 * l + j);
        }
        const int of_l = from_lane(at_.unknowns, l);
        const double t_l[2] = {from_lane(at_.t[0], l), from_lane(at_.t[1], l)}, mu_l = from_lane(problem_.mu(), l);
        if (of_l == 3) {
          for (int j = 0; j < 3; ++j) turned[j] = entry[j];
        } else if (of_l == 2) {
          turned[0] = mu_l * (t_l[0] * entry[0] + t_l[1] * entry[1]) + entry[2];
          turned[1] = t_l[0] * entry[1] - t_l[1] * entry[0];
        }
      }
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        if (3 * l + j < size) {
          const bool own = lane() == 3 * l + j;
          row[3 * l + j] = counts ? turned[j] + (own ? shift : 0.0) : own ? 1.0 : 0.0;
        }
      }
    }
    double y = 0;
    linalg::cuda::solve_system_in_warp<size>(row, counts ? right : 0.0, counts, &y);
    double h_k[3] = {0, 0, 0}, y_k[3];
    for (int i = 0; i < 3; ++i) y_k[i] = from_lane(y, 3 * k + i);
    impulse_of({unknowns, {t[0], t[1]}, part}, from_lane(problem_.mu(), k), y_k, h_k);
    const double found = r == 0 ? h_k[0] : r == 1 ? h_k[1] : h_k[2];
    return problem_.exists() ? found : 0.0;
  }

  const WarpImpulses<size>& problem_;
  AlartCurnier at_ = {};
};

}  // namespace lcp::friction::cuda
