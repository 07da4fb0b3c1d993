// The planar block of include/lcp/physics/planar_block.h, where a sliding direction is assumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lcs/lanes.h"
#include "systems/numbers.h"

namespace lcp::systems::LCP_ISA {

/// State (v_x, v_y), and behind it numbers that a step reports but no step reads. These are the friction (f_x, f_y),
/// the sliding direction (t_x, t_y), and for the fixed-point scheme the number of passes and whether they converged, 1
/// or 0. Input (u_x, u_y), parameters (mass, dt, mu, gravity), for the fixed-point scheme also (max_passes,
/// direction_tolerance, relaxed), the last one 1 or 0. A pair for each direction; z_i is the part of v_next along it.
///
/// Since M = (m / dt) I, the LCP of a pass has the solution z_i = max(d_i.v* - S max(d_i.t, 0), 0). Only the LCP of the
/// last pass, which the step reports, is left to the solver.
///   T: the type of the numbers in memory.
template <class T, bool is_fixed_point>
struct PlanarBlock {
  static constexpr int kStates = is_fixed_point ? 8 : 6, kReported = kStates - 2, kInputs = 2,
                       kParameters = is_fixed_point ? 7 : 4;
  static constexpr bool kHasConstantMatrix = true;

  static constexpr bool fits(std::int64_t pairs) { return pairs >= 4 && pairs % 2 == 0; }
  static constexpr int pairs_of(int n) { return n; }

  template <class R>
  struct Planar {
    R x, y;
  };
  using Vector = Planar<V>;

  template <class R, class Q>
  LCP_INLINE static auto dot(const Planar<R>& a, const Planar<Q>& b) {
    return a.x * b.x + a.y * b.y;
  }
  template <class K, class R>
  LCP_INLINE static auto scaled(const K& k, const Planar<R>& a) {
    return Planar<decltype(k * a.x)>{k * a.x, k * a.y};
  }
  template <class R>
  LCP_INLINE static Planar<R> sum(const Planar<R>& a, const Planar<R>& b) {
    return {a.x + b.x, a.y + b.y};
  }
  template <class R>
  LCP_INLINE static Planar<R> difference(const Planar<R>& a, const Planar<R>& b) {
    return {a.x - b.x, a.y - b.y};
  }
  template <class R>
  LCP_INLINE static Planar<R> either(const Mask<V>& mask, const Planar<R>& a, const Planar<R>& b) {
    return {choose(mask, a.x, b.x), choose(mask, a.y, b.y)};
  }
  template <class R>
  LCP_INLINE static Planar<R> zero_where(const Mask<V>& mask, const Planar<R>& a) {
    return {choose(mask, V(0), a.x), choose(mask, V(0), a.y)};
  }
  template <class R>
  LCP_INLINE static Vector values_of(const Planar<R>& a) {
    return {value_of(a.x), value_of(a.y)};
  }
  template <class R>
  LCP_INLINE static Mask<V> is_zero(const Planar<R>& a) {
    return value_of(a.x) == V(0) && value_of(a.y) == V(0);
  }

  // |a|; 1 for a = 0.
  template <class R>
  LCP_INLINE static R length(const Planar<R>& a) {
    return choose(is_zero(a), V(1), square_root(dot(a, a)));
  }

  // a / |a|; 0 for a = 0, with the derivative 0.
  template <class R>
  LCP_INLINE static Planar<R> direction_of(const Planar<R>& a) {
    const R size = length(a);
    return zero_where(is_zero(a), Planar<R>{a.x / size, a.y / size});
  }
  // The gradient of a, given the gradient g of its direction.
  LCP_INLINE static Vector direction_adjoint(const Vector& a, const Vector& g) {
    const V size = length(a);
    const Vector t = {a.x / size, a.y / size};
    const Vector across = difference(g, scaled(dot(t, g), t));
    return zero_where(is_zero(a), Vector{across.x / size, across.y / size});
  }

  template <class R>
  struct Start {
    R mass, dt, mu, gravity;
    Planar<R> u;
    R k, c, S;  // dt / mass, mass / dt, dt mu gravity
    Planar<R> free;
    V free_speed;
    Mask<V> guesses_free;  // whether the first direction is that of the free velocity, not of the velocity
    Planar<R> guessed;     // the vector whose direction is the first one
    V max_passes, tolerance;
    Mask<V> relaxed;
    Planar<R> t;  // the direction of the last pass
    V passes;
    Mask<V> converged;
  };

  // The columns of D, 2 x n.
  LCP_INLINE static Vector column(int n, const V* D, int i) { return {D[i], D[n + i]}; }

  // d_i.a for a of length `size`. It is exactly 0 where a is perpendicular to d_i up to rounding, so that then the
  // pairs of both d_i and -d_i are tied. Its derivative is the derivative of d_i.a.
  template <class R>
  LCP_INLINE static R projection(const Vector& d, const Planar<R>& a, const V& size) {
    const R x = dot(a, d);
    const V value = value_of(x);
    return with_value(x, choose(stdx::abs(value) <= V(8 * std::numeric_limits<T>::epsilon()) * size, V(0), value));
  }

  // max(d_i.t, 0), the reduction of the velocity along d_i by friction, over S; 1 for t = 0. slope: whether it has the
  // derivative d_i.
  template <class R>
  struct Resistance {
    R value;
    Mask<V> slope;

    LCP_INLINE Resistance(const Vector& d, const Planar<R>& t) {
      const Mask<V> none = is_zero(t);
      const R along = projection(d, t, V(1));
      const Mask<V> opposes = value_of(along) >= V(0);
      value = choose(none, V(1), choose(opposes, along, V(0)));
      slope = !none && opposes;
    }
  };

  // The share of the largest z_i up to which the solver takes a z_i for the rounding error of 0.
  static constexpr double kNegligible = 8 * std::numeric_limits<double>::epsilon();

  // The derivative of max(z, 0). A pair with z_i = w_i = 0 has the mean of its derivatives as active and as inactive.
  LCP_INLINE static V part_of(const V& z, const V& largest) {
    return choose(z > V(kNegligible) * largest, V(1), choose(z >= V(0), V(0.5), V(0)));
  }

  // v_next by a pass, and the largest z_i.
  template <class R>
  struct Pass {
    Planar<R> v_next = {constant<R>(V(0)), constant<R>(V(0))};
    V largest = 0;

    LCP_INLINE Pass(int n, const V* D, const Start<R>& start, const Planar<R>& t) {
      for (int i = 0; i < n; ++i) {
        const Vector d = column(n, D, i);
        const V z = stdx::max(value_of(part(start, d, t)), V(0));
        largest = stdx::max(largest, z);
        if constexpr (std::is_same_v<R, V>) v_next = sum(v_next, scaled(z, d));
      }
      if constexpr (!std::is_same_v<R, V>) {
        for (int i = 0; i < n; ++i) {
          const Vector d = column(n, D, i);
          const R z = part(start, d, t);
          v_next = sum(v_next, scaled(with_value(part_of(value_of(z), largest) * z, stdx::max(value_of(z), V(0))), d));
        }
        const Planar<R> none = {constant<R>(V(0)), constant<R>(V(0))};
        v_next = either(largest == V(0) && value_of(start.S) > V(0), none, v_next);
      }
      v_next = scaled(V(4.0 / n), v_next);
    }

   private:
    LCP_INLINE static R part(const Start<R>& start, const Vector& d, const Planar<R>& t) {
      return without_force(start, d) - start.S * Resistance<R>(d, t).value;
    }
  };
  template <class R>
  LCP_INLINE static R without_force(const Start<R>& start, const Vector& d) {
    return projection(d, start.free, start.free_speed);
  }

  // The vector whose direction is the next one; where it is 0, t is kept.
  template <class R>
  LCP_INLINE static Planar<R> moving(const Start<R>& start, const Planar<R>& v_next, const Planar<R>& t) {
    return either(start.relaxed, sum(v_next, scaled(start.S, t)), v_next);
  }
  template <class R>
  LCP_INLINE static Planar<R> improved(int n, const V* D, const Start<R>& start, const Planar<R>& t) {
    const Planar<R> next = moving(start, Pass<R>(n, D, start, t).v_next, t);
    return either(is_zero(next), t, direction_of(next));
  }

  template <class R>
  LCP_INLINE static Start<R> start(int n, const V* D, const R* parameters, const R* state, const R* u) {
    Start<R> s;
    s.mass = parameters[0];
    s.dt = parameters[1];
    s.mu = parameters[2];
    s.gravity = parameters[3];
    s.u = {u[0], u[1]};
    s.k = s.dt / s.mass;
    s.c = s.mass / s.dt;
    s.S = s.dt * s.mu * s.gravity;
    const Planar<R> v = {state[0], state[1]};
    s.free = sum(v, scaled(s.k, s.u));
    const Vector free = values_of(s.free);
    s.free_speed = square_root(dot(free, free));
    s.guesses_free = Mask<V>(!is_fixed_point) || is_zero(v);
    s.guessed = either(s.guesses_free, s.free, v);
    s.t = direction_of(s.guessed);
    if constexpr (is_fixed_point) {
      s.max_passes = value_of(parameters[4]);
      s.tolerance = value_of(parameters[5]);
      s.relaxed = value_of(parameters[6]) != V(0);
      find_fixed_point(n, D, s);
    }
    return s;
  }

  // Whether the scheme has converged to a sliding block. Then the last direction has the derivative of the fixed point,
  // which is dir(v*); otherwise that of the passes.
  template <class R>
  LCP_INLINE static Mask<V> is_fixed(const Start<R>& start, const Mask<V>& rests) {
    return start.converged && !rests && start.max_passes > V(1);
  }

  // Each trajectory keeps its direction once it has converged, so that the direction does not depend on the
  // trajectories in other lanes.
  template <class R>
  LCP_NOINLINE static void find_fixed_point(int n, const V* D, Start<R>& s) {
    s.passes = 1;
    for (V made = 1;; made += V(1)) {
      const Planar<R> next = improved(n, D, s, s.t);
      const Vector change = difference(values_of(next), values_of(s.t));
      const Mask<V> changes = square_root(dot(change, change)) > s.tolerance;
      s.converged = !changes;
      const Mask<V> continues = changes && made < s.max_passes;
      if (stdx::none_of(continues)) break;
      s.t = either(continues, next, s.t);
      stdx::where(continues, s.passes) += V(1);
    }
    if constexpr (!std::is_same_v<R, V>) {
      const Mask<V> rests = Pass<R>(n, D, s, s.t).largest == V(0);
      const Planar<R> found = direction_of(s.free);
      s.t = either(is_fixed(s, rests),
                   Planar<R>{with_value(found.x, value_of(s.t.x)), with_value(found.y, value_of(s.t.y))}, s.t);
    }
  }

  LCP_INLINE static void matrix(int n, const Start<V>& start, const V*, V* M) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) M[i * n + j] = i == j ? start.c : V(0);
    }
  }

  template <class R, class Z, class Use>
  LCP_INLINE static void pairs(int n, const Start<R>& start, const V* D, const Z* z, const Use& use) {
    for (int i = 0; i < n; ++i) {
      const Vector d = column(n, D, i);
      const R opposed = start.S * Resistance<R>(d, start.t).value - without_force(start, d);
      use(i, start.c * z[i] + start.c * opposed);
    }
  }

  // The end of a step. Where the block sticks, the pairs of directions perpendicular to v* may be tied, but the
  // derivative is 0.
  template <class R>
  struct End {
    Mask<V> rests;   // whether all z are 0
    Mask<V> sticks;  // whether all z are 0 and friction holds the block
    Planar<R> v_next = {constant<R>(V(0)), constant<R>(V(0))};

    template <class Q>
    LCP_INLINE End(int n, const Start<Q>& start, const V* D, const R* z, bool is_smoothed) : rests(true) {
      for (int i = 0; i < n; ++i) {
        rests = rests && value_of(z[i]) == V(0);
        v_next = sum(v_next, scaled(z[i], column(n, D, i)));
      }
      sticks = rests && value_of(start.S) > V(0);
      v_next = scaled(V(4.0 / n), v_next);
      v_next = {held(sticks, v_next.x, is_smoothed), held(sticks, v_next.y, is_smoothed)};
    }
  };

  template <class R, class Use>
  LCP_INLINE static void advance(int n, const Start<R>& start, const V* D, const R* z, const R*, bool is_smoothed,
                                 const Use& use) {
    const Planar<R> v_next = End<R>(n, start, D, z, is_smoothed).v_next;
    use(0, v_next.x);
    use(1, v_next.y);
    use(2, start.c * (v_next.x - start.free.x));
    use(3, start.c * (v_next.y - start.free.y));
    use(4, start.t.x);
    use(5, start.t.y);
    if constexpr (is_fixed_point) {
      use(6, constant<R>(start.passes));
      use(7, constant<R>(choose(start.converged, V(1), V(0))));
    }
  }

  // The derivatives of the lines above, in reverse. of_a: the derivative in a.
  class Adjoint {
    // The most passes whose directions are kept at a time.
    static constexpr int kKept = 64;

   public:
    static constexpr std::size_t workspace(int) { return is_fixed_point ? kKept * sizeof(Vector) / sizeof(double) : 0; }

    LCP_INLINE Adjoint(int n, const V* parameters, const V* state, const V* u, const V* D, const V* z, const V*,
                       bool is_smoothed, double* memory)
        : n_(n),
          start_(start(n, D, parameters, state, u)),
          end_(n, start_, D, z, is_smoothed),
          holds_(is_smoothed ? Mask<V>(false) : end_.sticks),
          D_(D),
          kept_(reinterpret_cast<Vector*>(memory)) {}

    // l: the gradient of the next state. Adds to the gradient of z.
    LCP_INLINE void advance(const V* l, V* of_z, V*) {
      const Vector of_force = {l[2], l[3]};
      const Vector of_v = sum({l[0], l[1]}, scaled(start_.c, of_force));
      const Vector of_sum = either(holds_, {V(0), V(0)}, scaled(V(4.0 / n_), of_v));
      for (int i = 0; i < n_; ++i) of_z[i] += dot(of_sum, column(n_, D_, i));
      of_c_ = dot(of_force, difference(end_.v_next, start_.free));
      of_free_ = scaled(-start_.c, of_force);
      of_S_ = 0;
      of_t_ = {l[4], l[5]};
    }

    // t: the gradient of the pairs, for this z.
    LCP_INLINE void pairs(const V* z, const V* t, V* of_parameters, V* of_state, V* of_u) {
      const V &c = start_.c, &S = start_.S, zero = 0;
      for (int i = 0; i < n_; ++i) {
        const Vector d = column(n_, D_, i);
        const Resistance<V> resistance(d, start_.t);
        const V by_velocity = c * t[i];
        of_c_ += t[i] * (z[i] + (S * resistance.value - without_force(start_, d)));
        of_S_ += by_velocity * resistance.value;
        of_t_ = sum(of_t_, scaled(choose(resistance.slope, S * by_velocity, zero), d));
        of_free_ = difference(of_free_, scaled(by_velocity, d));
      }
      if constexpr (is_fixed_point) to_first_direction();
      const Vector of_guessed = direction_adjoint(start_.guessed, of_t_), none = {zero, zero};
      of_free_ = sum(of_free_, either(start_.guesses_free, of_guessed, none));
      const Vector of_v = sum(of_free_, either(start_.guesses_free, none, of_guessed));
      const V of_k = dot(start_.u, of_free_);
      const V by_dt = of_S_ * start_.dt;
      of_parameters[0] = of_c_ / start_.dt - of_k * start_.k / start_.mass;
      of_parameters[1] = of_k / start_.mass - of_c_ * c / start_.dt + of_S_ * start_.mu * start_.gravity;
      of_parameters[2] = by_dt * start_.gravity;
      of_parameters[3] = by_dt * start_.mu;
      for (int i = 4; i < kParameters; ++i) of_parameters[i] = zero;
      of_state[0] = of_v.x;
      of_state[1] = of_v.y;
      of_u[0] = start_.k * of_free_.x;
      of_u[1] = start_.k * of_free_.y;
    }

   private:
    // Replaces the gradient of the last direction by the gradient of the first direction.
    LCP_INLINE void to_first_direction() {
      const Vector none = {V(0), V(0)};
      const Mask<V> found = is_fixed(start_, end_.rests);
      of_free_ = sum(of_free_, direction_adjoint(start_.free, either(found, of_t_, none)));
      of_t_ = either(found, none, of_t_);
      if (stdx::any_of(!is_zero(of_t_) && start_.passes > V(1))) through_passes();
    }

    // The directions of the last passes are kept; for those before them, all are found again.
    LCP_NOINLINE void through_passes() {
      const auto improvements = static_cast<std::int64_t>(stdx::hmax(start_.passes)) - 1;
      for (std::int64_t end = improvements; end > 0; end -= kKept) {
        const std::int64_t begin = end > kKept ? end - kKept : 0;
        Vector t = direction_of(start_.guessed);
        for (std::int64_t k = 0; k < end; ++k) {
          if (k >= begin) kept_[k - begin] = t;
          t = either(is_made(k), improved(n_, D_, start_, t), t);
        }
        for (std::int64_t k = end - 1; k >= begin; --k) through_pass(is_made(k), kept_[k - begin]);
      }
    }

    // Whether improvement k of the direction was made.
    LCP_INLINE Mask<V> is_made(std::int64_t k) const { return V(static_cast<double>(k + 1)) < start_.passes; }

    // Replaces the gradient of the direction that follows t by the gradient of t, where the former was made.
    LCP_INLINE void through_pass(const Mask<V>& made, const Vector& t) {
      const V &S = start_.S, zero = 0;
      const Vector none = {zero, zero};
      const Pass<V> pass(n_, D_, start_, t);
      const Vector next = moving(start_, pass.v_next, t);
      const Mask<V> turns = made && !is_zero(next);
      const Vector of_moving = direction_adjoint(next, either(turns, of_t_, none));
      const Vector by_t = either(start_.relaxed, of_moving, none);
      const Mask<V> sticks = pass.largest == zero && S > zero;
      const Vector of_v = either(sticks, none, scaled(V(4.0 / n_), of_moving));
      Vector of_t = scaled(S, by_t);
      of_S_ += dot(by_t, t);
      for (int i = 0; i < n_; ++i) {
        const Vector d = column(n_, D_, i);
        const Resistance<V> resistance(d, t);
        const V z = without_force(start_, d) - S * resistance.value;
        const V of_z = part_of(z, pass.largest) * dot(of_v, d);
        of_free_ = sum(of_free_, scaled(of_z, d));
        of_S_ -= of_z * resistance.value;
        of_t = difference(of_t, scaled(choose(resistance.slope, S * of_z, zero), d));
      }
      of_t_ = either(turns, of_t, of_t_);
    }

    int n_;
    Start<V> start_;
    End<V> end_;
    Mask<V> holds_;  // whether v_next has no derivative
    const V* D_;
    Vector* kept_;
    Vector of_free_, of_t_;
    V of_c_, of_S_;
  };
};

}  // namespace lcp::systems::LCP_ISA
