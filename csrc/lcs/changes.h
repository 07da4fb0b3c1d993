// Walks trajectories in forward mode, one in each lane; tangent.h has the mathematics.
#pragma once

#include <limits>

#include "batch/adjoint.h"
#include "lcs/kernels.h"
#include "lcs/lanes.h"
#include "solver/find_pair_states.h"

namespace lcp::lcs::LCP_ISA {

// The walk in double precision, whatever T is, as for all derivatives. kPairs: the number of pairs, whose problems are
// differentiated here; -1 for any, whose problems are left to TangentWalk::solve.
template <int kPairs, class T>
class WalkOfChanges {
 public:
  using V = Lanes<double>;
  static constexpr int kWidth = kLanes<double>;

  explicit WalkOfChanges(const TangentWalk<T>& walk)
      : walk_(walk),
        vectors_(static_cast<int>((walk.count + kWidth - 1) / kWidth)),
        workspace_(walk.workspace),
        system_(entries(walk.given.system)),
        d_(entries(walk.change.system)),
        dx_(workspace_.take<V>(std::ptrdiff_t{k_} * vectors_)),
        has_change_(workspace_.take<V>(vectors_)),
        x_(workspace_.take<V>(k_)),
        dx_next_(workspace_.take<V>(k_)),
        u_(workspace_.take<V>(m_)),
        du_(workspace_.take<V>(m_)),
        of_pairs_(workspace_.take<V>(std::ptrdiff_t{kVectorsOfPairs} * n())),
        transposed_M_(workspace_.take<V>(std::ptrdiff_t{n()} * n())) {
    for (int v = 0; v < vectors_; ++v) {
      V* const dx = dx_ + std::ptrdiff_t{k_} * v;
      read_step<double>(StepsView<T>{walk.change.x.data, 0, walk.change.x.shared}, 0, v, lanes(v), k_, dx);
      Mask<V> any = is_any(k_, dx);
      const auto add = [&](const Entries<double>& each) { any = any || is_any(each.size, each.of(v)); };
      for (const Entries<double>& each : {d_.A, d_.B, d_.D, d_.G, d_.d, d_.E, d_.H, d_.M, d_.q}) add(each);
      has_change_[v] = choose(any, V(1), V(0));
    }
  }

  void run() {
    for (std::int64_t s = 0; s < walk_.steps; ++s) {
      for (int v = 0; v < vectors_; ++v) step(s, v);
    }
  }

 private:
  struct SystemEntries {
    Entries<double> A, B, D, G, d, E, H, M, q;
  };

  LCP_INLINE int n() const { return kPairs >= 0 ? kPairs : walk_.size.n; }
  LCP_INLINE int lanes(int v) const { return lanes_of<double>(walk_.count, v); }

  SystemEntries entries(const System<T>& system) {
    const auto each = [this](const BatchView<T>& view, int size) {
      return interleaved<double>(view, size, walk_.count, vectors_, workspace_);
    };
    return {each(system.A, k_ * k_),  each(system.B, k_ * m_),   each(system.D, k_ * n()),
            each(system.G, k_ * n()), each(system.d, k_),        each(system.E, n() * k_),
            each(system.H, n() * m_), each(system.M, n() * n()), each(system.q, n())};
  }

  LCP_INLINE static V choose(const Mask<V>& mask, const V& a, const V& b) {
    V chosen = b;
    stdx::where(mask, chosen) = a;
    return chosen;
  }
  LCP_INLINE static Mask<V> is_any(int size, const V* x) {
    Mask<V> any(false);
    for (int i = 0; i < size; ++i) any = any || x[i] != V(0);
    return any;
  }

  // y += C x.
  LCP_INLINE static void add_product(const Entries<double>& C, int v, int rows, int columns, const V* x, V* y) {
    if (C.zero) return;
    const V* entry = C.of(v);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j, ++entry) y[i] = multiply_add(*entry, x[j], y[i]);
    }
  }
  LCP_INLINE static void add(const Entries<double>& c, int v, int rows, V* y) {
    if (c.zero) return;
    for (int i = 0; i < rows; ++i) y[i] += c.of(v)[i];
  }

  LCP_NOINLINE void step(std::int64_t s, int v) {
    const int n = this->n();
    const WalkedSteps<T>& walked = walk_.walked;
    V *const z = of_pairs_, *const w = z + n, *const states = w + n, *const r = states + n, *const dz = r + n,
             *const dw = dz + n, *const z_of_pairs = dw + n;
    V* const dx = dx_ + std::ptrdiff_t{k_} * v;
    V status;
    const bool needs_x = walk_.is_smoothed || !d_.A.zero || !d_.E.zero, needs_w = walk_.cone != nullptr || !d_.G.zero;
    const bool needs_z = needs_w || !d_.D.zero || !d_.M.zero;
    if (needs_x) read_start(s, v);
    if (walk_.is_smoothed || !d_.B.zero || !d_.H.zero) read_step<double>(walk_.given.u, s, v, lanes(v), m_, u_);
    read_step<double>(walk_.change.u, s, v, lanes(v), m_, du_);
    if (needs_z) read_step<double>(walked.z, s, v, lanes(v), n, z);
    if (needs_w) read_step<double>(walked.w, s, v, lanes(v), n, w);
    read_step<double>(walked.states, s, v, lanes(v), n, states);
    read_step<double>(walked.status, s, v, lanes(v), 1, &status);
    fetch_next(s, v, needs_x, needs_z, needs_w);

    const V* path_z = z;
    if (walk_.is_smoothed) {
      for (int i = 0; i < n; ++i) r[i] = 0;
      add_product(system_.E, v, n, k_, x_, r);
      add_product(system_.H, v, n, m_, u_, r);
      add(system_.q, v, n, r);
      find_point(s, v, r, z_of_pairs);
      path_z = z_of_pairs;
    }
    for (int i = 0; i < n; ++i) r[i] = 0;
    add_product(d_.E, v, n, k_, x_, r);
    add_product(system_.E, v, n, k_, dx, r);
    add_product(d_.H, v, n, m_, u_, r);
    add_product(system_.H, v, n, m_, du_, r);
    add_product(d_.M, v, n, n, path_z, r);
    add(d_.q, v, n, r);
    solve(s, v, states, r, dz);
    for (int i = 0; i < n; ++i) dw[i] = r[i];
    add_product(system_.M, v, n, n, dz, dw);
    for (int i = 0; i < n && !walk_.is_smoothed; ++i) {
      stdx::where(states[i] == V(solver::PairState::kBasic), dw[i]) = 0;
    }

    const Mask<V> changes = has_change_[v] != V(0) || is_any(m_, du_);
    has_change_[v] = choose(changes, V(1), V(0));
    const Mask<V> unsolved = status != V(0);
    const V failed = choose(changes, V(std::numeric_limits<double>::quiet_NaN()), V(0));
    const std::int64_t at = s * walk_.to.batch + std::int64_t{v} * kWidth;
    const auto write = [&](int size, V* x, T* to) LCP_INLINE_LAMBDA {
      for (int i = 0; i < size; ++i) stdx::where(unsolved, x[i]) = failed;
      write_lanes<double>(lanes(v), size, x, to + at * size);
    };
    write(n, dz, walk_.to.z);
    write(n, dw, walk_.to.w);
    const V* moving_w = w;
    if (walk_.cone != nullptr) {
      if (!walk_.is_smoothed) hold(n, walk_.cone, z, w, dw);
      for (int i = 0; i < n; ++i) r[i] = w[i];
      hold(n, walk_.cone, z, w, r);
      moving_w = r;
    }
    for (int i = 0; i < k_; ++i) dx_next_[i] = 0;
    add_product(d_.A, v, k_, k_, x_, dx_next_);
    add_product(system_.A, v, k_, k_, dx, dx_next_);
    add_product(d_.B, v, k_, m_, u_, dx_next_);
    add_product(system_.B, v, k_, m_, du_, dx_next_);
    add_product(d_.D, v, k_, n, z, dx_next_);
    add_product(system_.D, v, k_, n, dz, dx_next_);
    add_product(d_.G, v, k_, n, moving_w, dx_next_);
    add_product(system_.G, v, k_, n, dw, dx_next_);
    add(d_.d, v, k_, dx_next_);
    write(k_, dx_next_, walk_.to.x_next);
    for (int i = 0; i < k_; ++i) dx[i] = dx_next_[i];
  }

  // The state at the beginning of the step.
  LCP_INLINE void read_start(std::int64_t s, int v) {
    if (s > 0) {
      read_step<double>(walk_.walked.x_next, s - 1, v, lanes(v), k_, x_);
    } else {
      read_step<double>(StepsView<T>{walk_.given.x.data, 0, walk_.given.x.shared}, 0, v, lanes(v), k_, x_);
    }
  }

  // Fetches the memory of the next step, as a walk forward does.
  LCP_INLINE void fetch_next(std::int64_t s, int v, bool needs_x, bool needs_z, bool needs_w) const {
    if (s + 1 == walk_.steps) return;
    const WalkedSteps<T>& walked = walk_.walked;
    if (needs_x) fetch_step<double>(walked.x_next, s, v, k_);
    if (needs_z) fetch_step<double>(walked.z, s + 1, v, n());
    if (needs_w) fetch_step<double>(walked.w, s + 1, v, n());
    fetch_step<double>(walked.states, s + 1, v, n());
    fetch_step<double>(walk_.change.u, s + 1, v, m_);
    const std::int64_t at = (s + 1) * walk_.to.batch + std::int64_t{v} * kWidth;
    fetch<double>(walk_.to.x_next + at * k_, k_);
    fetch<double>(walk_.to.z + at * n(), n());
    fetch<double>(walk_.to.w + at * n(), n());
  }

  LCP_NOINLINE void find_point(std::int64_t s, int v, const V* q, V* z) const {
    write_lanes<double>(lanes(v), n(), q, walk_.r_buffer);
    walk_.find_points(walk_.self, s, std::int64_t{v} * kWidth, lanes(v));
    read_lanes<double>(lanes(v), n(), walk_.z_buffer, z);
  }

  // dz = J' (r, 0) for the transpose of M.
  LCP_INLINE void solve(std::int64_t s, int v, const V* states, const V* r, V* dz) const {
    if constexpr (kPairs > 0) {
      if (!walk_.is_smoothed) {
        const V* const M = system_.M.of(v);
        V* const none = of_pairs_ + 6 * kPairs;
        for (int i = 0; i < kPairs; ++i) {
          none[i] = 0;
          for (int j = 0; j < kPairs; ++j) transposed_M_[j * kPairs + i] = M[i * kPairs + j];
        }
        using batch::LCP_ISA::adjoint;
        Mask<V> clear = adjoint<kPairs, T>(transposed_M_, states, r, none, walk_.tied_active, dz);
        if (walk_.midpoint) clear = clear && add_other_piece(states, r, none, dz);
        if (stdx::all_of(clear)) return;
        for (int l = 0; l < lanes(v); ++l) {
          if (!clear[l]) solve_lane(s, v, l, r, dz);
        }
        return;
      }
    }
    write_lanes<double>(lanes(v), n(), r, walk_.r_buffer);
    walk_.solve(walk_.self, s, std::int64_t{v} * kWidth, lanes(v));
    read_lanes<double>(lanes(v), n(), walk_.z_buffer, dz);
  }

  LCP_NOINLINE void solve_lane(std::int64_t s, int v, int l, const V* r, V* dz) const {
    for (int i = 0; i < kPairs; ++i) walk_.r_buffer[i] = static_cast<T>(r[i][l]);
    walk_.solve(walk_.self, s, std::int64_t{v} * kWidth + l, 1);
    for (int i = 0; i < kPairs; ++i) dz[i][l] = static_cast<double>(walk_.z_buffer[i]);
  }

  // The mean with the piece where tied pairs are active; unchanged where both agree.
  LCP_NOINLINE Mask<V> add_other_piece(const V* states, const V* r, const V* none, V* dz) const {
    Mask<V> tied(false);
    for (int i = 0; i < kPairs; ++i) tied = tied || states[i] == V(solver::PairState::kTied);
    if (stdx::none_of(tied)) return Mask<V>(true);
    V* const other = of_pairs_ + 7 * kPairs;
    const Mask<V> clear = batch::LCP_ISA::adjoint<kPairs, T>(transposed_M_, states, r, none, true, other);
    for (int i = 0; i < kPairs; ++i) dz[i] = multiply_add(V(0.5), other[i] - dz[i], dz[i]);
    return clear;
  }

  const TangentWalk<T>& walk_;
  const int k_ = walk_.size.k, m_ = walk_.size.m;
  int vectors_;
  Workspace workspace_;
  SystemEntries system_, d_;
  V *dx_, *has_change_, *x_, *dx_next_, *u_, *du_, *of_pairs_, *transposed_M_;
};

template <int N, class T>
void walk_changes(const TangentWalk<T>& walk) {
  WalkOfChanges<N, T>(walk).run();
}

}  // namespace lcp::lcs::LCP_ISA
