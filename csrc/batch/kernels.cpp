#include "batch/kernels.h"

#include <algorithm>

#include "batch/accept.h"
#include "batch/adjoint.h"
#include "batch/adjoint_lockstep.h"
#include "batch/enumerate.h"
#include "batch/lockstep.h"
#include "batch/outer.h"
#include "batch/walk.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;
namespace {

// The number of vectors in a group of problems; a group is enumerated as a whole, then verified. The processor overlaps
// the turns of two short loops better than those of one long loop.
constexpr int kVectors = 8;

// Marks the elements that are not good. Not inlined, since most vectors of problems do not come here.
template <class T>
[[gnu::noinline]] void mark_some(const Mask<Lanes<T>>& good, std::int8_t* status) {
  Lanes<T> numbers = T(kLeftOver);
  stdx::where(good, numbers) = T(0);
  write<T>(std::bit_cast<Native<T>>(numbers), status);
}

template <class T>
LCP_INLINE inline void mark(const Mask<Lanes<T>>& good, std::int8_t* status) {
  if (stdx::all_of(good)) {
    std::memset(status, 0, kLanes<T>);
  } else {
    mark_some<T>(good, status);
  }
}

// Reads `count` numbers of each problem of a vector, the first of which is problem `at`.
template <int count, class L, class T>
LCP_INLINE inline void read_view(BatchView<T> view, std::int64_t at, Lanes<L>* out) {
  if (view.shared) {
    broadcast<count, L>(view.data, out);
  } else {
    load<count, L>(view.data + at * count, out);
  }
}

template <class T>
struct Problems {
  BatchView<T> M;
  const T* q;
  BatchView<T> guess;
};

// The view that begins at element b. The function of batch/elements.h is not used, since a function that all files
// share must not be compiled for one instruction set.
template <class T>
BatchView<T> from(const BatchView<T>& view, std::int64_t b, std::int64_t size) {
  return {view.data + (view.shared ? 0 : b * size), view.shared};
}
template <int N, class T>
Problems<T> from(const Problems<T>& problems, std::int64_t b) {
  return {from(problems.M, b, N * N), problems.q + b * N, from(problems.guess, b, N)};
}
template <int N, class T>
Solutions<T> from(const Solutions<T>& solutions, std::int64_t b) {
  return {solutions.z + b * N, solutions.w + b * N, solutions.status + b,
          solutions.states == nullptr ? nullptr : solutions.states + b * N};
}

// Prefetches the matrices of a later vector of problems: the reads of larger ones come in bursts, which the processor's
// prefetcher does not foresee.
template <int N, class T, class L>
LCP_INLINE inline void prefetch(BatchView<T> M, std::int64_t at) {
  constexpr int line = 64 / sizeof(T);
  if (M.shared) return;
  const T* const first = M.data + at * N * N;
  for (int k = 0; k < kLanes<L> * N * N; k += line) __builtin_prefetch(first + k);
}

// Solves at most kVectors vectors of problems, stored as T and solved as L. shared: the bases of the M that all
// problems share, if it is a P0-matrix, else nullptr.
template <int N, class T, class L, Start start, bool has_bases>
LCP_NOINLINE void solve_vectors(int vectors, const Bases<N, L>* shared, Problems<T> problems, L tolerance,
                                Solutions<T> solutions) {
  using V = Lanes<L>;
  constexpr int width = kLanes<L>;
  V all_M[has_bases ? 1 : kVectors][N * N];
  V all_q[kVectors][N];
  V all_z[kVectors][N];
  V largest_q[kVectors];
  for (int v = 0; v < vectors; ++v) {
    V* const q_v = all_q[v];
    load<N, L>(problems.q + v * width * N, q_v);
    for (int i = 0; i < N; ++i) q_v[i] += L(0);  // -0 becomes 0
    largest_q[v] = largest_of<N, L>(q_v);
    V guess[N];
    if constexpr (start == Start::kGuess) read_view<N, L>(problems.guess, v * width, guess);
    if constexpr (has_bases) {
      enumerate<N, L, start, true>(*shared, q_v, largest_q[v], guess, all_z[v]);
    } else if constexpr (N > kSmall) {
      prefetch<N, T, L>(problems.M, (v + 1) * width);
      read_view<N * N, L>(problems.M, v * width, all_M[v]);
      walk<N, start>(all_M[v], q_v, largest_q[v], start == Start::kGuess ? guess : nullptr, all_z[v]);
    } else {
      Bases<N, L> bases;
      if constexpr (N == kSmall) prefetch<N, T, L>(problems.M, (v + 2) * width);
      read_view<N * N, L>(problems.M, v * width, bases.M);
      bases.set();
      for (int k = 0; k < N * N; ++k) all_M[v][k] = bases.M[k];
      enumerate<N, L, start, false>(bases, q_v, largest_q[v], guess, all_z[v]);
    }
  }
  for (int v = 0; v < vectors; ++v) {
    const V* const q_v = all_q[v];
    V* const z_v = all_z[v];
    V w_v[N];
    V scale[N], sum[N];
    Mask<V> solved;
    if constexpr (sizeof(T) < sizeof(L)) {
      for (int i = 0; i < N; ++i) z_v[i] = rounded<T>(z_v[i]);
    }
    if constexpr (has_bases) {
      solved =
          verify_enumerated<N, T, L>(shared->M, shared->magnitude, q_v, largest_q[v], tolerance, z_v, w_v, scale, sum);
    } else {
      V magnitude[N * N];
      for (int k = 0; k < N * N; ++k) magnitude[k] = stdx::abs(all_M[v][k]);
      solved = verify_enumerated<N, T, L>(all_M[v], magnitude, q_v, largest_q[v], tolerance, z_v, w_v, scale, sum);
    }
    const Solutions<T> target = from<N>(solutions, v * width);
    store<N, L>(z_v, target.z);
    store<N, L>(w_v, target.w);
    mark<L>(solved, target.status);
    if (target.states != nullptr) {
      const V* const M = has_bases ? shared->M : all_M[v];
      V states[N];
      const Mask<V> doubtful =
          find_states<N, L, (N > kSmall)>(std::numeric_limits<T>::epsilon(), M, q_v, z_v, w_v, scale, states);
      if constexpr (N > kSmall) stdx::where(doubtful, states[0]) = V(L(solver::PairState::kDoubtful));
      store<N, L>(states, target.states);
    }
  }
}

// Calls work(first, vectors) for whole vectors of problems, then rest(first, count) for less than one.
template <class T, class Work, class Rest>
void by_vectors(std::int64_t count, const Work& work, const Rest& rest) {
  constexpr std::int64_t width = kLanes<T>;
  const std::int64_t vectors = count / width;
  for (std::int64_t v = 0; v < vectors; v += kVectors) {
    work(v * width, static_cast<int>(std::min<std::int64_t>(kVectors, vectors - v)));
  }
  if (vectors * width < count) rest(vectors * width, count - vectors * width);
}

// The last problems, with zeros behind them up to a whole vector.
template <class T, class Lane, int size>
struct Padded {
  T data[kLanes<Lane> * size] = {};
  Padded() = default;
  Padded(const T* source, std::int64_t count) { std::copy_n(source, count * size, data); }
  void copy_to(T* target, std::int64_t count) const { std::copy_n(data, count * size, target); }
};

// Solves a batch as L.
template <int N, class T, class L, Start start, bool has_bases>
void solve_all(std::int64_t count, const Bases<N, L>* bases, const Problems<T>& problems, double tolerance,
               const Solutions<T>& solutions) {
  const L limit = static_cast<L>(tolerance);
  by_vectors<L>(
      count,
      [&](std::int64_t b, int vectors) {
        solve_vectors<N, T, L, start, has_bases>(vectors, bases, from<N>(problems, b), limit, from<N>(solutions, b));
      },
      [&](std::int64_t b, std::int64_t rest) {
        const auto& [M, q, guess] = from<N>(problems, b);
        const auto solution = from<N>(solutions, b);
        const Padded<T, L, N * N> last_M(M.data, M.shared ? 1 : rest);
        const Padded<T, L, N> last_q(q, rest);
        const Padded<T, L, N> last_guess(guess.data, start == Start::kNothing ? 0 : guess.shared ? 1 : rest);
        Padded<T, L, N> last_z, last_w;
        Padded<std::int8_t, L, 1> last_status;
        Padded<std::int8_t, L, N> last_states;
        solve_vectors<N, T, L, start, has_bases>(
            1, bases, {{last_M.data, M.shared}, last_q.data, {last_guess.data, guess.shared}}, limit,
            {last_z.data, last_w.data, last_status.data, solution.states == nullptr ? nullptr : last_states.data});
        last_z.copy_to(solution.z, rest);
        last_w.copy_to(solution.w, rest);
        last_status.copy_to(solution.status, rest);
        if (solution.states != nullptr) last_states.copy_to(solution.states, rest);
      });
}

template <int N, class T>
void solve(std::int64_t count, BatchView<T> M, const T* q, BatchView<T> guess, double tolerance,
           const Solutions<T>& solutions) {
  const Problems<T> problems = {M, q, guess};
  using L = std::conditional_t<(N > kSmall), double, T>;
  if (guess.data != nullptr) {
    solve_all<N, T, L, Start::kGuess, false>(count, nullptr, problems, tolerance, solutions);
    return;
  }
  if constexpr (N <= kSmall) {
    if (M.shared) {
      Bases<N, T> bases;
      broadcast<N * N, T>(M.data, bases.M);
      bases.set();
      if (bases.is_p0()) {
        solve_all<N, T, T, Start::kNothing, true>(count, &bases, problems, tolerance, solutions);
        return;
      }
    }
  }
  solve_all<N, T, L, Start::kNothing, false>(count, nullptr, problems, tolerance, solutions);
}

// Solves in double precision, whatever T is.
template <int N, class T>
void solve_as_double(std::int64_t count, BatchView<T> M, const T* q, BatchView<T> guess, double tolerance,
                     const Solutions<T>& solutions) {
  constexpr T zero[N] = {};  // a guess that proposes the empty basis, which is tried first anyway
  solve_all<N, T, double, Start::kGuess, false>(
      count, nullptr, {M, q, guess.data == nullptr ? BatchView<T>{zero, true} : guess}, tolerance, solutions);
}

// All adjoints are computed in double precision.
using D = double;

template <int N, class T>
LCP_NOINLINE void adjoint_vectors(int vectors, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z,
                                  BatchView<T> g_w, bool tied_active, T* t, std::int8_t* status) {
  using V = Lanes<D>;
  constexpr int width = kLanes<D>;
  for (int v = 0; v < vectors; ++v) {
    V M_v[N * N], states_v[N], g_z_v[N], g_w_v[N], t_v[N];
    const int at = v * width * N;
    read_view<N * N, D>(M, v * width, M_v);
    load<N, D>(states + at, states_v);
    read_view<N, D>(g_z, v * width, g_z_v);
    read_view<N, D>(g_w, v * width, g_w_v);
    const Mask<V> good = adjoint<N, T>(M_v, states_v, g_z_v, g_w_v, tied_active, t_v);
    store<N, D>(t_v, t + at);
    mark<D>(good, status + v * width);
  }
}

template <int N, class T>
void adjoint_all(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z, BatchView<T> g_w,
                 bool tied_active, T* t, std::int8_t* status) {
  by_vectors<D>(
      count,
      [&](std::int64_t b, int vectors) {
        adjoint_vectors<N, T>(vectors, from(M, b, N * N), states + b * N, from(g_z, b, N), from(g_w, b, N), tied_active,
                              t + b * N, status + b);
      },
      [&](std::int64_t b, std::int64_t rest) {
        const auto count_of = [rest](const BatchView<T>& view) { return view.shared ? 1 : rest; };
        const Padded<T, D, N * N> last_M(from(M, b, N * N).data, count_of(M));
        const Padded<std::int8_t, D, N> last_states(states + b * N, rest);
        const Padded<T, D, N> last_g_z(from(g_z, b, N).data, count_of(g_z));
        const Padded<T, D, N> last_g_w(from(g_w, b, N).data, count_of(g_w));
        Padded<T, D, N> last_t;
        Padded<std::int8_t, D, 1> last_status;
        adjoint_vectors<N, T>(1, {last_M.data, M.shared}, last_states.data, {last_g_z.data, g_z.shared},
                              {last_g_w.data, g_w.shared}, tied_active, last_t.data, last_status.data);
        last_t.copy_to(t + b * N, rest);
        last_status.copy_to(status + b, rest);
      });
}

template <int N, class T>
LCP_INLINE inline void load_outer(const T* t, const T* x, Lanes<D>* product) {
  Lanes<D> t_v[N], x_v[N];
  load<N, D>(t, t_v);
  load<N, D>(x, x_v);
  for (int j = 0; j < N; ++j) stdx::where(x_v[j] != x_v[j], x_v[j]) = 0;
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) product[i * N + j] = t_v[i] * x_v[j];
  }
}

template <int N, class T>
void outer(std::int64_t count, const T* t, const T* x, T* result) {
  constexpr int width = kLanes<D>;
  by_vectors<D>(
      count,
      [&](std::int64_t b, int vectors) {
        for (int v = 0; v < vectors; ++v) {
          const std::int64_t at = (b + v * width) * N;
          Lanes<D> product[N * N];
          load_outer<N>(t + at, x + at, product);
          store<N * N, D>(product, result + at * N);
        }
      },
      [&](std::int64_t b, std::int64_t rest) {
        const Padded<T, D, N> last_t(t + b * N, rest), last_x(x + b * N, rest);
        Padded<T, D, N * N> last_result;
        Lanes<D> product[N * N];
        load_outer<N>(last_t.data, last_x.data, product);
        store<N * N, D>(product, last_result.data);
        last_result.copy_to(result + b * N * N, rest);
      });
}

template <int N, class T>
void sum_outer(std::int64_t count, const T* t, const T* x, double* result) {
  constexpr int width = kLanes<D>;
  Lanes<D> sum[N * N];
  for (int k = 0; k < N * N; ++k) sum[k] = 0;
  const auto add = [&sum](const T* t_v, const T* x_v) LCP_INLINE_LAMBDA {
    Lanes<D> product[N * N];
    load_outer<N>(t_v, x_v, product);
    for (int k = 0; k < N * N; ++k) sum[k] += product[k];
  };
  by_vectors<D>(
      count,
      [&](std::int64_t b, int vectors) {
        for (int v = 0; v < vectors; ++v) add(t + (b + v * width) * N, x + (b + v * width) * N);
      },
      [&](std::int64_t b, std::int64_t rest) {
        const Padded<T, D, N> last_t(t + b * N, rest), last_x(x + b * N, rest);
        add(last_t.data, last_x.data);
      });
  for (int k = 0; k < N * N; ++k) {
    result[k] = 0;
    for (int l = 0; l < width; ++l) result[k] += sum[k][l];
  }
}

template <int N, class T>
constexpr SmallKernels<T> small() {
  if constexpr (sizeof(T) < sizeof(double)) {
    return {solve<N, T>, solve_as_double<N, T>, adjoint_all<N, T>, outer<N, T>, sum_outer<N, T>};
  } else {
    return {solve<N, T>, nullptr, adjoint_all<N, T>, outer<N, T>, sum_outer<N, T>};
  }
}

template <class T>
constexpr TypedKernels<T> typed() {
  return {{small<1, T>(), small<2, T>(), small<3, T>(), small<4, T>()},
          {solve<5, T>, solve<6, T>},
          {solve_lockstep<T>, adjoint_lockstep<T>, outer_rows<T>, sum_outer_rows<T>},
          2 * kNearRoundOff<T>};
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {typed<double>(), typed<float>(),
                        kLanes<double> >= 8   ? kLockstep
                        : kLanes<double> == 4 ? 12
                                              : kEnumerated};

}  // namespace lcp::batch::LCP_ISA
