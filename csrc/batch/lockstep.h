// Lemke's method on as many problems as a vector has lanes, pivot by pivot, each lane with its own rows and columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "batch/interleave.h"
#include "batch/kernels.h"
#include "batch/states.h"
#include "batch/verify.h"
#include "simd/lanes.h"
#include "solver/lemke.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// The method of solver/lemke.h for 4 < n <= kLockstep, with the options that the ladder tries first, so that both take
// the same pivots. It is written twice because a pivot here is one of every lane, in rows and columns of its own that
// masks select; solver/lemke_pivots.h keeps one tableau by columns and touches each once. A test holds the two to the
// same bases. Lanes that end on a ray, or need far more pivots than their neighbours may wait for, are left to the
// ladder.
template <class T>
class Lockstep {
  using V = Lanes<double>;
  static constexpr int kWidth = kLanes<double>;
  static constexpr solver::Lemke::Options kOptions = {};

 public:
  /// workspace: lockstep_workspace(n) numbers, aligned; perturbation: n.
  Lockstep(int n, double* workspace, const double* perturbation)
      : n_(n),
        perturbation_(perturbation),
        M_(workspace),
        tableau_(M_ + n * n * kWidth),
        q_(tableau_ + n * (n + 3) * kWidth),
        z_(q_ + n * kWidth),
        w_(z_ + n * kWidth),
        driving_(w_ + n * kWidth),
        reciprocal_(driving_ + n * kWidth),
        rate_(reciprocal_ + n * kWidth),
        row_variable_(rate_ + n * kWidth),
        column_variable_(row_variable_ + n * kWidth) {}

  void load_matrices(int problems, const T* M) { load_interleaved(problems, n_ * n_, M, M_); }
  void broadcast_matrix(const T* M) { broadcast_interleaved(n_ * n_, M, M_); }

  // Solves up to kWidth problems.
  void solve(int problems, const T* q, double tolerance, const Solutions<T>& solutions) {
    load_interleaved(problems, n_, q, q_);
    pivot_all();
    const Mask<V> solved = verify_pivoted(tolerance);
    store_interleaved(problems, n_, z_, solutions.z);
    store_interleaved(problems, n_, w_, solutions.w);
    for (int l = 0; l < problems; ++l) solutions.status[l] = solved[l] ? std::int8_t{0} : kLeftOver;
    if (solutions.states == nullptr) return;
    find_states(n_, M_, q_, z_, w_, rate_, driving_);  // no pivot needs driving_ any more
    store_interleaved(problems, n_, driving_, solutions.states);
  }

 private:
  double* row_variable(int i) const { return row_variable_ + i * kWidth; }
  double* column_variable(int j) const { return column_variable_ + j * kWidth; }
  double* entry(int i, int j) const { return tableau_ + (j * n_ + i) * kWidth; }

  // Fills z; NaN in the lanes whose artificial variable has not left.
  void pivot_all() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    largest_q_ = 0;
    V least = infinity;
    for (int i = 0; i < n_; ++i) {
      const V q = load_aligned(q_ + i * kWidth);
      least = stdx::min(least, q);
      largest_q_ = stdx::max(largest_q_, stdx::abs(q));
      for (int j = 0; j < n_; ++j) store_aligned(load_aligned(M_ + (i * n_ + j) * kWidth), entry(i, j));
      store_aligned(1, entry(i, n_));
      store_aligned(q, entry(i, n_ + 1));
      store_aligned(perturbation_[i], entry(i, n_ + 2));
      store_aligned(i, row_variable(i));
      store_aligned(n_ + i, column_variable(i));
      store_aligned(1, driving_ + i * kWidth);
      store_aligned(-1, reciprocal_ + i * kWidth);
      drives_[i] = Mask<V>(false);
    }
    store_aligned(2 * n_, column_variable(n_));
    Mask<V> active = least < V(0);
    Mask<V> open = active;
    drives_[n_] = active;
    for (int i = 0; i < n_; ++i) {
      V rate = infinity;
      stdx::where(load_aligned(q_ + i * kWidth) == least, rate) = perturbation_[i];
      store_aligned(rate, rate_ + i * kWidth);
    }
    block_least_rate(active);
    for (int i = 0; i < n_; ++i) artificial_[i] = blocks_[i];
    const int most = 4 * n_ + 8;
    for (int step = 0; step < most && stdx::any_of(active); ++step) {
      pivot();
      exchange(active, open);
      find_driving();
      ratio_test(active);
    }
    read_solution(open);
  }

  // The pivot T <- T - T_.c T_r. / T_rc, column by column; the old entries of the driving column count as 0. In lanes
  // that have ended no row blocks and no column drives, so that 0 is added.
  void pivot() {
    V inverse = 0;
    for (int i = 0; i < n_; ++i) stdx::where(blocks_[i], inverse) = -load_aligned(reciprocal_ + i * kWidth);
    for (int j = 0; j < n_ + 3; ++j) {
      V multiple = 0;
      for (int i = 0; i < n_; ++i) stdx::where(blocks_[i], multiple) = load_aligned(entry(i, j));
      multiple = -inverse * multiple;
      if (j <= n_) stdx::where(drives_[j], multiple) = inverse;
      for (int i = 0; i < n_; ++i) {
        V x = load_aligned(entry(i, j));
        if (j <= n_) stdx::where(drives_[j], x) = 0;
        x = multiply_add(load_aligned(driving_ + i * kWidth), multiple, x);
        stdx::where(blocks_[i], x) = multiple;
        store_aligned(x, entry(i, j));
      }
    }
  }

  // The complement of the variable that left each lane's basis becomes its driving variable. A lane whose artificial
  // variable left has its solution.
  void exchange(Mask<V>& active, Mask<V>& open) {
    V left = -1;
    V entered = -1;
    for (int i = 0; i < n_; ++i) stdx::where(blocks_[i], left) = load_aligned(row_variable(i));
    for (int j = 0; j <= n_; ++j) {
      V variable = load_aligned(column_variable(j));
      stdx::where(drives_[j], entered) = variable;
      stdx::where(drives_[j], variable) = left;
      store_aligned(variable, column_variable(j));
    }
    for (int i = 0; i < n_; ++i) {
      V variable = load_aligned(row_variable(i));
      stdx::where(blocks_[i], variable) = entered;
      store_aligned(variable, row_variable(i));
    }
    const Mask<V> done = left == V(2 * n_);
    active = active && !done;
    open = open && !done;
    V complement = left - n_;
    stdx::where(left < V(n_), complement) = left + n_;
    for (int j = 0; j <= n_; ++j) drives_[j] = load_aligned(column_variable(j)) == complement && active;
  }

  // Copies the driving column of each lane; 0 in lanes that have ended.
  void find_driving() {
    for (int i = 0; i < n_; ++i) {
      V x = 0;
      for (int j = 0; j <= n_; ++j) stdx::where(drives_[j], x) = load_aligned(entry(i, j));
      store_aligned(x, driving_ + i * kWidth);
    }
  }

  // The ratio test of solver/lemke_pivots.h in each active lane; a lane in which nothing blocks ends on a ray.
  void ratio_test(Mask<V>& active) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    V largest = 0;
    for (int i = 0; i < n_; ++i) largest = stdx::max(largest, stdx::abs(load_aligned(driving_ + i * kWidth)));
    const V threshold = -kOptions.pivot_tolerance * largest;
    V least = infinity;
    V artificial_ratio = infinity;
    for (int i = 0; i < n_; ++i) {
      const V x = load_aligned(driving_ + i * kWidth);
      const V reciprocal = -1.0 / x;
      store_aligned(reciprocal, reciprocal_ + i * kWidth);
      V ratio = infinity;
      stdx::where(x < threshold, ratio) = stdx::max(V(0), load_aligned(entry(i, n_ + 1))) * reciprocal;
      store_aligned(ratio, rate_ + i * kWidth);
      least = stdx::min(least, ratio);
      stdx::where(artificial_[i], artificial_ratio) = ratio;
    }
    active = active && least < V(infinity);
    const V limit = multiply_add(V(kOptions.tie_tolerance), stdx::max(least, V(1e-3 * largest_q_)), least);
    const Mask<V> ends = artificial_ratio <= limit;
    for (int i = 0; i < n_; ++i) {
      V rate = infinity;
      stdx::where(load_aligned(rate_ + i * kWidth) <= limit, rate) =
          load_aligned(entry(i, n_ + 2)) * load_aligned(reciprocal_ + i * kWidth);
      stdx::where(ends && artificial_[i], rate) = -infinity;
      store_aligned(rate, rate_ + i * kWidth);
    }
    block_least_rate(active);
    for (int j = 0; j <= n_; ++j) drives_[j] = drives_[j] && active;
  }

  // Marks in each active lane the first row with the least rate.
  void block_least_rate(Mask<V> active) {
    V least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < n_; ++i) least = stdx::min(least, load_aligned(rate_ + i * kWidth));
    for (int i = 0; i < n_; ++i) {
      blocks_[i] = load_aligned(rate_ + i * kWidth) == least && active;
      active = active && !blocks_[i];
    }
  }

  void read_solution(Mask<V> open) {
    V largest_z = 0;
    for (int v = 0; v < n_; ++v) {
      V z = 0;
      for (int i = 0; i < n_; ++i) {
        stdx::where(load_aligned(row_variable(i)) == V(n_ + v), z) = stdx::max(V(0), load_aligned(entry(i, n_ + 1)));
      }
      store_aligned(z, z_ + v * kWidth);
      largest_z = stdx::max(largest_z, z);
    }
    // A z of at most this share of the largest is round-off of 0, see Walk::solve in walk.h.
    const V negligible = 8 * std::numeric_limits<double>::epsilon() * largest_z;
    for (int i = 0; i < n_; ++i) {
      V z = load_aligned(z_ + i * kWidth);
      stdx::where(z <= negligible, z) = 0;
      stdx::where(open, z) = std::numeric_limits<double>::quiet_NaN();
      store_aligned(z, z_ + i * kWidth);
    }
  }

  // Fills w, and rate_ with the scales s_i of verify.h; returns whether z, as it is stored, is a solution. A pivoted
  // basis is solved to round-off: a row may miss by no more than the round-off of the largest q, or of its own terms
  // where these are larger.
  Mask<V> verify_pivoted(double tolerance) {
    if constexpr (sizeof(T) < sizeof(double)) {
      for (int k = 0; k < n_ * kWidth; ++k) z_[k] = static_cast<double>(static_cast<T>(z_[k]));
    }
    const auto M = [this](int i, int j) LCP_INLINE_LAMBDA { return load_aligned(M_ + (i * n_ + j) * kWidth); };
    const auto at = [](const double* x) LCP_INLINE_LAMBDA {
      return [x](int i) LCP_INLINE_LAMBDA { return load_aligned(x + i * kWidth); };
    };
    return verify<T, double>(
        n_, M, [&M](int i, int j) LCP_INLINE_LAMBDA { return stdx::abs(M(i, j)); }, at(q_), at(z_), largest_q_,
        tolerance,
        [this](const V& terms) LCP_INLINE_LAMBDA {
          return stdx::max(V(kNearRoundOff<T> * largest_q_), (n_ + 1) * std::numeric_limits<double>::epsilon() * terms);
        },
        [this](int i, const V& w, const V& scale, const V&) LCP_INLINE_LAMBDA {
          store_aligned(w, w_ + i * kWidth);
          store_aligned(scale, rate_ + i * kWidth);
        });
  }

  // Writes the states of the pairs. A function of its own, not inlined, that does not know this object: its members
  // then stay in registers while the kernel pivots.
  [[gnu::noinline]] static void find_states(int n, const double* M, const double* q, const double* z, const double* w,
                                            const double* scale, double* states) {
    V limit[kLockstep], excess[kLockstep];
    Mask<V> basic[kLockstep], tied[kLockstep], negligible[kLockstep];
    const auto at = [](const double* x) LCP_INLINE_LAMBDA {
      return [x](int i) LCP_INLINE_LAMBDA { return load_aligned(x + i * kWidth); };
    };
    const auto doubtful = solver::find_pair_states<LaneArithmetic<double>, true>(
        n, n, std::numeric_limits<T>::epsilon(),
        [M, n](int i, int j) LCP_INLINE_LAMBDA { return load_aligned(M + (i * n + j) * kWidth); }, at(q), at(z), at(w),
        at(scale), {limit, excess, basic, negligible, tied},
        [states, &tied](int j, const auto& is_basic)
            LCP_INLINE_LAMBDA { store_aligned(state_numbers<double>(is_basic, tied[j]), states + j * kWidth); });
    V first = load_aligned(states);
    stdx::where(doubtful, first) = solver::PairState::kDoubtful;
    store_aligned(first, states);
  }

  int n_;
  const double* perturbation_;
  double *M_, *tableau_, *q_, *z_, *w_, *driving_, *reciprocal_, *rate_, *row_variable_, *column_variable_;
  V largest_q_ = 0;
  Mask<V> drives_[kLockstep + 1], blocks_[kLockstep], artificial_[kLockstep];
};

template <class T>
[[gnu::flatten]] void solve_lockstep(int n, std::int64_t count, BatchView<T> M, const T* q, double tolerance,
                                     const double* perturbation, double* workspace, const Solutions<T>& solutions) {
  constexpr int width = kLanes<double>;
  Lockstep<T> lockstep(n, workspace, perturbation);
  if (M.shared) lockstep.broadcast_matrix(M.data);
  for (std::int64_t b = 0; b < count; b += width) {
    const int problems = count - b < width ? static_cast<int>(count - b) : width;
    if (!M.shared) lockstep.load_matrices(problems, M.data + b * n * n);
    lockstep.solve(problems, q + b * n, tolerance,
                   {solutions.z + b * n, solutions.w + b * n, solutions.status + b,
                    solutions.states == nullptr ? nullptr : solutions.states + b * n});
  }
}

}  // namespace lcp::batch::LCP_ISA
