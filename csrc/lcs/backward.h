// Walks trajectories backward, one in each lane; adjoint.h has the mathematics.
#pragma once

#include "batch/adjoint.h"
#include "lcs/kernels.h"
#include "lcs/lanes.h"
#include "solver/find_pair_states.h"

namespace lcp::lcs::LCP_ISA {

// The walk backward in double precision, whatever T is, as for all adjoints.
template <int N, class T>
class Backward {
 public:
  using V = Lanes<double>;
  static constexpr int kWidth = kLanes<double>;

  explicit Backward(const BackwardWalk<T>& walk)
      : walk_(walk),
        vectors_(static_cast<int>((walk.count + kWidth - 1) / kWidth)),
        workspace_(walk.workspace),
        A_(entries(walk.system.A, k_ * k_)),
        B_(entries(walk.system.B, k_ * m_)),
        D_(entries(walk.system.D, k_ * N)),
        G_(entries(walk.system.G, k_ * N)),
        E_(entries(walk.system.E, N * k_)),
        H_(entries(walk.system.H, N * m_)),
        M_(entries(walk.system.M, N * N)),
        carried_(workspace_.take<V>(std::ptrdiff_t{k_} * vectors_)),
        l_(workspace_.take<V>(k_)),
        x_(workspace_.take<V>(k_)),
        u_(workspace_.take<V>(m_)),
        of_u_(workspace_.take<V>(m_)) {
    const Gradients<T>& to = walk.to;
    const auto sums = [&](T* target, int rows, int columns) -> Sums {
      return {target, target == nullptr ? nullptr : zeros(rows * columns), rows, columns};
    };
    of_A_ = sums(to.A, k_, k_);
    of_B_ = sums(to.B, k_, m_);
    of_D_ = sums(to.D, k_, N);
    of_G_ = sums(to.G, k_, N);
    of_d_ = sums(to.d, k_, 1);
    of_E_ = sums(to.E, N, k_);
    of_H_ = sums(to.H, N, m_);
    of_M_ = sums(to.M, N, N);
    of_q_ = sums(to.q, N, 1);
    for (std::ptrdiff_t c = 0; c < std::ptrdiff_t{k_} * vectors_; ++c) carried_[c] = 0;
  }

  void run() {
    for (std::int64_t s = walk_.steps - 1; s >= 0; --s) {
      for (int v = 0; v < vectors_; ++v) step(s, v);
    }
    for (int v = 0; v < vectors_; ++v) {
      for (const Sums& sums : {of_A_, of_B_, of_D_, of_G_, of_d_, of_E_, of_H_, of_M_, of_q_}) {
        if (sums.to == nullptr) continue;
        const std::ptrdiff_t first = std::ptrdiff_t{v} * sums.rows * sums.columns;
        write_some<double>(lanes(v), sums.rows * sums.columns, sums.data + first, sums.to + first * kWidth);
      }
      const std::ptrdiff_t first = std::ptrdiff_t{v} * k_;
      if (walk_.to.x != nullptr) write_some<double>(lanes(v), k_, carried_ + first, walk_.to.x + first * kWidth);
    }
  }

 private:
  // Sums of outer products for each vector of trajectories. `to` is the place of the final sums; nullptr where they are
  // not wanted.
  struct Sums {
    T* to;
    V* data;
    int rows, columns;

    // Adds x y'.
    LCP_INLINE void add(int v, const V* x, const V* y) const {
      if (data == nullptr) return;
      V* sum = data + std::ptrdiff_t{v} * rows * columns;
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j, ++sum) *sum = multiply_add(x[i], y[j], *sum);
      }
    }
  };

  Entries<double> entries(const BatchView<T>& view, int size) {
    return interleaved<double>(view, size, walk_.count, vectors_, workspace_);
  }
  V* zeros(int size) {
    const std::ptrdiff_t count = std::ptrdiff_t{size} * vectors_;
    V* const data = workspace_.take<V>(count);
    for (std::ptrdiff_t c = 0; c < count; ++c) data[c] = 0;
    return data;
  }
  LCP_INLINE int lanes(int v) const { return lanes_of<double>(walk_.count, v); }

  // Reads numbers; those that are not finite count as 0.
  LCP_INLINE void read_finite(const StepsView<T>& view, std::int64_t s, int v, int size, V* out) const {
    read_step<double>(view, s, v, lanes(v), size, out);
    for (int c = 0; c < size; ++c) {
      stdx::where(!(stdx::abs(out[c]) <= V(std::numeric_limits<double>::max())), out[c]) = 0;
    }
  }

  // y += C'x.
  LCP_INLINE static void add_transposed(const Entries<double>& C, int v, int rows, int columns, const V* x, V* y) {
    if (C.zero) return;
    const V* entry = C.of(v);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j, ++entry) y[j] = multiply_add(*entry, x[i], y[j]);
    }
  }

  LCP_NOINLINE void step(std::int64_t s, int v) {
    const WalkedPath<T>& path = walk_.path;
    V* const carried = carried_ + std::ptrdiff_t{k_} * v;
    V z[N], w[N], states[N], g_z[N], g_w[N], t[N];
    const bool has_cone = walk_.cone != nullptr;
    if (has_cone || of_D_.data != nullptr || of_M_.data != nullptr) read_finite(path.z, s, v, N, z);
    if (has_cone || of_G_.data != nullptr) read_finite(path.w, s, v, N, w);
    read_step<double>(path.states, s, v, lanes(v), N, states);
    read_step<double>(path.g_x_next, s, v, lanes(v), k_, l_);
    read_step<double>(path.g_z, s, v, lanes(v), N, g_z);
    read_step<double>(path.g_w, s, v, lanes(v), N, g_w);
    fetch_previous(s, v);
    for (int i = 0; i < k_; ++i) l_[i] += carried[i];
    add_transposed(D_, v, k_, N, l_, g_z);
    V of_w[N];
    for (int i = 0; i < N; ++i) of_w[i] = 0;
    add_transposed(G_, v, k_, N, l_, of_w);
    if (has_cone) {
      V moving_w[N];
      for (int i = 0; i < N; ++i) moving_w[i] = w[i];
      hold(N, walk_.cone, z, w, moving_w);
      hold(N, walk_.cone, z, w, of_w);
      for (int i = 0; i < N; ++i) w[i] = moving_w[i];
    }
    for (int i = 0; i < N; ++i) g_w[i] += of_w[i];
    solve(v, states, g_z, g_w, walk_.tied_active, t);
    if (walk_.midpoint) add_other_piece(v, states, g_z, g_w, t);
    if (of_A_.data != nullptr || of_E_.data != nullptr) read_start(s, v);
    if (of_B_.data != nullptr || of_H_.data != nullptr) read_finite(path.u, s, v, m_, u_);
    const V one = 1;
    of_A_.add(v, l_, x_);
    of_B_.add(v, l_, u_);
    of_D_.add(v, l_, z);
    of_G_.add(v, l_, w);
    of_d_.add(v, l_, &one);
    of_E_.add(v, t, x_);
    of_H_.add(v, t, u_);
    of_M_.add(v, t, z);
    of_q_.add(v, t, &one);
    if (walk_.to.u != nullptr) {
      for (int j = 0; j < m_; ++j) of_u_[j] = 0;
      add_transposed(B_, v, k_, m_, l_, of_u_);
      add_transposed(H_, v, N, m_, t, of_u_);
      const std::int64_t at = s * walk_.to.batch + std::int64_t{v} * kWidth;
      write_lanes<double>(lanes(v), m_, of_u_, walk_.to.u + at * m_);
    }
    for (int j = 0; j < k_; ++j) carried[j] = 0;
    add_transposed(A_, v, k_, k_, l_, carried);
    add_transposed(E_, v, N, k_, t, carried);
  }

  // Fetches the memory of the step before, as a walk forward fetches that of the next step.
  LCP_INLINE void fetch_previous(std::int64_t s, int v) const {
    if (s == 0) return;
    const WalkedPath<T>& path = walk_.path;
    fetch_step<double>(path.states, s - 1, v, N);
    fetch_step<double>(path.g_x_next, s - 1, v, k_);
    fetch_step<double>(path.g_z, s - 1, v, N);
    fetch_step<double>(path.g_w, s - 1, v, N);
    if (of_D_.data != nullptr || of_M_.data != nullptr || walk_.cone != nullptr)
      fetch_step<double>(path.z, s - 1, v, N);
    if (of_G_.data != nullptr || walk_.cone != nullptr) fetch_step<double>(path.w, s - 1, v, N);
    if (of_B_.data != nullptr || of_H_.data != nullptr) fetch_step<double>(path.u, s - 1, v, m_);
    if (s > 1 && (of_A_.data != nullptr || of_E_.data != nullptr)) fetch_step<double>(path.x_next, s - 2, v, k_);
  }

  // The state at the beginning of the step.
  LCP_INLINE void read_start(std::int64_t s, int v) {
    if (s > 0) {
      read_finite(walk_.path.x_next, s - 1, v, k_, x_);
    } else {
      read_finite({walk_.path.x.data, 0, walk_.path.x.shared}, 0, v, k_, x_);
    }
  }

  // t = J' (g_z, g_w).
  LCP_INLINE void solve(int v, const V* states, const V* g_z, const V* g_w, bool tied_active, V* t) const {
    const Mask<V> clear = batch::LCP_ISA::adjoint<N, T>(M_.of(v), states, g_z, g_w, tied_active, t);
    if (!stdx::all_of(clear)) solve_others(v, clear, states, g_z, g_w, tied_active, t);
  }

  LCP_NOINLINE void solve_others(int v, const Mask<V>& clear, const V* states, const V* g_z, const V* g_w,
                                 bool tied_active, V* t) const {
    for (int l = 0; l < lanes(v); ++l) {
      if (clear[l]) continue;
      std::int8_t states_l[N];
      double g_z_l[N], g_w_l[N], t_l[N];
      for (int i = 0; i < N; ++i) {
        states_l[i] = static_cast<std::int8_t>(states[i][l]);
        g_z_l[i] = g_z[i][l];
        g_w_l[i] = g_w[i][l];
      }
      walk_.solve(walk_.self, std::int64_t{v} * kWidth + l, states_l, tied_active, g_z_l, g_w_l, t_l);
      for (int i = 0; i < N; ++i) t[i][l] = t_l[i];
    }
  }

  // The mean with the piece where tied pairs are active; unchanged where both agree.
  LCP_NOINLINE void add_other_piece(int v, const V* states, const V* g_z, const V* g_w, V* t) const {
    Mask<V> tied(false);
    for (int i = 0; i < N; ++i) tied = tied || states[i] == V(solver::PairState::kTied);
    if (stdx::none_of(tied)) return;
    V other[N];
    solve(v, states, g_z, g_w, true, other);
    for (int i = 0; i < N; ++i) t[i] = multiply_add(V(0.5), other[i] - t[i], t[i]);
  }

  const BackwardWalk<T>& walk_;
  const int k_ = walk_.size.k, m_ = walk_.size.m;
  int vectors_;
  Workspace workspace_;
  Entries<double> A_, B_, D_, G_, E_, H_, M_;
  V *carried_, *l_, *x_, *u_, *of_u_;
  Sums of_A_, of_B_, of_D_, of_G_, of_d_, of_E_, of_H_, of_M_, of_q_;
};

template <int N, class T>
void walk_backward(const BackwardWalk<T>& walk) {
  Backward<N, T>(walk).run();
}

}  // namespace lcp::lcs::LCP_ISA
