// The elements of a batch in the memory of a GPU, and the ways of those that the kernels leave to the CPU and back.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/DimVector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

#include "batch/kernels.h"
#include "contact/cuda/kernels.h"
#include "lcp/status.h"
#include "ops/operator.h"

namespace lcp::ops::cuda {

inline std::optional<Tensor> on_cpu(const std::optional<Tensor>& x) {
  return x ? std::optional(x->cpu()) : std::nullopt;
}

/// One tensor over a batch: contiguous, or a single element that all share. Other broadcasts are copied.
class Elements {
 public:
  Elements(const Tensor& x, at::IntArrayRef batch, std::int64_t core_dims)
      : core_(x.sizes().slice(x.dim() - core_dims)),
        shared_(c10::multiply_integers(x.sizes().slice(0, x.dim() - core_dims)) == 1) {
    at::DimVector all(batch.begin(), batch.end());
    if (shared_) all.assign(1, 1);
    all.append(core_.begin(), core_.end());
    x_ = (shared_ ? x.reshape(all) : x.expand(all)).contiguous();
  }

  template <class T>
  batch::BatchView<T> view() const {
    return {x_.const_data_ptr<T>(), shared_};
  }

  /// The matrices or vectors of these elements, on the CPU, or the one that all elements share.
  Tensor on_cpu(const Tensor& elements) const {
    if (shared_) return x_.reshape(core_).cpu();
    at::DimVector flat = {-1};
    flat.append(core_.begin(), core_.end());
    return x_.reshape(flat).index_select(0, elements).cpu();
  }

 private:
  at::DimVector core_;
  bool shared_;
  Tensor x_;
};

/// The number of elements that kernels left, in the memory of the GPU.
class LeftCount {
 public:
  explicit LeftCount(const Tensor& like) : count_(at::zeros({1}, like.options().dtype(at::kInt))) {}

  std::int32_t* data() const { return count_.mutable_data_ptr<std::int32_t>(); }
  /// Waits for the kernels.
  bool any() const { return count_.item<std::int32_t>() > 0; }

 private:
  Tensor count_;
};

/// Whether the stream's work is recorded as a graph; then nothing may wait for the GPU.
inline bool is_captured() {
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

/// Puts the rows of `part`, on the CPU, in the place of these elements of `all`, contiguous, [batch..., n] or
/// [batch...].
inline void put_back(const Tensor& part, const Tensor& elements, std::int64_t core_dims, const Tensor& all) {
  at::DimVector flat = {-1};
  if (core_dims == 1) flat.push_back(all.size(-1));
  all.view(flat).index_copy_(0, elements, part.to(all.device()));
}

/// Copies the results of an operator for tensors on the CPU.
template <class Found, std::size_t count>
void copy_all(const Found& found, const std::array<Tensor, count>& results) {
  std::size_t k = 0;
  std::apply([&](const auto&... x) { (results[k++].copy_(x), ...); }, found);
}

/// Finishes the results of a kernel for contacts. The function on_cpu(elements) solves the elements with the status
/// kLeftOver, and its results take their place; in a graph they count as not found. The first three results are
/// vectors, the fourth is the status and the last a number.
template <class OnCpu>
void finish_left(const LeftCount& left, const std::array<Tensor, 5>& results, const OnCpu& on_cpu) {
  const Tensor& status = results[3];
  const Tensor is_left = status == contact::cuda::kLeftOver;
  if (is_captured()) {
    status.masked_fill_(is_left, static_cast<int>(Status::kNotFound));
    return;
  }
  if (!left.any()) return;
  const Tensor elements = at::nonzero(is_left.reshape({-1})).reshape({-1});
  std::size_t k = 0;
  std::apply(
      [&](const auto&... part) {
        const auto put = [&](const Tensor& x) {
          const bool is_vector = k < 3;
          const Tensor rows = is_vector ? x.reshape({elements.numel(), x.size(-1)}) : x.reshape({elements.numel()});
          put_back(rows, elements, is_vector ? 1 : 0, results[k++]);
        };
        (put(part), ...);
      },
      on_cpu(elements));
}

/// Whether there are kernels for contact problems of this size.
inline bool has_contact_kernel(const Tensor& A, const Tensor& J, const std::optional<Tensor>& sizes) {
  const std::int64_t n = A.size(-1), contacts = J.size(-2) / 3;
  return !sizes && n >= 1 && n <= contact::cuda::kMostVelocities && contacts >= 1 &&
         contacts <= contact::cuda::kMostContacts;
}

}  // namespace lcp::ops::cuda
