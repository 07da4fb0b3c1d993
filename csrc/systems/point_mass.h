// The point mass of include/lcp/physics/point_mass.h.
#pragma once

#include "systems/numbers.h"

namespace lcp::systems::LCP_ISA {

/// State (x, y, v_x, v_y), input (u_x, u_y), parameters (mass, dt, mu, gravity, restitution), pairs (lambda_n,
/// lambda_plus, lambda_minus, gamma).
///   at_velocity: whether contacts follow Stabilization::kVelocity; otherwise they follow kPosition.
template <bool at_velocity>
struct PointMass {
  static constexpr int kStates = 4, kReported = 0, kInputs = 2, kParameters = 5;
  static constexpr bool kHasConstantMatrix = true;

  enum Pair { kNormal, kPlus, kMinus, kGamma, kPairs };
  static constexpr bool fits(std::int64_t pairs) { return pairs == kPairs; }
  static constexpr int pairs_of(int) { return kPairs; }

  template <class R>
  struct Start {
    R k;  // 1 / mass
    R dt, mu, gravity, restitution, x, y, v_y, u_x, u_y, free_x, free_y;
    Mask<V> touches, falls;
    R c;  // n'v_next + c >= 0

    LCP_INLINE Start(const R* parameters, const R* state, const R* u)
        : k(V(1) / parameters[0]),
          dt(parameters[1]),
          mu(parameters[2]),
          gravity(parameters[3]),
          restitution(parameters[4]),
          x(state[0]),
          y(state[1]),
          v_y(state[3]),
          u_x(u[0]),
          u_y(u[1]),
          free_x(state[2] + dt * (k * u_x)),
          free_y(v_y + dt * (k * u_y - gravity)),
          touches(value_of(y) <= V(0)),
          falls(value_of(v_y) <= V(0)),
          c(limit()) {}

   private:
    LCP_INLINE R limit() const {
      if constexpr (at_velocity) {
        const R out_of_reach =  // the condition holds without an impulse
            choose(value_of(free_y) <= V(0), -free_y, V(0)) + V(1);
        return choose(touches, restitution * choose(falls, v_y, V(0)), out_of_reach);
      } else {
        return y / dt;
      }
    }
  };

  template <class R>
  LCP_INLINE static Start<R> start(int, const V*, const R* parameters, const R* state, const R* u) {
    return {parameters, state, u};
  }

  LCP_INLINE static void matrix(int, const Start<V>& start, const V*, V* M) {
    const V &k = start.k, zero = 0, one = 1;
    const V rows[kPairs][kPairs] = {
        {k, zero, zero, zero}, {zero, k, -k, one}, {zero, -k, k, one}, {start.mu, -one, -one, zero}};
    for (int i = 0; i < kPairs; ++i) {
      for (int j = 0; j < kPairs; ++j) M[i * kPairs + j] = rows[i][j];
    }
  }

  template <class R, class Z, class Use>
  LCP_INLINE static void pairs(int, const Start<R>& start, const V*, const Z* z, const Use& use) {
    const R slide = start.free_x + start.k * (z[kPlus] - z[kMinus]);
    use(kNormal, start.free_y + start.c + start.k * z[kNormal]);
    use(kPlus, slide + z[kGamma]);
    use(kMinus, z[kGamma] - slide);
    use(kGamma, start.mu * z[kNormal] - (z[kPlus] + z[kMinus]));
  }

  // The end of a step. In contact, w_n = 0 and v_y is exactly -c; in flight, lambda_n = 0. Where both are 0, the
  // derivative is that of lambda_n.
  template <class R>
  struct End {
    Mask<V> pressed, flies, sticks;
    R v_x, v_y;

    LCP_INLINE End(const Start<R>& start, const R* z, const R* w, bool is_smoothed)
        : pressed(value_of(z[kNormal]) > V(0)),
          flies(value_of(z[kNormal]) == V(0) && value_of(w[kNormal]) > V(0)),
          sticks(value_of(z[kGamma]) == V(0) &&
                 (value_of(w[kGamma]) > V(0) || value_of(z[kPlus]) > V(0) || value_of(z[kMinus]) > V(0))),
          v_x(choose(flies, start.free_x, held(sticks, V(0.5) * (w[kPlus] - w[kMinus]), is_smoothed))),
          v_y(choose(pressed, w[kNormal] - start.c, start.free_y + start.k * z[kNormal])) {}
  };

  template <class R, class Use>
  LCP_INLINE static void advance(int, const Start<R>& start, const V*, const R* z, const R* w, bool is_smoothed,
                                 const Use& use) {
    const End<R> end(start, z, w, is_smoothed);
    use(0, start.x + start.dt * end.v_x);
    if constexpr (at_velocity) {
      use(1, start.y + start.dt * end.v_y);
    } else {
      use(1, start.dt * w[kNormal]);  // w_n = y_next / dt, which is never negative
    }
    use(2, end.v_x);
    use(3, end.v_y);
  }

  // The derivatives of the lines above, in reverse. of_a: the derivative in a.
  class Adjoint {
   public:
    static constexpr std::size_t workspace(int) { return 0; }

    LCP_INLINE Adjoint(int, const V* parameters, const V* state, const V* u, const V*, const V* z, const V* w,
                       bool is_smoothed, double*)
        : start_(parameters, state, u),
          end_(start_, z, w, is_smoothed),
          holds_(is_smoothed ? Mask<V>(false) : end_.sticks),
          z_(z),
          w_(w) {}

    // l: the gradient of the next state. Adds to the gradients of z and w.
    LCP_INLINE void advance(const V* l, V* of_z, V* of_w) {
      const V zero = 0, v_x = l[2] + start_.dt * l[0];
      of_x_ = l[0];
      of_dt_ = end_.v_x * l[0];
      V v_y = l[3];
      if constexpr (at_velocity) {
        v_y += start_.dt * l[1];
        of_y_ = l[1];
        of_dt_ += end_.v_y * l[1];
      } else {
        of_w[kNormal] += start_.dt * l[1];
        of_y_ = zero;
        of_dt_ += w_[kNormal] * l[1];
      }
      const V by_c = choose(end_.pressed, v_y, zero), by_force = choose(end_.pressed, zero, v_y);
      of_w[kNormal] += by_c;
      of_c_ = -by_c;
      of_free_y_ = by_force;
      of_z[kNormal] += start_.k * by_force;
      of_k_ = z_[kNormal] * by_force;
      of_free_x_ = choose(end_.flies, v_x, zero);
      const V half = choose(end_.flies || holds_, zero, V(0.5) * v_x);
      of_w[kPlus] += half;
      of_w[kMinus] -= half;
    }

    // t: the gradient of the pairs, for this z.
    LCP_INLINE void pairs(const V* z, const V* t, V* of_parameters, V* of_state, V* of_u) {
      const V zero = 0, slide = t[kPlus] - t[kMinus];
      of_free_x_ += slide;
      of_free_y_ += t[kNormal];
      of_c_ += t[kNormal];
      of_k_ += (z[kPlus] - z[kMinus]) * slide + z[kNormal] * t[kNormal];
      V of_v_y = zero;
      of_parameters[4] = zero;
      if constexpr (at_velocity) {
        const V by_rebound = choose(start_.touches && start_.falls, of_c_, zero);
        of_parameters[4] = start_.v_y * by_rebound;
        of_v_y = start_.restitution * by_rebound;
        of_free_y_ -= choose(!start_.touches && start_.free_y <= zero, of_c_, zero);
      } else {
        const V by_y = of_c_ / start_.dt;
        of_y_ += by_y;
        of_dt_ -= start_.c * by_y;
      }
      const V by_k = start_.u_x * of_free_x_ + start_.u_y * of_free_y_, dt_k = start_.dt * start_.k;
      of_k_ += start_.dt * by_k;
      of_parameters[0] = -(start_.k * start_.k) * of_k_;
      of_parameters[1] = of_dt_ + start_.k * by_k - start_.gravity * of_free_y_;
      of_parameters[2] = z[kNormal] * t[kGamma];
      of_parameters[3] = -start_.dt * of_free_y_;
      of_state[0] = of_x_;
      of_state[1] = of_y_;
      of_state[2] = of_free_x_;
      of_state[3] = of_v_y + of_free_y_;
      of_u[0] = dt_k * of_free_x_;
      of_u[1] = dt_k * of_free_y_;
    }

   private:
    Start<V> start_;
    End<V> end_;
    Mask<V> holds_;  // whether v_x has no derivative
    const V *z_, *w_;
    V of_x_, of_y_, of_free_x_, of_free_y_, of_c_, of_k_, of_dt_;
  };
};

}  // namespace lcp::systems::LCP_ISA
