// The derivative of contact with Coulomb friction in reverse mode, see friction/derivative.h, one problem in each warp.
#pragma once

#include "friction/cuda/solve.cuh"
#include "friction/linear_law.h"
#include "linalg/cuda/basis.cuh"

namespace lcp::friction::cuda {

// The smallest reciprocal of a condition number with which a matrix counts as regular without a search for its rank.
inline constexpr double kClearlyRegular = 1e-6;

// Row i of the linear law of this lane's contact.
struct LawRow {
  double C[3] = {}, D[3] = {}, E = 0;
};

template <int size, class T>
__global__ void __launch_bounds__(kWarp* kWarps<size>)
    adjoint_in_warps(std::int64_t count, Problems<T> problems, Point<T> at, Point<T> g, double rank_tolerance, T* a,
                     T* c, T* of_mu) {
  __shared__ WarpMemory<size> factors[kWarps<size>], compliances[kWarps<size>], laws[kWarps<size>];
  const int warp = threadIdx.x / kWarp;
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps<size> + warp;
  if (b >= count) return;
  const int n = problems.n, contacts = problems.contacts, rows = 3 * contacts;
  WarpMemory<size>&W = compliances[warp], &N = laws[warp];
  WarpProblem<size, T> problem(problems, b, factors[warp], W);
  const double v = read(at.v, b, n), gamma = read(at.gamma, b, rows), u = read(at.u, b, rows);
  const double g_v = read(g.v, b, n), g_gamma = read(g.gamma, b, rows), g_u = read(g.u, b, rows);
  if (any_lane(!is_finite(v) || !is_finite(gamma) || !is_finite(u)) || !problem.factor(element(problems.A, b, n * n))) {
    const bool asked = any_lane(g_v != 0 || g_gamma != 0 || g_u != 0);
    const double value = asked ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    write(a, b, n, value);
    write(c, b, rows, value);
    return write(of_mu, b, contacts, value);
  }
  const WarpJacobian<size, T>& J = problem.J();
  const WarpImpulses<size> impulses = problem.impulses(v, 0);
  const bool exists = impulses.exists();
  const int k = exists ? lane() / 3 : 0, i = lane() % 3, first = 3 * k;

  // The law of this lane's contact, of which the lane keeps row i.
  double h_k[3], u_k[3];
  const double h = gamma / impulses.push_of_row(), u_here = u / impulses.length_of_row();
  for (int l = 0; l < 3; ++l) {
    h_k[l] = from_lane(h, first + l);
    u_k[l] = from_lane(u_here, first + l);
  }
  const double mu = from_lane(impulses.mu(), k);
  const double largest_number = largest_of_lanes(exists ? stdx::max(stdx::abs(h), stdx::abs(u_here)) : 0.0);
  const double rounding = impulses.rounding() / from_lane(impulses.weight(), k);
  const State state = state_of(h_k, u_k, mu, stdx::max(rank_tolerance * largest_number, rounding));
  const bool touches = exists && state != State::kApart;
  const unsigned touching = __ballot_sync(kAllLanes, touches);
  LawRow law;
  if (touches) {
    const LinearLaw all(state == State::kStick, h_k, u_k, mu);
#pragma unroll
    for (int m = 0; m < 3; ++m) {
      if (m != i) continue;
      law.E = all.E[m];
      for (int l = 0; l < 3; ++l) {
        law.C[l] = all.C[m][l];
        law.D[l] = all.D[m][l];
      }
    }
  }
  double sum = 0;
  for (int j = 0; touches && j < rows; ++j) {
    double entry = 0;
    if ((touching >> j & 1) != 0) {
      for (int l = 0; l < 3; ++l) entry += law.C[l] * W.at(first + l, j);
      if (j / 3 == k) entry += j % 3 == 0 ? law.D[0] : j % 3 == 1 ? law.D[1] : law.D[2];
    }
    N.entry(lane(), j) = entry;
    sum += stdx::abs(entry);
  }
  const double row_scale = sum > 0 ? 1 / sum : 1.0;
  for (int j = 0; touches && j < rows; ++j) N.entry(lane(), j) *= row_scale;
  __syncwarp();

  const double push = J.to_bodies(g_u) + g_v;
  const double y = J.to_contacts(problem.A().solve(push)) + g_gamma;

  // Solves N' p = y, first in the units of h.
  double right = touches ? impulses.push_of_row() * y : 0.0;
  double row[size], largest = 0;
#pragma unroll
  for (int j = 0; j < size; ++j) {
    const bool counts = touches && (touching >> j & 1) != 0;
    row[j] = counts ? N.at(j, lane()) : j == lane() ? 1.0 : 0.0;
    if (counts) largest = stdx::max(largest, stdx::abs(row[j]));
  }
  double p = 0;
  const double growth = linalg::cuda::solve_system_in_warp<size>(row, right, touches, &p);
  if (!touches) p = 0;
  if (any_lane(!is_finite(p)) || !(growth * largest_of_lanes(largest) * kClearlyRegular < 1)) {
    // W is not needed any more; N' takes its place.
    WarpBasis<size> basis(rows, touches, W, N);
    __syncwarp();
    for (int j = 0; exists && j < rows; ++j) {
      const bool counts = touches && (touching >> j & 1) != 0;
      W.entry(lane(), j) = counts ? N.at(j, lane()) : 0.0;
    }
    basis.start();
    const int rank = basis.eliminate(rank_tolerance);
    p = rank == __popc(touching) ? basis.solve(right) : rank > 0 ? basis.solve_carefully(right, rank) : 0.0;
    if (!touches) p = 0;
  }
  p *= row_scale;

  // The transposed products of this lane's row with the law of its contact.
  double back[3], mu_part = touches ? law.E * p : 0.0;
  for (int l = 0; l < 3; ++l) back[l] = touches ? law.C[l] * p : 0.0;
  double pull = 0, total_mu = 0;
  for (int m = 0; m < 3; ++m) {
    double turned = 0;
    for (int l = 0; l < 3; ++l) {
      const double from = from_lane(back[l], first + m);
      if (l == i) turned = from;
    }
    pull -= turned;
    total_mu += from_lane(mu_part, (lane() < contacts ? 3 * lane() : 0) + m);
  }
  pull = exists ? pull / impulses.length_of_row() : 0.0;
  write(a, b, n, problem.A().solve(J.to_bodies(pull) + push));
  write(c, b, rows, pull + g_u);
  write(of_mu, b, contacts, impulses.is_limited() ? 0.0 : total_mu);
}

}  // namespace lcp::friction::cuda
