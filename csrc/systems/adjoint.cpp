#include "systems/adjoint.h"

#include <algorithm>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"

namespace lcp::systems {
namespace {

// Numbers of each trajectory, from vectors of `width` trajectories.
template <class T>
void separate(std::int64_t count, int size, int width, const double* vectors, T* to) {
  for (std::int64_t b = 0; b < count; ++b) {
    const double* const vector = vectors + b / width * width * size + b % width;
    for (int i = 0; i < size; ++i) to[b * size + i] = static_cast<T>(vector[i * width]);
  }
}

}  // namespace

template <class T>
Adjoint<T>::Adjoint(const System& system, int pairs, Ties ties, double kappa)
    : system_(system),
      n_(pairs),
      derivative_(pairs, ties),
      M_buffer_(kWidest * pairs * pairs),
      g_z_(kWidest * pairs),
      g_w_(kWidest * pairs),
      t_(kWidest * pairs),
      workspace_(system.workspace_size(system, pairs)) {
  if (kappa > 0) points_.emplace(system, pairs, kappa);
}

template <class T>
void Adjoint<T>::run_block(std::int64_t count, std::int64_t steps, const Start<T>& start, const WalkedSteps<T>& walked,
                           const Gradients<T>& to) {
  const StepKernels<T>& kernels = system_.kernels<T>();
  const bool shared_M = system_.has_constant_matrix && start.parameters.shared && start.D.shared;
  std::fill(carried_.begin(), carried_.end(), 0.0);
  std::fill(sums_.begin(), sums_.end(), 0.0);
  struct Solving {
    Adjoint& adjoint;
    const std::int8_t* states;
  };
  const auto solve = [](void* self, std::int64_t first, std::int64_t some, BatchView<T> M) {
    auto& [adjoint, states] = *static_cast<Solving*>(self);
    if (adjoint.points_) {
      return adjoint.points_->path().adjoint(first, some, adjoint.g_z_.data(), adjoint.g_w_.data(), adjoint.t_.data());
    }
    adjoint.derivative_.adjoint(some, M, states + first * adjoint.n_, adjoint.g_z_.data(), adjoint.g_w_.data(),
                                adjoint.t_.data());
  };
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    pace.spend(count * (n_ * n_ + 10));
    const BatchView<T> x = s == 0 ? start.x : lcs::step_of(walked.x_next, s - 1);
    const Step<T> step = {count, n_, start.parameters, start.D, x, lcs::step_of(start.u, s), system_.formulas};
    if (s == steps - 1 && system_.has_constant_matrix) {
      Step<T> once = step;
      if (shared_M) once.count = 1;
      kernels.pose(once, M_.data(), nullptr, workspace_.data());
    }
    if (points_) points_->find(step, lcs::step_of(walked.z, s), workspace_.data());
    Solving solving = {*this, lcs::step_of(walked.states, s).data};
    kernels.backward({step,
                      s,
                      walked,
                      points_ ? points_->path().z() : BatchView<T>{},
                      {M_.data(), shared_M},
                      carried_.data(),
                      sums_.data(),
                      to.u == nullptr ? nullptr : to.u + s * to.batch * system_.inputs,
                      M_buffer_.data(),
                      g_z_.data(),
                      g_w_.data(),
                      t_.data(),
                      solve,
                      &solving},
                     workspace_.data());
  }
  if (to.parameters != nullptr) separate(count, system_.parameters, system_.width, sums_.data(), to.parameters);
  if (to.x != nullptr) separate(count, system_.states, system_.width, carried_.data(), to.x);
}

template <class T>
void Adjoint<T>::run(std::int64_t count, std::int64_t steps, const Start<T>& start, const WalkedSteps<T>& walked,
                     const Gradients<T>& to) {
  const std::int64_t constant = system_.has_constant_matrix ? n_ * n_ : 0;
  const std::int64_t most = lcs::block_of(constant + 2 * system_.states + system_.parameters);
  const std::int64_t largest = std::min(most, count), padded = (largest + kWidest - 1) / kWidest * kWidest;
  M_.resize(largest * constant);
  carried_.resize(padded * system_.states);
  sums_.resize(padded * system_.parameters);
  const auto at = [](T* first, std::int64_t numbers) { return first == nullptr ? nullptr : first + numbers; };
  for (std::int64_t b = 0; b < count; b += most) {
    using lcs::from;
    const int states = system_.states;
    run_block(
        std::min(most, count - b), steps, start.from(b, system_, n_),
        {from(walked.x_next, b, states), from(walked.z, b, n_), from(walked.w, b, n_), from(walked.status, b, 1),
         from(walked.states, b, n_), from(walked.g_x_next, b, states), from(walked.g_z, b, n_)},
        {at(to.parameters, b * system_.parameters), at(to.x, b * states), at(to.u, b * system_.inputs), to.batch});
  }
}

template class Adjoint<double>;
template class Adjoint<float>;

}  // namespace lcp::systems
