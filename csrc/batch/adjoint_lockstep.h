// J' of solver/active_set.h for problems too large for adjoint.h, one in each lane.
#pragma once

#include <cstdint>

#include "batch/adjoint.h"
#include "batch/interleave.h"
#include "batch/kernels.h"
#include "batch/states.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// The adjoint for kSmall < n <= kLockstep. The elimination and its estimate are those of adjoint.h, written for memory.
// Only pairs that are active in some lane have a row, columns are updated one after another, and rows are exchanged
// only where a lane needs it. A test compares the derivatives of this class, of adjoint.h and of solver::ActiveSet.
template <class T>
class LockstepAdjoint {
  using V = Lanes<double>;
  static constexpr int kWidth = kLanes<double>;

 public:
  /// workspace: adjoint_workspace(n) numbers, aligned.
  LockstepAdjoint(int n, bool tied_active, double* workspace)
      : n_(n),
        tied_active_(tied_active),
        M_(workspace),
        states_(M_ + n * n * kWidth),
        g_z_(states_ + n * kWidth),
        g_w_(g_z_ + n * kWidth),
        inactive_g_(g_w_ + n * kWidth),
        t_(inactive_g_ + n * kWidth),
        system_(t_ + n * kWidth) {}

  double* M() { return M_; }
  double* states() { return states_; }
  double* g_z() { return g_z_; }
  double* g_w() { return g_w_; }
  const double* t() const { return t_; }

  // Fills t = J' (g_z, g_w); true in the lanes where t can be trusted.
  Mask<V> compute() {
    const Mask<V> solved = find_active();
    const V largest = set_system();
    const V growth = solve_system();
    return read_solution() && solved && growth * largest < V(kClearCondition<T>);
  }

 private:
  // Column j of the system; its right-hand side is the last column.
  double* column(int j) const { return system_ + j * (size_ + 1) * kWidth; }

  // Finds the active pairs of each lane and, for used_, those that are active in any lane. Returns which lanes have a
  // solution.
  Mask<V> find_active() {
    size_ = 0;
    for (int j = 0; j < n_; ++j) {
      active_[j] = is_active(load_aligned(states_ + j * kWidth), tied_active_);
      if (stdx::any_of(active_[j])) used_[size_++] = j;
    }
    return load_aligned(states_) >= V(0);
  }

  // M_aa' t_a = -(g_z,a + M_ba' g_w,b) and t_b = g_w,b as one system with a row for each pair in used_. Returns
  // max |M_aa|.
  V set_system() {
    for (int j = 0; j < n_; ++j) {
      V inactive_g = load_aligned(g_w_ + j * kWidth);
      stdx::where(active_[j], inactive_g) = 0;
      store_aligned(inactive_g, inactive_g_ + j * kWidth);
    }
    V largest = 0;
    for (int r = 0; r < size_; ++r) {
      const int i = used_[r];
      V sum = -load_aligned(g_z_ + i * kWidth);
      for (int j = 0; j < n_; ++j) {
        sum = subtract_product(load_aligned(M_ + (j * n_ + i) * kWidth), load_aligned(inactive_g_ + j * kWidth), sum);
      }
      stdx::where(!active_[i], sum) = load_aligned(g_w_ + i * kWidth);
      store_aligned(sum, column(size_) + r * kWidth);
      V largest_here = 0;
      for (int c = 0; c < size_; ++c) {
        const int j = used_[c];
        V x = 0;
        stdx::where(active_[i] && active_[j], x) = load_aligned(M_ + (j * n_ + i) * kWidth);
        largest_here = stdx::max(largest_here, stdx::abs(x));
        if (r == c) stdx::where(!active_[i], x) = 1;
        store_aligned(x, column(c) + r * kWidth);
      }
      largest = stdx::max(largest, largest_here);
    }
    for (int c = 0; c <= size_; ++c) store_aligned(0, column(c) + size_ * kWidth);
    return largest;
  }

  // Solves the system by elimination with row pivoting. Returns an estimate of |U^-1| in the active columns: the
  // largest y_c where U'y = d and each d_c = -1 or 1 makes |y_c| the larger [Cline, Moler, Stewart, Wilkinson, 1979].
  // The pivots alone do not show |U^-1|, least of all in a triangular matrix. The sums for y are the system's last row.
  V solve_system() {
    V growth = 0;
    has_pivot_[size_] = Mask<V>(false);
    for (int c = 0; c < size_; ++c) {
      double* const factors = column(c);
      const V diagonal = load_aligned(factors + c * kWidth);
      V largest = stdx::abs(diagonal);
      for (int r = c + 1; r < size_; ++r) largest = stdx::max(largest, stdx::abs(load_aligned(factors + r * kWidth)));
      V pivot = diagonal;
      Mask<V> elsewhere = stdx::abs(diagonal) < largest;
      const bool exchanges = stdx::any_of(elsewhere);
      if (exchanges) {
        for (int r = c + 1; r < size_; ++r) {
          V x = load_aligned(factors + r * kWidth);
          has_pivot_[r] = elsewhere && stdx::abs(x) == largest;
          elsewhere = elsewhere && !has_pivot_[r];
          stdx::where(has_pivot_[r], pivot) = x;
          stdx::where(has_pivot_[r], x) = diagonal;
          store_aligned(x, factors + r * kWidth);
        }
      }
      const V inverse = 1.0 / pivot;
      store_aligned(inverse, factors + c * kWidth);
      const V sum = load_aligned(factors + size_ * kWidth);
      store_aligned(sum + stdx::copysign(V(1), sum), factors + size_ * kWidth);
      for (int r = c + 1; r <= size_; ++r)
        store_aligned(load_aligned(factors + r * kWidth) * inverse, factors + r * kWidth);
      stdx::where(active_[used_[c]], growth) = stdx::max(growth, stdx::abs(load_aligned(factors + size_ * kWidth)));
      for (int j = c + 1; j <= size_; ++j) {
        if (exchanges) {
          eliminate<true>(c, factors, column(j));
        } else {
          eliminate<false>(c, factors, column(j));
        }
      }
    }
    double* const x = column(size_);
    for (int c = size_ - 1; c >= 0; --c) {
      const double* const factors = column(c);
      const V x_c = load_aligned(x + c * kWidth) * load_aligned(factors + c * kWidth);
      store_aligned(x_c, x + c * kWidth);
      for (int r = 0; r < c; ++r) {
        store_aligned(subtract_product(load_aligned(factors + r * kWidth), x_c, load_aligned(x + r * kWidth)),
                      x + r * kWidth);
      }
    }
    return growth;
  }

  // Eliminates with pivot c in one column x, from row c on. Its loops are not unrolled: the compiler knows that they
  // have at most kLockstep turns and would write out all of them, which is slower.
  template <bool exchanges>
  void eliminate(int c, const double* factors, double* x) const {
    const V x_c = load_aligned(x + c * kWidth);
    V pivot = x_c;
    if constexpr (exchanges) {
#pragma GCC unroll 1
      for (int r = c + 1; r < size_; ++r) stdx::where(has_pivot_[r], pivot) = load_aligned(x + r * kWidth);
      store_aligned(pivot, x + c * kWidth);
    }
#pragma GCC unroll 1
    for (int r = c + 1; r <= size_; ++r) {
      V x_r = load_aligned(x + r * kWidth);
      if constexpr (exchanges) stdx::where(has_pivot_[r], x_r) = x_c;
      store_aligned(subtract_product(load_aligned(factors + r * kWidth), pivot, x_r), x + r * kWidth);
    }
  }

  // Fills t; true where it is finite.
  Mask<V> read_solution() {
    for (int i = 0; i < n_; ++i) store_aligned(load_aligned(g_w_ + i * kWidth), t_ + i * kWidth);
    for (int r = 0; r < size_; ++r) {
      const int i = used_[r];
      V t = load_aligned(t_ + i * kWidth);
      // The sign of a zero may depend on the pairs that other lanes use; adding 0 makes it positive.
      stdx::where(active_[i], t) = load_aligned(column(size_) + r * kWidth) + 0.0;
      store_aligned(t, t_ + i * kWidth);
    }
    Mask<V> finite(true);
    for (int i = 0; i < n_; ++i) {
      finite = finite && stdx::abs(load_aligned(t_ + i * kWidth)) <= V(std::numeric_limits<double>::max());
    }
    return finite;
  }

  int n_;
  bool tied_active_;
  double *M_, *states_, *g_z_, *g_w_, *inactive_g_, *t_, *system_;
  int size_ = 0;         // rows of the system
  int used_[kLockstep];  // the pairs that have a row
  Mask<V> active_[kLockstep], has_pivot_[kLockstep + 1];
};

template <class T>
[[gnu::flatten]] void adjoint_lockstep(int n, std::int64_t count, BatchView<T> M, const std::int8_t* states,
                                       BatchView<T> g_z, BatchView<T> g_w, bool tied_active, double* workspace, T* t,
                                       std::int8_t* status) {
  constexpr int width = kLanes<double>;
  LockstepAdjoint<T> adjoint(n, tied_active, workspace);
  if (M.shared) broadcast_interleaved(n * n, M.data, adjoint.M());
  if (g_z.shared) broadcast_interleaved(n, g_z.data, adjoint.g_z());
  if (g_w.shared) broadcast_interleaved(n, g_w.data, adjoint.g_w());
  const auto run = [&](std::int64_t b, int problems) LCP_INLINE_LAMBDA {
    const auto load = [problems](int size, const auto* source, double* target)
                          LCP_INLINE_LAMBDA { load_interleaved(problems, size, source, target); };
    if (!M.shared) load(n * n, M.data + b * n * n, adjoint.M());
    if (!g_z.shared) load(n, g_z.data + b * n, adjoint.g_z());
    if (!g_w.shared) load(n, g_w.data + b * n, adjoint.g_w());
    load(n, states + b * n, adjoint.states());
    const Mask<Lanes<double>> clear = adjoint.compute();
    store_interleaved(problems, n, adjoint.t(), t + b * n);
    for (int l = 0; l < problems; ++l) status[b + l] = clear[l] ? std::int8_t{0} : kLeftOver;
  };
  const std::int64_t whole = count / width * width;
  for (std::int64_t b = 0; b < whole; b += width) run(b, width);
  if (whole < count) run(whole, static_cast<int>(count - whole));
}

}  // namespace lcp::batch::LCP_ISA
