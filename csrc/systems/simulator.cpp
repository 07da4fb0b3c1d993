#include "systems/simulator.h"

#include <algorithm>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"

namespace lcp::systems {

template <class T>
Start<T> Start<T>::from(std::int64_t b, const System& system, int pairs) const {
  return {batch::from(parameters, b, system.parameters), batch::from(D, b, 2 * pairs), batch::from(x, b, system.states),
          lcs::from(u, b, system.inputs)};
}

template <class T>
Simulator<T>::Simulator(const System& system, int pairs, const solver::Settings& settings)
    : system_(system), n_(pairs), solver_(pairs, settings), workspace_(system.workspace_size(system, pairs)) {}

template <class T>
void Simulator<T>::run_block(std::int64_t count, std::int64_t steps, const Start<T>& start, const lcs::Path<T>& to) {
  const StepKernels<T>& kernels = system_.kernels<T>();
  const bool shared_M = system_.has_constant_matrix && start.parameters.shared && start.D.shared;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(count * (n_ * n_ + 10));
    const std::int64_t first = s * to.batch;
    const BatchView<T> x = s == 0 ? start.x : BatchView<T>{to.x_next + (first - to.batch) * system_.states, false};
    Step<T> step = {count, n_, start.parameters, start.D, x, lcs::step_of(start.u, s), system_.formulas};
    if (s == 0 && system_.has_constant_matrix) {
      Step<T> once = step;
      if (shared_M) once.count = 1;
      kernels.pose(once, M_.data(), nullptr, workspace_.data());
    }
    kernels.pose(step, system_.has_constant_matrix ? nullptr : M_.data(), q_.data(), workspace_.data());
    T *const z = to.z + first * n_, *const w = to.w + first * n_;
    std::int8_t* const status = to.status + first;
    solver_.solve(count, {M_.data(), shared_M}, {q_.data(), false}, {nullptr, true},
                  {z, w, status, to.states == nullptr ? nullptr : to.states + first * n_});
    kernels.advance(step, z, w, status, to.x_next + first * system_.states, to.residual + first,
                    s + 1 < steps ? to.batch : 0, workspace_.data());
  }
}

template <class T>
void Simulator<T>::run(std::int64_t count, std::int64_t steps, const Start<T>& start, const lcs::Path<T>& to) {
  const lcs::Size size = {system_.states, system_.inputs, n_};
  const std::int64_t most = lcs::block_of(std::int64_t{n_} * n_ + 3 * n_ + 2 * system_.states + system_.inputs);
  const std::int64_t largest = std::min(most, count);
  M_.resize(largest * n_ * n_);
  q_.resize(largest * n_);
  for (std::int64_t b = 0; b < count; b += most) {
    run_block(std::min(most, count - b), steps, start.from(b, system_, n_), lcs::from(to, b, size));
  }
}

template struct Start<double>;
template struct Start<float>;
template class Simulator<double>;
template class Simulator<float>;

}  // namespace lcp::systems
