// The derivative of compliant contact in reverse mode, see contact/derivative.h, one problem in each warp.
#pragma once

#include "contact/cuda/bodies.cuh"

namespace lcp::contact::cuda {

template <int size, class T>
__global__ void __launch_bounds__(kWarp* kWarps<size>)
    adjoint_in_warps(std::int64_t count, Problems<T> problems, Point<T> at, Point<T> g, Adjoint<T> result) {
  __shared__ WarpMemory<size> A[kWarps<size>], H[kWarps<size>];
  const int warp = threadIdx.x / kWarp;
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps<size> + warp;
  if (b >= count) return;
  const int n = problems.n, contacts = problems.contacts, rows = 3 * contacts;
  WarpBodies<size, T> bodies(problems, b, A[warp], H[warp]);
  const double v = read(at.v, b, n), y = read(at.y, b, rows);
  const double g_v = read(g.v, b, n), g_y = read(g.y, b, rows), g_gamma = read(g.gamma, b, rows);
  const Law law = bodies.law();
  const Eigen::Vector3d y_k = bodies.of_contact(y), g_gamma_k = bodies.of_contact(g_gamma);
  const Projection projection = project(y_k, law);
  Eigen::Matrix3d K = Eigen::Matrix3d::Zero();
  if (bodies.is_contact()) K = projected_compliance(y_k, projection, law);
  const Eigen::Vector3d pull = bodies.of_contact(g_y).cwiseQuotient(law.R()) + K * g_gamma_k;
  if (any_lane(isnan(v) || isnan(y)) || !bodies.load(element(problems.A, b, n * n)) || !bodies.factor(K)) {
    const bool asked = any_lane(g_v != 0 || g_y != 0 || g_gamma != 0);
    const double value = asked ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    for (T* to : {result.l, result.v_free}) write(to, b, n, value);
    for (T* to : {result.v_hat, result.R, result.gamma}) write(to, b, rows, value);
    return write(result.mu, b, contacts, value);
  }
  const double l = bodies.solve(g_v - bodies.J().to_bodies(bodies.to_rows(pull)));
  const Eigen::Vector3d Jl = bodies.of_contact(bodies.J().to_contacts(l));
  const Eigen::Vector3d c = pull + K * Jl, of_law = law_gradient(y_k, projection, law, Jl + g_gamma_k);
  const double tangent = (of_law[0] - (y_k[0] * c[0] + y_k[1] * c[1])) / 2;
  write(result.l, b, n, l);
  write(result.v_free, b, n, bodies.multiply(l));
  write(result.v_hat, b, rows, bodies.to_rows(c));
  write(result.R, b, rows, bodies.to_rows({tangent, tangent, of_law[1] - y_k[2] * c[2]}));
  write(result.gamma, b, rows, bodies.to_rows(projection.gamma));
  write(result.mu, b, contacts, of_law[2]);
}

}  // namespace lcp::contact::cuda
