#include "batch/batch_path.h"

#include <algorithm>
#include <limits>

namespace lcp::batch {

template <class T>
BatchPath<T>::BatchPath(int n, double kappa)
    : n_(n),
      kappa_(kappa),
      path_(n, 0),
      derivative_(n),
      M_(std::int64_t{n} * n),
      first_(n),
      second_(n),
      none_(n),
      x_(n),
      y_(n) {}

template <class T>
void BatchPath<T>::find(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> z) {
  matrices_ = M;
  const std::int64_t numbers = count * n_;
  if (static_cast<std::int64_t>(z_.size()) < numbers) {
    z_.resize(numbers);
    w_.resize(numbers);
    found_z_.resize(numbers);
  }
  for (std::int64_t b = 0; b < count; ++b) {
    double *const z_b = z_.data() + b * n_, *const w_b = w_.data() + b * n_;
    if (!path_.point(M_(M, b), first_(q, b), second_(z, b), kappa_, z_b, w_b)) {
      std::fill_n(z_b, n_, 0.0);
      std::fill_n(w_b, n_, std::numeric_limits<double>::quiet_NaN());
    }
  }
  std::transform(z_.begin(), z_.begin() + numbers, found_z_.begin(), [](double x) { return static_cast<T>(x); });
}

template <class T>
void BatchPath<T>::adjoint(std::int64_t first, std::int64_t count, const T* g_z, const T* g_w, T* t_r) {
  for (std::int64_t b = 0; b < count; ++b) {
    derivative_.set(M_(matrices_, first + b), w_.data() + (first + b) * n_, z_.data() + (first + b) * n_);
    derivative_.adjoint(first_({g_z, false}, b), second_({g_w, false}, b), x_.data(), y_.data());
    std::copy_n(x_.data(), n_, t_r + b * n_);
  }
}

template <class T>
void BatchPath<T>::tangent(std::int64_t first, std::int64_t count, const T* r, T* dz) {
  for (std::int64_t b = 0; b < count; ++b) {
    derivative_.set(M_(matrices_, first + b), w_.data() + (first + b) * n_, z_.data() + (first + b) * n_);
    derivative_.tangent(first_({r, false}, b), none_.data(), x_.data(), y_.data());
    std::copy_n(x_.data(), n_, dz + b * n_);
  }
}

template class BatchPath<double>;
template class BatchPath<float>;

}  // namespace lcp::batch
