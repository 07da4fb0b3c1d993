// The kernels of a system, made of its formulas:
//   - System::start computes the numbers of a step that depend on its start and D alone;
//   - System::matrix is the M of its LCP, System::pairs is M z + q;
//   - System::advance is the end of the step for z.
// All but the matrix take numbers of any type; Tangents give forward mode. System::Adjoint has their derivatives in
// reverse mode. The last System::kReported states are numbers that a step reports and no step reads.
#pragma once

#include <limits>

#include "batch/interleave.h"
#include "lcs/lanes.h"
#include "solver/find_pair_states.h"
#include "systems/kernels.h"
#include "systems/numbers.h"
#include "systems/tangent.h"

namespace lcp::systems::LCP_ISA {

using lcs::LCP_ISA::Workspace;

inline constexpr int kWidth = kLanes<double>;

// `size` numbers of each of the `lanes` trajectories of vector v.
template <class T>
LCP_INLINE inline void read_vector(const BatchView<T>& view, int v, int lanes, int size, V* out) {
  if (view.shared) {
    for (int c = 0; c < size; ++c) out[c] = V(static_cast<double>(view.data[c]));
    return;
  }
  const T* const first = view.data + std::ptrdiff_t{v} * kWidth * size;
  if (size <= 4 || 2 * size <= kWidth) {
    lcs::LCP_ISA::read_lanes<double>(lanes, size, first, out);
  } else {
    batch::LCP_ISA::load_interleaved(lanes, size, first, reinterpret_cast<double*>(out));
  }
}
template <class T>
LCP_INLINE inline void read_vector(const lcs::StepsView<T>& view, std::int64_t s, int v, int lanes, int size, V* out) {
  read_vector(BatchView<T>{view.data + s * view.stride, view.shared}, v, lanes, size, out);
}
template <class T>
LCP_INLINE inline void write_vector(const V* in, int v, int lanes, int size, T* p) {
  T* const first = p + std::ptrdiff_t{v} * kWidth * size;
  if (size <= 4 || 2 * size <= kWidth) {
    lcs::LCP_ISA::write_lanes<double>(lanes, size, in, first);
  } else {
    batch::LCP_ISA::store_interleaved(lanes, size, reinterpret_cast<const double*>(in), first);
  }
}

LCP_INLINE inline int vectors_of(std::int64_t count) { return static_cast<int>((count + kWidth - 1) / kWidth); }

// A vector of trajectories starts from these numbers.
template <class System, class T>
struct Given {
  V parameters[System::kParameters], x[System::kStates], u[System::kInputs];

  LCP_INLINE Given(const Step<T>& step, int v, int lanes) {
    read_vector(step.parameters, v, lanes, System::kParameters, parameters);
    read_vector(step.x, v, lanes, System::kStates, x);
    read_vector(step.u, v, lanes, System::kInputs, u);
  }
};

template <class Formulas>
bool fits(const System&, std::int64_t pairs) {
  return Formulas::fits(pairs);
}

template <class Formulas>
std::size_t workspace_size(const System&, int n) {
  constexpr std::size_t number = sizeof(V) / sizeof(double);
  const std::size_t backward = number * (n * n + 7 * n) + Formulas::Adjoint::workspace(n);
  const std::size_t tangent = number * (2 * n * n + 11 * n);
  return backward > tangent ? backward : tangent;
}

template <class System, class T>
void pose(const Step<T>& step, T* M, T* q, double* memory) {
  const int n = System::pairs_of(step.pairs);
  Workspace workspace(memory);
  V* const D = workspace.take<V>(2 * n);
  V* const none = workspace.take<V>(n);
  V* const out = workspace.take<V>(n * n);
  for (int i = 0; i < n; ++i) none[i] = 0;
  for (int v = 0; v < vectors_of(step.count); ++v) {
    const int lanes = lcs::LCP_ISA::lanes_of<double>(step.count, v);
    const Given<System, T> given(step, v, lanes);
    read_vector(step.D, v, lanes, 2 * n, D);
    const auto start = System::start(n, D, given.parameters, given.x, given.u);
    if (M != nullptr) {
      System::matrix(n, start, D, out);
      write_vector(out, v, lanes, n * n, M);
    }
    if (q == nullptr) continue;
    V poison = 0;  // NaN where a number is not finite
    for (const V& x : given.x) poison = multiply_add(x, V(0), poison);
    for (const V& u : given.u) poison = multiply_add(u, V(0), poison);
    System::pairs(n, start, D, none, [&](int i, const V& number) LCP_INLINE_LAMBDA { out[i] = number + poison; });
    write_vector(out, v, lanes, n, q);
  }
}

// Memory is fetched for the next step of the walk, which lies a whole batch further on, where the processor does not
// look for it.
template <class System, class T>
void advance(const Step<T>& step, const T* all_z, const T* all_w, const std::int8_t* all_status, T* x_next,
             T* residuals, std::int64_t ahead, double* memory) {
  const int n = System::pairs_of(step.pairs);
  Workspace workspace(memory);
  V* const D = workspace.take<V>(2 * n);
  V* const z = workspace.take<V>(n);
  V* const w = workspace.take<V>(n);
  for (int v = 0; v < vectors_of(step.count); ++v) {
    const int lanes = lcs::LCP_ISA::lanes_of<double>(step.count, v);
    const Given<System, T> given(step, v, lanes);
    read_vector(step.D, v, lanes, 2 * n, D);
    read_vector(BatchView<T>{all_z, false}, v, lanes, n, z);
    read_vector(BatchView<T>{all_w, false}, v, lanes, n, w);
    if (ahead != 0) {
      const std::int64_t first = ahead + std::int64_t{v} * kWidth;
      lcs::LCP_ISA::fetch<double>(x_next + first * System::kStates, System::kStates);
      lcs::LCP_ISA::fetch<double>(residuals + first, 1);
      lcs::LCP_ISA::fetch<double>(all_z + first * n, n);
      lcs::LCP_ISA::fetch<double>(all_w + first * n, n);
    }
    V status, next[System::kStates], residual = 0;
    read_vector(BatchView<std::int8_t>{all_status, false}, v, lanes, 1, &status);
    const Mask<V> unsolved = status != V(0);
    const V nan = std::numeric_limits<double>::quiet_NaN();
    const auto start = System::start(n, D, given.parameters, given.x, given.u);
    System::pairs(n, start, D, z, [&](int i, const V& number) LCP_INLINE_LAMBDA {
      residual = stdx::max(residual, stdx::abs(stdx::min(z[i], number)));
    });
    System::advance(n, start, D, z, w, false, [&](int i, const V& number) LCP_INLINE_LAMBDA { next[i] = number; });
    stdx::where(unsolved, residual) = nan;
    for (V& number : next) stdx::where(unsolved, number) = nan;
    write_vector(next, v, lanes, System::kStates, x_next);
    write_vector(&residual, v, lanes, 1, residuals);
  }
}

template <class System, class T>
LCP_INLINE inline void fetch_before(const WalkedSteps<T>& walked, std::int64_t s, int v, int n) {
  using lcs::LCP_ISA::fetch_step;
  if (s == 0) return;
  if (s > 1) fetch_step<double>(walked.x_next, s - 2, v, System::kStates);
  fetch_step<double>(walked.z, s - 1, v, n);
  fetch_step<double>(walked.w, s - 1, v, n);
  fetch_step<double>(walked.states, s - 1, v, n);
  fetch_step<double>(walked.g_x_next, s - 1, v, System::kStates);
  fetch_step<double>(walked.g_z, s - 1, v, n);
}

// Let l be the gradient of x_next: its own and the carried one. System::advance adds to the gradients g_z and g_w of z
// and w. Then t = J' (g_z, g_w) is the gradient of M z + q at constant z. x, u and the parameters get their gradients
// by System::pairs and System::advance. Where a step was not solved, all gradients that go through it are 0 if l and
// g_z are 0, else NaN.
template <class System, class T>
void backward(const BackwardStep<T>& walk, double* memory) {
  const Step<T>& step = walk.step;
  const WalkedSteps<T>& walked = walk.walked;
  const std::int64_t s = walk.number;
  const int n = System::pairs_of(step.pairs);
  Workspace workspace(memory);
  V* const D = workspace.take<V>(2 * n);
  V* const M = workspace.take<V>(n * n);
  V* const z = workspace.take<V>(n);
  V* const w = workspace.take<V>(n);
  V* const g_z = workspace.take<V>(n);
  V* const g_w = workspace.take<V>(n);
  V* const z_of_pairs = workspace.take<V>(n);
  const bool is_smoothed = walk.z_of_pairs.data != nullptr;
  auto* const adjoint_memory = workspace.take<double>(0);
  constexpr int kRead = System::kStates - System::kReported;
  for (int v = 0; v < vectors_of(step.count); ++v) {
    const int lanes = lcs::LCP_ISA::lanes_of<double>(step.count, v);
    const Given<System, T> given(step, v, lanes);
    read_vector(step.D, v, lanes, 2 * n, D);
    read_vector(walked.z, s, v, lanes, n, z);
    read_vector(walked.w, s, v, lanes, n, w);
    read_vector(walked.g_z, s, v, lanes, n, g_z);
    V status, l[System::kStates];
    read_vector(walked.status, s, v, lanes, 1, &status);
    read_vector(walked.g_x_next, s, v, lanes, System::kStates, l);
    fetch_before<System>(walked, s, v, n);
    V* const carried = reinterpret_cast<V*>(walk.carried) + std::ptrdiff_t{v} * System::kStates;
    V* const sums = reinterpret_cast<V*>(walk.sums) + std::ptrdiff_t{v} * System::kParameters;
    Mask<V> any(false);
    for (int i = 0; i < System::kStates; ++i) {
      if (i < kRead) l[i] += carried[i];
      any = any || l[i] != V(0);
    }
    for (int i = 0; i < n; ++i) {
      any = any || g_z[i] != V(0);
      g_w[i] = 0;
    }

    typename System::Adjoint adjoint(n, given.parameters, given.x, given.u, D, z, w, is_smoothed, adjoint_memory);
    adjoint.advance(l, g_z, g_w);
    write_vector(g_z, 0, lanes, n, walk.g_z_buffer);
    write_vector(g_w, 0, lanes, n, walk.g_w_buffer);
    const std::int64_t first = std::int64_t{v} * kWidth;
    if constexpr (System::kHasConstantMatrix) {
      walk.solve(walk.self, first, lanes, {walk.M.data + (walk.M.shared ? 0 : first * n * n), walk.M.shared});
    } else {
      System::matrix(n, System::start(n, D, given.parameters, given.x, given.u), D, M);
      write_vector(M, 0, lanes, n * n, walk.M_buffer);
      walk.solve(walk.self, first, lanes, {walk.M_buffer, false});
    }
    V* const t = g_z;
    read_vector(BatchView<T>{walk.t_buffer, false}, 0, lanes, n, t);
    V of_parameters[System::kParameters], of_x[System::kStates], of_u[System::kInputs];
    if (is_smoothed) read_vector(walk.z_of_pairs, v, lanes, n, z_of_pairs);
    adjoint.pairs(is_smoothed ? z_of_pairs : z, t, of_parameters, of_x, of_u);

    const Mask<V> unsolved = status != V(0);
    V failed = 0;
    stdx::where(any, failed) = std::numeric_limits<double>::quiet_NaN();
    for (int i = 0; i < kRead; ++i) carried[i] = choose(unsolved, failed, of_x[i]);
    for (int i = 0; i < System::kParameters; ++i) sums[i] += choose(unsolved, failed, of_parameters[i]);
    if (walk.g_u == nullptr) continue;
    for (V& number : of_u) number = choose(unsolved, failed, number);
    write_vector(of_u, v, lanes, System::kInputs, walk.g_u);
  }
}

// `size` numbers and their changes.
template <class T>
LCP_INLINE inline Mask<V> read_tangents(const BatchView<T>& values, const BatchView<T>& changes, int v, int lanes,
                                        int size, V* buffer, Tangent* out) {
  Mask<V> any(false);
  read_vector(values, v, lanes, size, buffer);
  for (int i = 0; i < size; ++i) out[i].value = buffer[i];
  read_vector(changes, v, lanes, size, buffer);
  for (int i = 0; i < size; ++i) {
    out[i].change = buffer[i];
    any = any || buffer[i] != V(0);
  }
  return any;
}

// Let r be the change of M z + q at constant z, by System::pairs. Then z and w change by (dz, dw) = J r, see
// solver/active_set.h, and x_next by System::advance. The vector kernels have J' only: dz = J' (r, 0) of the problem
// with M', and dw = r + M dz. Where a step was not solved, all changes are NaN if its start changes, else 0.
template <class System, class T>
void tangent(const TangentStep<T>& walk, double* memory) {
  const Step<T>& step = walk.step;
  const int n = System::pairs_of(step.pairs);
  Workspace workspace(memory);
  V* const D = workspace.take<V>(2 * n);
  V* const M = workspace.take<V>(n * n);
  V* const buffer = workspace.take<V>(n * n);
  V* const z = workspace.take<V>(n);
  V* const w = workspace.take<V>(n);
  V* const states = workspace.take<V>(n);
  V* const r = workspace.take<V>(n);
  auto* const changed_z = workspace.take<Tangent>(n);
  auto* const changed_w = workspace.take<Tangent>(n);
  V* const z_of_pairs = workspace.take<V>(n);
  const bool is_smoothed = walk.z_of_pairs.data != nullptr;
  constexpr int kMost = System::kParameters + System::kStates + System::kInputs;
  for (int v = 0; v < vectors_of(step.count); ++v) {
    const int lanes = lcs::LCP_ISA::lanes_of<double>(step.count, v);
    V some[kMost], status, given[kMost];
    Tangent parameters[System::kParameters], x[System::kStates], u[System::kInputs];
    const Mask<V> by_parameters =
        read_tangents(step.parameters, walk.d_parameters, v, lanes, System::kParameters, some, parameters);
    const Mask<V> by_x = read_tangents(step.x, walk.d_x, v, lanes, System::kStates, some, x);
    const Mask<V> by_u = read_tangents(step.u, walk.d_u, v, lanes, System::kInputs, some, u);
    read_vector(step.D, v, lanes, 2 * n, D);
    read_vector(walk.z, v, lanes, n, z);
    read_vector(walk.w, v, lanes, n, w);
    read_vector(walk.states, v, lanes, n, states);
    read_vector(walk.status, v, lanes, 1, &status);
    const auto start = System::start(n, D, parameters, x, u);
    if (is_smoothed) read_vector(walk.z_of_pairs, v, lanes, n, z_of_pairs);
    System::pairs(n, start, D, is_smoothed ? z_of_pairs : z,
                  [&](int i, const Tangent& number) LCP_INLINE_LAMBDA { r[i] = number.change; });

    const auto value = [&](const auto* numbers, int count, V* to) LCP_INLINE_LAMBDA {
      for (int i = 0; i < count; ++i) to[i] = numbers[i].value;
      return to + count;
    };
    V* const given_x = value(parameters, System::kParameters, given);
    V* const given_u = value(x, System::kStates, given_x);
    value(u, System::kInputs, given_u);
    System::matrix(n, System::start(n, D, given, given_x, given_u), D, M);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) buffer[j * n + i] = M[i * n + j];
    }
    write_vector(buffer, 0, lanes, n * n, walk.M_buffer);
    write_vector(r, 0, lanes, n, walk.r_buffer);
    walk.solve(walk.self, std::int64_t{v} * kWidth, lanes);
    V* const dz = buffer;
    read_vector(BatchView<T>{walk.dz_buffer, false}, 0, lanes, n, dz);
    for (int i = 0; i < n; ++i) {
      V dw = r[i];
      for (int j = 0; j < n; ++j) dw = multiply_add(M[i * n + j], dz[j], dw);
      changed_z[i] = {z[i], dz[i]};
      changed_w[i] = {w[i], is_smoothed ? dw : choose(states[i] == V(solver::kBasic), V(0), dw)};
    }
    V next[System::kStates];
    System::advance(n, start, D, changed_z, changed_w, is_smoothed,
                    [&](int i, const Tangent& number) LCP_INLINE_LAMBDA { next[i] = number.change; });

    const Mask<V> unsolved = status != V(0);
    V failed = 0;
    stdx::where(by_parameters || by_x || by_u, failed) = std::numeric_limits<double>::quiet_NaN();
    for (V& number : next) number = choose(unsolved, failed, number);
    for (int i = 0; i < n; ++i) dz[i] = choose(unsolved, failed, dz[i]);
    write_vector(next, v, lanes, System::kStates, walk.dx_next);
    write_vector(dz, v, lanes, n, walk.dz);
  }
}

template <class System, class T>
constexpr StepKernels<T> step_kernels() {
  return {pose<System, T>, advance<System, T>, backward<System, T>, tangent<System, T>};
}

// Formulas that depend on the type of the numbers in memory are given for both types.
template <class Formulas, class FloatFormulas = Formulas>
constexpr System system_of(std::string_view name) {
  return {name,
          Formulas::kStates,
          Formulas::kInputs,
          Formulas::kParameters,
          Formulas::kHasConstantMatrix,
          kWidth,
          fits<Formulas>,
          workspace_size<Formulas>,
          step_kernels<Formulas, double>(),
          step_kernels<FloatFormulas, float>()};
}

}  // namespace lcp::systems::LCP_ISA
