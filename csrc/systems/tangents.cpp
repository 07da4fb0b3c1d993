#include "systems/tangents.h"

#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"

namespace lcp::systems {

template <class T>
Tangents<T>::Tangents(const System& system, int pairs, Ties ties, double kappa)
    : system_(system),
      n_(pairs),
      derivative_(pairs, ties),
      M_(kWidest * pairs * pairs),
      r_(kWidest * pairs),
      none_(kWidest * pairs),
      dz_(kWidest * pairs),
      workspace_(system.workspace_size(system, pairs)) {
  if (kappa > 0) points_.emplace(system, pairs, kappa);
}

template <class T>
void Tangents<T>::run(std::int64_t count, std::int64_t steps, const Start<T>& start, const Steps<T>& walked,
                      const Start<T>& change, const Changes<T>& to) {
  struct Solving {
    Tangents& tangents;
    const std::int8_t* states;
  };
  const auto solve = [](void* self, std::int64_t first, std::int64_t some) {
    auto& [tangents, states] = *static_cast<Solving*>(self);
    if (tangents.points_) {
      return tangents.points_->path().tangent(first, some, tangents.r_.data(), tangents.dz_.data());
    }
    tangents.derivative_.adjoint(some, {tangents.M_.data(), false}, states + first * tangents.n_, tangents.r_.data(),
                                 tangents.none_.data(), tangents.dz_.data());
  };
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(count * (n_ * n_ + 10));
    const auto before = [&](const BatchView<T>& first, const lcs::StepsView<T>& next) {
      return s == 0 ? first : lcs::step_of(next, s - 1);
    };
    const std::int64_t of_steps = to.batch * system_.states;
    const BatchView<std::int8_t> states = lcs::step_of(walked.states, s);
    Solving solving = {*this, states.data};
    const Step<T> step = {
        count,           n_, start.parameters, start.D, before(start.x, walked.x_next), lcs::step_of(start.u, s),
        system_.formulas};
    if (points_) points_->find(step, lcs::step_of(walked.z, s), workspace_.data());
    system_.kernels<T>().tangent(
        {step, lcs::step_of(walked.z, s), lcs::step_of(walked.w, s), points_ ? points_->path().z() : BatchView<T>{},
         lcs::step_of(walked.status, s), states, change.parameters, before(change.x, {to.x_next, of_steps, false}),
         lcs::step_of(change.u, s), to.x_next + s * of_steps, to.z + s * to.batch * n_, M_.data(), r_.data(),
         none_.data(), dz_.data(), solve, &solving},
        workspace_.data());
  }
}

template class Tangents<double>;
template class Tangents<float>;

}  // namespace lcp::systems
