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
      y_(n) {
  if (n < 1 || n > kLockstep) return;
  kernels_ = &path::kernels().of<T>();
  workspace_.resize(path::workspace_size(n));
}

// Calls kernel(status), where there are kernels, and then one_by_one(b) for the elements that are left.
template <class T>
template <class Kernel, class OneByOne>
void BatchPath<T>::for_each(std::int64_t count, const Kernel& kernel, const OneByOne& one_by_one) {
  if (static_cast<std::int64_t>(status_.size()) < count) status_.resize(count);
  std::fill_n(status_.begin(), count, kLeftOver);
  if (kernels_ != nullptr) kernel(status_.data());
  for (std::int64_t b = next_left(status_.data(), 0, count); b < count; b = next_left(status_.data(), b + 1, count)) {
    one_by_one(b);
  }
}

template <class T>
void BatchPath<T>::find(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> z) {
  matrices_ = M;
  const std::int64_t numbers = count * n_;
  if (static_cast<std::int64_t>(z_.size()) < numbers) {
    z_.resize(numbers);
    w_.resize(numbers);
    found_z_.resize(numbers);
  }
  for_each(
      count,
      [&](std::int8_t* status) {
        kernels_->find(n_, count, M, q, z, kappa_, workspace_.data(), z_.data(), w_.data(), status);
      },
      [&](std::int64_t b) {
        double *const z_b = z_.data() + b * n_, *const w_b = w_.data() + b * n_;
        if (path_.point(M_(M, b), first_(q, b), second_(z, b), kappa_, z_b, w_b)) return;
        std::fill_n(z_b, n_, 0.0);
        std::fill_n(w_b, n_, std::numeric_limits<double>::quiet_NaN());
      });
  std::transform(z_.begin(), z_.begin() + numbers, found_z_.begin(), [](double x) { return static_cast<T>(x); });
}

template <class T>
void BatchPath<T>::adjoint(std::int64_t first, std::int64_t count, const T* g_z, const T* g_w, T* t_r) {
  const BatchView<T> M = from(matrices_, first, std::int64_t{n_} * n_);
  const double *const z = z_.data() + first * n_, *const w = w_.data() + first * n_;
  for_each(
      count,
      [&](std::int8_t* status) { kernels_->adjoint(n_, count, M, z, w, g_z, g_w, workspace_.data(), t_r, status); },
      [&](std::int64_t b) {
        derivative_.set(M_(M, b), w + b * n_, z + b * n_);
        derivative_.adjoint(first_({g_z, false}, b), second_({g_w, false}, b), x_.data(), y_.data());
        std::copy_n(x_.data(), n_, t_r + b * n_);
      });
}

template <class T>
void BatchPath<T>::tangent(std::int64_t first, std::int64_t count, const T* r, T* dz) {
  const BatchView<T> M = from(matrices_, first, std::int64_t{n_} * n_);
  const double *const z = z_.data() + first * n_, *const w = w_.data() + first * n_;
  for_each(
      count, [&](std::int8_t* status) { kernels_->tangent(n_, count, M, z, w, r, workspace_.data(), dz, status); },
      [&](std::int64_t b) {
        derivative_.set(M_(M, b), w + b * n_, z + b * n_);
        derivative_.tangent(first_({r, false}, b), none_.data(), x_.data(), y_.data());
        std::copy_n(x_.data(), n_, dz + b * n_);
      });
}

template class BatchPath<double>;
template class BatchPath<float>;

}  // namespace lcp::batch
