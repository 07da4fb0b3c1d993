#include "batch/batch_solver.h"

#include <algorithm>
#include <cstring>

namespace lcp::batch {
namespace {

constexpr std::int64_t kBlock = 1024;   // elements whose status is kept at a time
constexpr std::int64_t kGathered = 64;  // open elements that are solved at a time

// The first open element from b on, or count.
std::int64_t next_open(const std::int8_t* status, std::int64_t b, std::int64_t count) {
  const void* const found =
      b < count ? std::memchr(status + b, static_cast<unsigned char>(kNeedsLadder), count - b) : nullptr;
  return found == nullptr ? count : static_cast<const std::int8_t*>(found) - status;
}

template <class T>
BatchView<T> from(const BatchView<T>& run, std::int64_t b, std::int64_t size) {
  return {run.data + (run.shared ? 0 : b * size), run.shared};
}

}  // namespace

template <class T>
const double* Doubles<T>::operator()(const BatchView<T>& run, std::int64_t b) {
  const T* source = from(run, b, size_).data;
  if constexpr (sizeof(T) == sizeof(double)) {
    return source;
  } else {
    if (!run.shared || source != copied_) std::copy_n(source, size_, copy_.begin());
    copied_ = run.shared ? source : nullptr;
    return copy_.data();
  }
}

template <class T>
BatchSolver<T>::BatchSolver(int n, const solver::Settings& settings)
    : n_(n), settings_(settings), M_(std::int64_t{n} * n), q_(n), guess_(n), z_(n), w_(n) {
  const TypedKernels<T>& kernels = batch::kernels().of<T>();
  if (settings.method != solver::Method::kAuto || settings.max_pivots || settings.tolerance < kernels.min_tolerance ||
      n < 1)
    return;
  if (n <= kSmall) {
    enumerate_ = kernels.small[n - 1].solve;
    enumerate_as_double_ = kernels.small[n - 1].solve_as_double;
    if (enumerate_as_double_ != nullptr) open_.resize(n, kGathered);
  } else if (n <= kEnumerated) {
    enumerate_ = kernels.enumerate[n - kSmall - 1];
  } else if (n <= batch::kernels().lockstep_up_to) {
    lockstep_ = &kernels.lockstep;
    perturbation_.resize(n);
    solver::perturb(0, n, perturbation_.data());
    workspace_.resize(lockstep_workspace(n));
  }
}

// Gathers the open elements, so that they fill the kernel's vectors.
template <class T>
void BatchSolver<T>::solve_open_as_double(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, T* z,
                                          T* w, std::int8_t* status) {
  const std::int64_t size = std::int64_t{n_} * n_;
  const auto copy = [](const BatchView<T>& run, std::int64_t b, std::int64_t length, std::vector<T>& target,
                       std::int64_t k) {
    if (!run.shared) std::copy_n(run.data + b * length, length, target.begin() + k * length);
  };
  const auto gathered = [](const BatchView<T>& run, const std::vector<T>& copies) {
    return run.shared ? run : BatchView<T>{copies.data(), false};
  };
  auto& [of, some_M, some_q, some_guess, some_z, some_w, some_status] = open_;
  for (std::int64_t b = next_open(status, 0, count); b < count;) {
    std::int64_t found = 0;
    for (; b < count && found < kGathered; b = next_open(status, b + 1, count)) {
      of[found] = b;
      copy(M, b, size, some_M, found);
      copy(q, b, n_, some_q, found);
      copy(guess, b, n_, some_guess, found);
      ++found;
    }
    enumerate_as_double_(found, gathered(M, some_M), some_q.data(), gathered(guess, some_guess), settings_.tolerance,
                         some_z.data(), some_w.data(), some_status.data());
    for (std::int64_t k = 0; k < found; ++k) {
      if (some_status[k] == kNeedsLadder) continue;
      status[of[k]] = some_status[k];
      std::copy_n(some_z.begin() + k * n_, n_, z + of[k] * n_);
      std::copy_n(some_w.begin() + k * n_, n_, w + of[k] * n_);
    }
  }
}

template <class T>
void BatchSolver<T>::solve(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, T* z, T* w,
                           std::int8_t* status) {
  if (guess.data == nullptr) guess.shared = true;
  if (enumerate_ != nullptr && !q.shared) {
    enumerate_(count, M, q.data, guess, settings_.tolerance, z, w, status);
    if (enumerate_as_double_ != nullptr) solve_open_as_double(count, M, q, guess, z, w, status);
  } else if (lockstep_ != nullptr && !q.shared && guess.data == nullptr) {
    lockstep_->solve(n_, count, M, q.data, settings_.tolerance, perturbation_.data(), workspace_.data(), z, w, status);
  } else {
    std::fill_n(status, count, kNeedsLadder);
  }
  for (std::int64_t b = next_open(status, 0, count); b < count; b = next_open(status, b + 1, count)) {
    if (!ladder_) ladder_.emplace(n_, settings_);
    const double* const proposal = guess.data == nullptr ? nullptr : guess_(guess, b);
    status[b] = static_cast<std::int8_t>(ladder_->solve(M_(M, b), q_(q, b), proposal, z_.data(), w_.data()));
    std::copy_n(z_.data(), n_, z + b * n_);
    std::copy_n(w_.data(), n_, w + b * n_);
  }
}

template <class T>
BatchAdjoint<T>::BatchAdjoint(int n, int free, bool tied_active)
    : n_(n),
      tied_active_(tied_active),
      active_set_(n, free, sizeof(T) == sizeof(float), tied_active),
      M_(std::int64_t{n} * n),
      z_(n),
      w_(n),
      g_z_(n),
      g_w_(n),
      t_(n),
      status_(kBlock) {
  if (free > 0 || n < 1) return;
  const TypedKernels<T>& kernels = batch::kernels().of<T>();
  if (n <= kSmall) {
    small_ = &kernels.small[n - 1];
  } else if (n <= kLockstep) {
    lockstep_ = &kernels.lockstep;
    workspace_.resize(adjoint_workspace(n));
  }
}

template <class T>
void BatchAdjoint<T>::adjoint(std::int64_t count, BatchView<T> M, BatchView<T> z, BatchView<T> w, BatchView<T> g_z,
                              BatchView<T> g_w, T* t) {
  const bool plain = !z.shared && !w.shared;
  std::fill(status_.begin(), status_.end(), kNeedsLadder);
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t last = std::min(first + kBlock, count);
    const auto own_M = from(M, first, std::int64_t{n_} * n_);
    const auto own_g_z = from(g_z, first, n_);
    const auto own_g_w = from(g_w, first, n_);
    if (plain && small_ != nullptr) {
      small_->adjoint(last - first, own_M, z.data + first * n_, w.data + first * n_, own_g_z, own_g_w, tied_active_,
                      t + first * n_, status_.data());
    } else if (plain && lockstep_ != nullptr) {
      lockstep_->adjoint(n_, last - first, own_M, z.data + first * n_, w.data + first * n_, own_g_z, own_g_w,
                         tied_active_, workspace_.data(), t + first * n_, status_.data());
    }
    for (std::int64_t k = next_open(status_.data(), 0, last - first); k < last - first;
         k = next_open(status_.data(), k + 1, last - first)) {
      const std::int64_t b = first + k;
      active_set_.set(M_(M, b), z_(z, b), w_(w, b));
      active_set_.adjoint(g_z_(g_z, b), g_w_(g_w, b), t_.data());
      std::copy_n(t_.data(), n_, t + b * n_);
    }
  }
}

template class Doubles<double>;
template class Doubles<float>;
template class BatchSolver<double>;
template class BatchSolver<float>;
template class BatchAdjoint<double>;
template class BatchAdjoint<float>;

}  // namespace lcp::batch
