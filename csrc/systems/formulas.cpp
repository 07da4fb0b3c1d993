#include "systems/formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "batch/elements.h"
#include "lcp/detail/step_formulas.h"
#include "lcs/blocks.h"
#include "solver/pair_states.h"

namespace lcp::systems {
namespace {

using detail::StepFormulas;
using detail::StepSizes;
using Function = StepFormulas::Function;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The workspace of one of some trajectories: the numbers that a step is given, their changes or gradients, M, q, a
// state, and a gradient of the numbers that the step starts from.
struct Workspace {
  double *given, *change, *M, *q, *state, *start;

  Workspace(const StepSizes& sizes, double* memory, std::int64_t number = 0)
      : given(memory + number * size(sizes)),
        change(given + sizes.given()),
        M(change + sizes.given()),
        q(M + sizes.pairs * sizes.pairs),
        state(q + sizes.pairs),
        start(state + sizes.states) {}

  static std::int64_t size(const StepSizes& sizes) {
    return 2 * sizes.given() + sizes.pairs * (sizes.pairs + 1) + sizes.states + sizes.starts();
  }
};

template <class T>
double* copy(const BatchView<T>& view, std::int64_t b, int size, double* to) {
  const T* const first = batch::from(view, b, size).data;
  return std::copy_n(first, size, to);
}

// The parameters, the state and the input of trajectory b, or their changes; returns their end.
template <class T>
double* copy_start(const StepSizes& sizes, const BatchView<T>& parameters, const BatchView<T>& x, const BatchView<T>& u,
                   std::int64_t b, double* to) {
  to = copy(parameters, b, sizes.parameters, to);
  to = copy(x, b, sizes.states, to);
  return copy(u, b, sizes.inputs, to);
}

template <class T>
double* copy_start(const Step<T>& step, std::int64_t b, double* to) {
  return copy_start(step.formulas->sizes(), step.parameters, step.x, step.u, b, to);
}

bool is_any(const double* numbers, std::int64_t count) {
  return std::any_of(numbers, numbers + count, [](double x) { return x != 0; });
}

template <class T>
void pose(const Step<T>& step, T* M, T* q, double* memory) {
  const StepFormulas& formulas = *step.formulas;
  const StepSizes& sizes = formulas.sizes();
  const std::int64_t n = step.pairs;
  const Workspace workspace(sizes, memory);
  for (std::int64_t b = 0; b < step.count; ++b) {
    double* const end = copy_start(step, b, workspace.given);
    std::fill_n(end, 2 * n, 0.0);
    formulas.problem(workspace.given, workspace.M, workspace.q);
    if (M != nullptr) std::copy_n(workspace.M, n * n, M + b * n * n);
    if (q == nullptr) continue;
    const bool is_finite = std::all_of(workspace.given, end, [](double x) { return std::isfinite(x); });
    for (std::int64_t i = 0; i < n; ++i) q[b * n + i] = static_cast<T>(is_finite ? workspace.q[i] : kNaN);
  }
}

template <class T>
void advance(const Step<T>& step, const T* z, const T* w, const std::int8_t* status, T* x_next, T* residuals,
             std::int64_t, double* memory) {
  const StepFormulas& formulas = *step.formulas;
  const StepSizes& sizes = formulas.sizes();
  const int n = step.pairs;
  const Workspace workspace(sizes, memory);
  for (std::int64_t b = 0; b < step.count; ++b) {
    double* const z_of = copy_start(step, b, workspace.given);
    copy<T>({w, false}, b, n, copy<T>({z, false}, b, n, z_of));
    double residual = 0;
    formulas.value(Function::kPairs, workspace.given, workspace.q);
    for (int i = 0; i < n; ++i) residual = std::max(residual, std::abs(std::min(z_of[i], workspace.q[i])));
    formulas.value(Function::kNext, workspace.given, workspace.state);
    const bool is_solved = status[b] == 0;
    residuals[b] = static_cast<T>(is_solved ? residual : kNaN);
    for (int i = 0; i < sizes.states; ++i) {
      x_next[b * sizes.states + i] = static_cast<T>(is_solved ? workspace.state[i] : kNaN);
    }
  }
}

// Implements backward of walk.h. The LCPs of some trajectories are differentiated at a time.
template <class T>
void backward(const BackwardStep<T>& walk, double* memory) {
  const Step<T>& step = walk.step;
  const WalkedSteps<T>& walked = walk.walked;
  const StepFormulas& formulas = *step.formulas;
  const StepSizes& sizes = formulas.sizes();
  const int n = step.pairs, starts = sizes.starts();
  const auto of = [&](const auto& steps) { return lcs::step_of(steps, walk.number); };
  bool any[kWidest];
  for (std::int64_t first = 0; first < step.count; first += kWidest) {
    const std::int64_t some = std::min(kWidest, step.count - first);
    for (std::int64_t k = 0, b = first; k < some; ++k, ++b) {
      const Workspace workspace(sizes, memory, k);
      double *const z = copy_start(step, b, workspace.given), *const l = workspace.state;
      std::fill_n(z, 2 * n, 0.0);
      formulas.problem(workspace.given, workspace.M, workspace.q);
      std::copy_n(workspace.M, n * n, walk.M_buffer + k * n * n);
      copy(of(walked.w), b, n, copy(of(walked.z), b, n, z));
      copy(of(walked.g_x_next), b, sizes.states, l);
      for (int i = 0; i < sizes.states; ++i) l[i] += walk.carried[b * sizes.states + i];
      formulas.pull(Function::kNext, workspace.given, l, workspace.change);
      const T* const g_z = batch::from(of(walked.g_z), b, n).data;
      any[k] = is_any(l, sizes.states);
      for (int i = 0; i < n; ++i) {
        any[k] = any[k] || g_z[i] != 0;
        walk.g_z_buffer[k * n + i] = static_cast<T>(workspace.change[starts + i] + g_z[i]);
        walk.g_w_buffer[k * n + i] = static_cast<T>(workspace.change[starts + n + i]);
      }
    }
    walk.solve(walk.self, first, some, {walk.M_buffer, false});
    for (std::int64_t k = 0, b = first; k < some; ++k, ++b) {
      const Workspace workspace(sizes, memory, k);
      double *const t = workspace.q, *const by_pairs = workspace.start;
      std::copy_n(walk.t_buffer + k * n, n, t);
      if (walk.z_of_pairs.data != nullptr) copy(walk.z_of_pairs, b, n, workspace.given + starts);
      formulas.pull(Function::kPairs, workspace.given, t, by_pairs);
      const bool is_solved = *batch::from(of(walked.status), b, 1).data == 0;
      const double* const by_next = workspace.change;
      const auto gradient = [&](int i) { return is_solved ? by_next[i] + by_pairs[i] : (any[k] ? kNaN : 0.0); };
      for (int i = 0; i < sizes.parameters; ++i) walk.sums[b * sizes.parameters + i] += gradient(i);
      for (int i = 0; i < sizes.states; ++i) walk.carried[b * sizes.states + i] = gradient(sizes.parameters + i);
      if (walk.g_u == nullptr) continue;
      for (int i = 0; i < sizes.inputs; ++i) {
        walk.g_u[b * sizes.inputs + i] = static_cast<T>(gradient(sizes.parameters + sizes.states + i));
      }
    }
  }
}

// Implements tangent of walk.h.
template <class T>
void tangent(const TangentStep<T>& walk, double* memory) {
  const Step<T>& step = walk.step;
  const StepFormulas& formulas = *step.formulas;
  const StepSizes& sizes = formulas.sizes();
  const int n = step.pairs, starts = sizes.starts();
  const bool is_smoothed = walk.z_of_pairs.data != nullptr;
  for (std::int64_t first = 0; first < step.count; first += kWidest) {
    const std::int64_t some = std::min(kWidest, step.count - first);
    for (std::int64_t k = 0, b = first; k < some; ++k, ++b) {
      const Workspace workspace(sizes, memory, k);
      double* const z = copy_start(step, b, workspace.given);
      std::fill_n(z, 2 * n, 0.0);
      formulas.problem(workspace.given, workspace.M, workspace.q);
      copy(walk.w, b, n, copy(is_smoothed ? walk.z_of_pairs : walk.z, b, n, z));
      copy_start(sizes, walk.d_parameters, walk.d_x, walk.d_u, b, workspace.change);
      std::fill_n(workspace.change + starts, 2 * n, 0.0);
      formulas.push(Function::kPairs, workspace.given, workspace.change, workspace.q);
      std::copy_n(workspace.q, n, walk.r_buffer + k * n);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) walk.M_buffer[(k * n + j) * n + i] = static_cast<T>(workspace.M[i * n + j]);
      }
    }
    walk.solve(walk.self, first, some);
    for (std::int64_t k = 0, b = first; k < some; ++k, ++b) {
      const Workspace workspace(sizes, memory, k);
      double *const r = workspace.q, *const dz = workspace.change + starts, *const dw = dz + n;
      std::copy_n(walk.dz_buffer + k * n, n, dz);
      for (int i = 0; i < n; ++i) {
        if (!is_smoothed && walk.states.data[b * n + i] == solver::kBasic) continue;
        dw[i] = r[i];
        for (int j = 0; j < n; ++j) dw[i] += workspace.M[i * n + j] * dz[j];
      }
      copy(walk.z, b, n, workspace.given + starts);
      formulas.push(Function::kNext, workspace.given, workspace.change, workspace.state);
      const bool is_solved = *batch::from(walk.status, b, 1).data == 0;
      const double failed = is_any(workspace.change, starts) ? kNaN : 0;
      for (int i = 0; i < sizes.states; ++i) {
        walk.dx_next[b * sizes.states + i] = static_cast<T>(is_solved ? workspace.state[i] : failed);
      }
      for (int i = 0; i < n; ++i) walk.dz[b * n + i] = static_cast<T>(is_solved ? dz[i] : failed);
    }
  }
}

template <class T>
constexpr StepKernels<T> kStepKernels = {pose<T>, advance<T>, backward<T>, tangent<T>};

bool fits(const System& system, std::int64_t pairs) { return pairs == system.formulas->sizes().pairs; }

std::size_t workspace_size(const System& system, int) { return kWidest * Workspace::size(system.formulas->sizes()); }

}  // namespace

System system_of(std::string_view name, const StepFormulas& formulas) {
  const StepSizes& sizes = formulas.sizes();
  return {name,
          sizes.states,
          sizes.inputs,
          sizes.parameters,
          /*has_constant_matrix=*/false,
          /*width=*/1,
          fits,
          workspace_size,
          kStepKernels<double>,
          kStepKernels<float>,
          &formulas};
}

}  // namespace lcp::systems
