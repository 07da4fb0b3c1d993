// Walks trajectories forward, one in each lane. The LCP of a step is solved by enumeration (batch/enumerate.h), so that
// a step reads nothing but its input and writes nothing but its results.
#pragma once

#include <limits>
#include <new>

#include "batch/accept.h"
#include "batch/enumerate.h"
#include "lcs/kernels.h"
#include "lcs/lanes.h"

namespace lcp::lcs::LCP_ISA {

using batch::LCP_ISA::Bases;
using batch::LCP_ISA::Start;

// A sum, and the sum of the magnitudes of its terms.
template <class V>
struct Sum {
  V value, magnitude;

  LCP_INLINE void add(int length, const V* a, const V* x) {
    for (int j = 0; j < length; ++j) {
      value = multiply_add(a[j], x[j], value);
      magnitude = multiply_add(stdx::abs(a[j]), stdx::abs(x[j]), magnitude);
    }
  }
};

// kStates, kInputs: the numbers of states and inputs, so that loops over them are unrolled; -1 for any.
template <int N, class T, int kStates, int kInputs>
class Forward {
 public:
  using V = Lanes<T>;

  explicit Forward(const ForwardWalk<T>& walk)
      : walk_(walk),
        vectors_(static_cast<int>((walk.count + kLanes<T> - 1) / kLanes<T>)),
        workspace_(walk.workspace),
        A_(entries(walk.system.A, k() * k())),
        B_(entries(walk.system.B, k() * m())),
        D_(entries(walk.system.D, k() * N)),
        G_(entries(walk.system.G, k() * N)),
        d_(entries(walk.system.d, k())),
        E_(entries(walk.system.E, N * k())),
        H_(entries(walk.system.H, N * m())),
        q_(entries(walk.system.q, N)),
        x_(workspace_.take<V>(std::ptrdiff_t{k()} * vectors_)),
        u_(workspace_.take<V>(std::ptrdiff_t{m()} * (vectors_ < kTogether ? vectors_ : kTogether))),
        next_(workspace_.take<V>(k())),
        shared_M_(walk.system.M.shared),
        bases_(workspace_.take<Bases<N, T>>(shared_M_ ? 1 : vectors_)) {
    for (int v = 0; v < vectors_; ++v) {
      read_step<T>(StepsView<T>{walk.x.data, 0, walk.x.shared}, 0, v, lanes_of<T>(walk.count, v), k(),
                   x_ + std::ptrdiff_t{k()} * v);
    }
    for (int v = 0; v < (shared_M_ ? 1 : vectors_); ++v) {
      auto* const bases = new (bases_ + v) Bases<N, T>;
      if (shared_M_) {
        batch::LCP_ISA::broadcast<N * N, T>(walk.system.M.data, bases->M);
      } else {
        read_some<T>(lanes_of<T>(walk.count, v), N * N, walk.system.M.data + std::ptrdiff_t{v} * kLanes<T> * N * N,
                     bases->M);
      }
      bases->set();
    }
    are_for_all_ = shared_M_ && bases_->is_p0();
  }

  void run() {
    for (std::int64_t s = 0; s < walk_.steps; ++s) {
      for (int v = 0; v < vectors_; v += kTogether) {
        const int some = vectors_ - v < kTogether ? vectors_ - v : kTogether;
        if (are_for_all_) {
          step<true>(s, v, some);
        } else {
          step<false>(s, v, some);
        }
      }
    }
  }

 private:
  LCP_INLINE int k() const { return kStates >= 0 ? kStates : walk_.size.k; }
  LCP_INLINE int m() const { return kInputs >= 0 ? kInputs : walk_.size.m; }
  Entries<T> entries(const BatchView<T>& view, int size) {
    return interleaved<T>(view, size, walk_.count, vectors_, workspace_);
  }
  LCP_INLINE const Bases<N, T>& bases_of(int v) const { return bases_[shared_M_ ? 0 : v]; }

  template <bool are_for_all>
  LCP_NOINLINE void step(std::int64_t s, int first, int count) {
    V all_q[kTogether][N], all_z[kTogether][N], largest_q[kTogether];
    for (int j = 0; j < count; ++j) {
      const int v = first + j;
      V* const u = u_ + std::ptrdiff_t{m()} * j;
      read_step<T>(walk_.u, s, v, lanes_of<T>(walk_.count, v), m(), u);
      fetch_next(s, v);
      const V *const x = x_ + std::ptrdiff_t{k()} * v, *const E = E_.of(v), *const H = H_.of(v), *const q = q_.of(v);
      for (int i = 0; i < N; ++i) {
        V sum = 0;
        for (int c = 0; c < k(); ++c) sum = multiply_add(E[i * k() + c], x[c], sum);
        for (int c = 0; c < m(); ++c) sum = multiply_add(H[i * m() + c], u[c], sum);
        all_q[j][i] = (sum + q[i]) + T(0);  // -0 becomes 0
      }
      largest_q[j] = batch::LCP_ISA::largest_of<N, T>(all_q[j]);
      batch::LCP_ISA::enumerate<N, T, Start::kNothing, are_for_all>(bases_of(v), all_q[j], largest_q[j], nullptr,
                                                                    all_z[j]);
    }
    const T tolerance = static_cast<T>(walk_.tolerance);
    for (int j = 0; j < count; ++j) {
      const int v = first + j;
      const Bases<N, T>& bases = bases_of(v);
      const V* const q = all_q[j];
      V* const z = all_z[j];
      V w[N], scale[N], sum[N], states[N];
      const auto solved = batch::LCP_ISA::verify_enumerated<N, T, T>(bases.M, bases.magnitude, q, largest_q[j],
                                                                     tolerance, z, w, scale, sum);
      if (walk_.to.states != nullptr) {
        batch::LCP_ISA::find_states<N, T, false>(std::numeric_limits<T>::epsilon(), bases.M, q, z, w, scale, states);
      }
      V status = 0;
      if (!stdx::all_of(solved)) solve_others(v, solved, q, z, w, sum, &status, states);
      V residual = 0;
      for (int i = 0; i < N; ++i) residual = stdx::max(residual, stdx::abs(stdx::min(z[i], sum[i])));
      const auto unsolved = status != V(0);
      stdx::where(unsolved, residual) = std::numeric_limits<T>::quiet_NaN();
      write(s, v, z, w, residual, status, states);
      advance(s, v, u_ + std::ptrdiff_t{m()} * j, z, w, unsolved);
    }
  }

  // Fetches the memory of the next step, which lies a whole batch further on, where the processor does not look for it.
  LCP_INLINE void fetch_next(std::int64_t s, int v) const {
    if (s + 1 == walk_.steps) return;
    fetch_step<T>(walk_.u, s + 1, v, m());
    const Path<T>& to = walk_.to;
    const std::int64_t at = (s + 1) * to.batch + std::int64_t{v} * kLanes<T>;
    fetch<T>(to.x_next + at * k(), k());
    fetch<T>(to.z + at * N, N);
    fetch<T>(to.w + at * N, N);
    fetch<T>(to.residual + at, 1);
  }

  // Solves the problems of the lanes that the kernel has not solved.
  LCP_NOINLINE void solve_others(int v, const Mask<V>& solved, const V* q, V* z, V* w, V* sum, V* status,
                                 V* states) const {
    const bool wants_states = walk_.to.states != nullptr;
    for (int l = 0; l < lanes_of<T>(walk_.count, v); ++l) {
      if (solved[l]) continue;
      T q_l[N], z_l[N], w_l[N];
      std::int8_t status_l, states_l[N];
      for (int i = 0; i < N; ++i) q_l[i] = q[i][l];
      walk_.solve(walk_.self, std::int64_t{v} * kLanes<T> + l, q_l, z_l, w_l, &status_l,
                  wants_states ? states_l : nullptr);
      (*status)[l] = static_cast<T>(status_l);
      for (int i = 0; i < N; ++i) {
        z[i][l] = z_l[i];
        w[i][l] = w_l[i];
        if (wants_states) states[i][l] = static_cast<T>(states_l[i]);
      }
    }
    const V* const M = bases_of(v).M;
    for (int i = 0; i < N; ++i) {
      sum[i] = q[i];
      for (int j = 0; j < N; ++j) sum[i] = multiply_add(M[i * N + j], z[j], sum[i]);
    }
  }

  LCP_INLINE void write(std::int64_t s, int v, const V* z, const V* w, const V& residual, const V& status,
                        const V* states) const {
    const Path<T>& to = walk_.to;
    const int lanes = lanes_of<T>(walk_.count, v);
    const std::int64_t at = s * to.batch + std::int64_t{v} * kLanes<T>;
    if (lanes == kLanes<T>) {
      batch::LCP_ISA::store<N, T>(z, to.z + at * N);
      batch::LCP_ISA::store<N, T>(w, to.w + at * N);
      batch::LCP_ISA::store<1, T>(&residual, to.residual + at);
      batch::LCP_ISA::store<1, T>(&status, to.status + at);
      if (to.states != nullptr) batch::LCP_ISA::store<N, T>(states, to.states + at * N);
    } else {
      write_some<T>(lanes, N, z, to.z + at * N);
      write_some<T>(lanes, N, w, to.w + at * N);
      write_some<T>(lanes, 1, &residual, to.residual + at);
      write_some<T>(lanes, 1, &status, to.status + at);
      if (to.states != nullptr) write_some<T>(lanes, N, states, to.states + at * N);
    }
  }

  LCP_INLINE void advance(std::int64_t s, int v, const V* u, const V* z, const V* w, const Mask<V>& unsolved) {
    V moving_w[N];
    for (int i = 0; i < N; ++i) moving_w[i] = w[i];
    if (walk_.cone != nullptr) hold(N, walk_.cone, z, w, moving_w);
    V* const x = x_ + std::ptrdiff_t{k()} * v;
    const V* const d = d_.of(v);
    for (int i = 0; i < k(); ++i) {
      Sum<V> next = {d[i], stdx::abs(d[i])};
      if (!A_.zero) next.add(k(), A_.of(v) + i * k(), x);
      if (!B_.zero) next.add(m(), B_.of(v) + i * m(), u);
      if (!D_.zero) next.add(N, D_.of(v) + i * N, z);
      if (!G_.zero) next.add(N, G_.of(v) + i * N, moving_w);
      constexpr T at_rest = static_cast<T>(kAtRestInEpsilon) * std::numeric_limits<T>::epsilon();
      stdx::where(stdx::abs(next.value) <= at_rest * next.magnitude, next.value) = 0;
      stdx::where(unsolved, next.value) = std::numeric_limits<T>::quiet_NaN();
      next_[i] = next.value;
    }
    for (int i = 0; i < k(); ++i) x[i] = next_[i];
    const std::int64_t at = s * walk_.to.batch + std::int64_t{v} * kLanes<T>;
    write_lanes<T>(lanes_of<T>(walk_.count, v), k(), x, walk_.to.x_next + at * k());
  }

  const ForwardWalk<T>& walk_;
  int vectors_;
  Workspace workspace_;
  Entries<T> A_, B_, D_, G_, d_, E_, H_, q_;
  V *x_, *u_, *next_;
  bool shared_M_;
  Bases<N, T>* bases_;
  bool are_for_all_ = false;  // whether one M without singular bases is for all lanes, see batch/enumerate.h
};

template <int N, class T>
void walk_forward(const ForwardWalk<T>& walk) {
  if (walk.size.k == 1 && walk.size.m == 1) {
    Forward<N, T, 1, 1>(walk).run();
  } else {
    Forward<N, T, -1, -1>(walk).run();
  }
}

}  // namespace lcp::lcs::LCP_ISA
