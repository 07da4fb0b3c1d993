#include "lcs/tied_derivative.h"

#include <algorithm>

#include "solver/pair_states.h"

namespace lcp::lcs {

template <class T>
TiedDerivative<T>::TiedDerivative(int n, Ties ties) : n_(n), derivative_(n, ties == Ties::kActive) {
  if (ties == Ties::kMidpoint) other_piece_.emplace(n, true);
}

template <class T>
void TiedDerivative<T>::adjoint(std::int64_t count, batch::BatchView<T> M, const std::int8_t* states, const T* g_z,
                                const T* g_w, T* t) {
  const std::int64_t length = count * n_;
  derivative_.adjoint(count, M, states, {g_z, false}, {g_w, false}, t);
  if (!other_piece_ || std::find(states, states + length, solver::kTied) == states + length) return;
  if (static_cast<std::int64_t>(other_t_.size()) < length) other_t_.resize(length);
  other_piece_->adjoint(count, M, states, {g_z, false}, {g_w, false}, other_t_.data());
  for (std::int64_t i = 0; i < length; ++i) t[i] += T(0.5) * (other_t_[i] - t[i]);  // unchanged where both agree
}

template class TiedDerivative<double>;
template class TiedDerivative<float>;

}  // namespace lcp::lcs
