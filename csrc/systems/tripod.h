// The tripod of include/lcp/physics/tripod.h.
#pragma once

#include "systems/taped_adjoint.h"

namespace lcp::systems::LCP_ISA {

/// State (x, y, theta, v_x, v_y, omega), and behind it numbers that a step reports but no step reads: the friction
/// (f_x, f_y) on each support, and the normal forces. Input (u_x, u_y, u_theta), parameters (mass, inertia, dt, mu,
/// gravity, com_height, then x and y of each support), pairs (lambda_1, lambda_2, lambda_3, sigma).
///   T: the type of the numbers in memory.
template <class T>
struct Tripod {
  static constexpr int kSupports = 3;
  static constexpr int kReported = 3 * kSupports, kStates = 6 + kReported, kInputs = 3, kParameters = 6 + 2 * kSupports;
  static constexpr bool kHasConstantMatrix = false;

  static constexpr bool fits(std::int64_t pairs) { return pairs >= 3 * kSupports && pairs % kSupports == 0; }
  static constexpr int pairs_of(int n) { return n; }

  template <class R>
  struct Planar {
    R x, y;
  };

  template <class R>
  struct Start {
    R mass, inertia, dt, mu;
    R pose[3], free[3];
    Planar<R> arm[kSupports];
    R rest[kSupports];           // the loads without friction
    Planar<R> shift[kSupports];  // the change of the loads by the friction forces' sum
  };

  // The loads N are those with sum_i N_i = m g and sum_i N_i arm_i = -h sum_i f_i, by Cramer's rule.
  template <class R>
  LCP_INLINE static Start<R> start(int, const V*, const R* parameters, const R* state, const R* u) {
    const R &mass = parameters[0], &inertia = parameters[1], &dt = parameters[2], &height = parameters[5];
    const R of_mass = dt / mass;
    const R c = cosine(state[2]), s = sine(state[2]);
    const R *const r = parameters + 6, *const v = state + 3;
    const auto arm = [&](int i) LCP_INLINE_LAMBDA {
      return Planar<R>{c * r[2 * i] - s * r[2 * i + 1], s * r[2 * i] + c * r[2 * i + 1]};
    };
    const Planar<R> a = arm(0), b = arm(1), d = arm(2);
    const R area = (b.x - a.x) * (d.y - a.y) - (d.x - a.x) * (b.y - a.y);
    const R weight = mass * parameters[4] / area, lever = height / area;
    const auto rest = [&](const Planar<R>& j, const Planar<R>& k)
                          LCP_INLINE_LAMBDA { return weight * (j.x * k.y - k.x * j.y); };
    const auto shift = [&](const Planar<R>& j, const Planar<R>& k) LCP_INLINE_LAMBDA {
      return Planar<R>{lever * (k.y - j.y), lever * (j.x - k.x)};
    };
    return {mass,
            inertia,
            dt,
            parameters[3],
            {state[0], state[1], state[2]},
            {v[0] + of_mass * u[0], v[1] + of_mass * u[1], v[2] + dt / inertia * u[2]},
            {a, b, d},
            {rest(b, d), rest(d, a), rest(a, b)},
            {shift(b, d), shift(d, a), shift(a, b)}};
  }

  LCP_INLINE static int directions(int n) { return n / kSupports - 1; }

  // D: 2 x n, the directions of the forces of all supports, and 0 for sigma.
  LCP_INLINE static void matrix(int n, const Start<V>& start, const V* D, V* M) {
    const int forces = directions(n) * kSupports, of_each = directions(n);
    const V linear = start.dt / start.mass, angular = start.dt / start.inertia;
    const V *const D_x = D, *const D_y = D + n;
    const auto moment = [&](int j) LCP_INLINE_LAMBDA {
      const Planar<V>& arm = start.arm[j / of_each];
      return arm.x * D_y[j] - arm.y * D_x[j];
    };
    for (int i = 0; i < forces; ++i) {
      const V turn = angular * moment(i);
      for (int j = 0; j < forces; ++j) {
        M[i * n + j] = linear * (D_x[i] * D_x[j] + D_y[i] * D_y[j]) + turn * moment(j);
      }
    }
    for (int k = 0; k < kSupports; ++k) {
      for (int j = 0; j < forces; ++j) {
        const V shift = start.shift[k].x * D_x[j] + start.shift[k].y * D_y[j];
        const bool own = j / of_each == k;
        M[(forces + k) * n + j] = start.mu * shift - (own ? 1.0 : 0.0);
        M[j * n + forces + k] = own ? 1.0 : 0.0;
      }
      for (int j = forces; j < n; ++j) M[(forces + k) * n + j] = 0;
    }
  }

  // The largest |v_x| + |v_y| of a support without friction.
  template <class R>
  LCP_INLINE static V largest_speed(const Start<R>& start) {
    V speed = 0;
    for (const Planar<R>& arm : start.arm) {
      const V v_x = value_of(start.free[0]) - value_of(start.free[2]) * value_of(arm.y);
      const V v_y = value_of(start.free[1]) + value_of(start.free[2]) * value_of(arm.x);
      speed = stdx::max(speed, stdx::abs(v_x) + stdx::abs(v_y));
    }
    return speed;
  }

  // The effect of the impulses z. Its numbers are on the tape where the numbers that they depend on are.
  template <class R, class Z>
  struct Motion {
    Planar<Z> friction[kSupports];
    R normal[kSupports], velocity[3];
  };
  template <class R, class Z>
  LCP_INLINE static Motion<R, Z> motion(int n, const Start<R>& start, const V* D, const Z* z) {
    const int of_each = directions(n);
    const auto friction = [&](int i) LCP_INLINE_LAMBDA {
      const Z* const lambda = z + i * of_each;
      Planar<Z> sum = {lambda[0] * D[0], lambda[0] * D[n]};
      for (int j = 1; j < of_each; ++j) sum = {sum.x + lambda[j] * D[j], sum.y + lambda[j] * D[n + j]};
      return sum;
    };
    const Planar<Z> f[kSupports] = {friction(0), friction(1), friction(2)};
    const Planar<Z> force = {f[0].x + f[1].x + f[2].x, f[0].y + f[1].y + f[2].y};
    const auto moment = [&](int i) LCP_INLINE_LAMBDA { return start.arm[i].x * f[i].y - start.arm[i].y * f[i].x; };
    const auto normal = [&](int i) LCP_INLINE_LAMBDA {
      return start.rest[i] + (start.shift[i].x * force.x + start.shift[i].y * force.y);
    };
    const R linear = start.dt / start.mass;
    return {{f[0], f[1], f[2]},
            {normal(0), normal(1), normal(2)},
            {start.free[0] + linear * force.x, start.free[1] + linear * force.y,
             start.free[2] + start.dt / start.inertia * (moment(0) + moment(1) + moment(2))}};
  }

  template <class R, class Z, class Use>
  LCP_INLINE static void pairs(int n, const Start<R>& start, const V* D, const Z* z, const Use& use) {
    const int of_each = directions(n), forces = of_each * kSupports;
    const Motion<R, Z> end = motion(n, start, D, z);
    for (int i = 0; i < kSupports; ++i) {
      const Z& sigma = z[forces + i];
      const R v_x = end.velocity[0] - end.velocity[2] * start.arm[i].y;
      const R v_y = end.velocity[1] + end.velocity[2] * start.arm[i].x;
      Z sum = z[i * of_each];
      for (int j = 0; j < of_each; ++j) {
        use(i * of_each + j, (v_x * D[j] + v_y * D[n + j]) + sigma);
        if (j > 0) sum = sum + z[i * of_each + j];
      }
      use(forces + i, start.mu * end.normal[i] - sum);
    }
  }

  // If two supports stick, the whole block is at rest: exactly, and not up to the round-off of its forces. The forces
  // on a block at rest are not unique, so that the round-off of z, in numbers of type T, may leave a slip to a support
  // that sticks.
  template <class R, class Use>
  LCP_INLINE static void advance(int n, const Start<R>& start, const V* D, const R* z, const R*, bool is_smoothed,
                                 const Use& use) {
    const int forces = directions(n) * kSupports;
    const Motion<R, R> end = motion(n, start, D, z);
    const V zero = 0;
    const V round_off = kRoundOff<T> * largest_speed(start);
    V sticking = 0;
    for (int i = 0; i < kSupports; ++i) {
      const V limit = value_of(start.mu) * value_of(end.normal[i]);
      stdx::where(value_of(z[forces + i]) <= round_off && limit > zero, sticking) += V(1);
    }
    const Mask<V> rests = sticking >= V(2);
    for (int i = 0; i < 3; ++i) {
      const R velocity = held(rests, end.velocity[i], is_smoothed);
      use(i, start.pose[i] + start.dt * velocity);
      use(3 + i, velocity);
    }
    for (int i = 0; i < kSupports; ++i) {
      use(6 + 2 * i, end.friction[i].x);
      use(7 + 2 * i, end.friction[i].y);
      use(6 + 2 * kSupports + i, end.normal[i]);
    }
  }

  using Adjoint = TapedAdjoint<Tripod>;
};

}  // namespace lcp::systems::LCP_ISA
