#include "batch/batch_derivative.h"

#include <algorithm>

namespace lcp::batch {
namespace {

// The most elements of one call of a kernel, for whose statuses there is memory.
constexpr std::int64_t kBlock = 1024;

bool is_zero(const double* x, int n) {
  return std::all_of(x, x + n, [](double number) { return number == 0; });
}

}  // namespace

template <class T>
BatchDerivative<T>::BatchDerivative(int n, bool tied_active)
    : n_(n),
      tied_active_(tied_active),
      active_set_(n, sizeof(T) == sizeof(float), tied_active),
      M_(std::int64_t{n} * n),
      first_(n),
      second_(n),
      x_(n),
      y_(n),
      status_(kBlock) {
  if (n < 1) return;
  const TypedKernels<T>& kernels = batch::kernels().of<T>();
  if (n <= kSmall) {
    small_ = &kernels.small[n - 1];
  } else if (n <= kLockstep) {
    lockstep_ = &kernels.lockstep;
    workspace_.resize(adjoint_workspace(n));
  }
}

template <class T>
void BatchDerivative<T>::adjoint(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z,
                                 BatchView<T> g_w, T* t) {
  std::fill(status_.begin(), status_.end(), kLeftOver);
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t size = std::min(kBlock, count - first);
    const auto block_M = from(M, first, std::int64_t{n_} * n_);
    const auto block_g_z = from(g_z, first, n_);
    const auto block_g_w = from(g_w, first, n_);
    const std::int8_t* const block_states = states + first * n_;
    T* const block_t = t + first * n_;
    if (small_ != nullptr) {
      small_->adjoint(size, block_M, block_states, block_g_z, block_g_w, tied_active_, block_t, status_.data());
    } else if (lockstep_ != nullptr) {
      lockstep_->adjoint(n_, size, block_M, block_states, block_g_z, block_g_w, tied_active_, workspace_.data(),
                         block_t, status_.data());
    }
    for (std::int64_t b = next_left(status_.data(), 0, size); b < size; b = next_left(status_.data(), b + 1, size)) {
      const double *const g_z_b = first_(block_g_z, b), *const g_w_b = second_(block_g_w, b);
      if (is_zero(g_z_b, n_) && is_zero(g_w_b, n_)) {
        std::fill_n(block_t + b * n_, n_, T(0));  // whatever M_aa is
        continue;
      }
      active_set_.set(M_(block_M, b), block_states + b * n_);
      active_set_.adjoint(g_z_b, g_w_b, x_.data());
      std::copy_n(x_.data(), n_, block_t + b * n_);
    }
  }
}

template <class T>
void BatchDerivative<T>::tangent(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> r, T* dz,
                                 T* dw) {
  for (std::int64_t b = 0; b < count; ++b) {
    active_set_.set(M_(M, b), states + b * n_);
    active_set_.tangent(first_(r, b), x_.data(), y_.data());
    std::copy_n(x_.data(), n_, dz + b * n_);
    std::copy_n(y_.data(), n_, dw + b * n_);
  }
}

template class BatchDerivative<double>;
template class BatchDerivative<float>;

}  // namespace lcp::batch
