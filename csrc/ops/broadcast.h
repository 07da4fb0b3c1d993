// Walks the broadcast batch dimensions of several tensors without expanding or copying them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace lcp::ops {

class BroadcastBatch {
 public:
  /// sizes: the batch dimensions, which must outlive this object.
  explicit BroadcastBatch(at::IntArrayRef sizes) : sizes_(sizes) {
    for (const std::int64_t size : sizes_) count_ *= size;
  }

  /// Adds a tensor whose dimensions, but for the last `core_dims`, broadcast to the batch; returns its number.
  int add(const at::Tensor& x, std::int64_t core_dims) {
    const std::int64_t batch_dims = x.dim() - core_dims;
    const std::int64_t missing = dim() - batch_dims;
    for (std::int64_t d = 0; d < dim(); ++d) {
      const bool moves = d >= missing && x.size(d - missing) != 1;
      strides_.push_back(moves ? x.stride(d - missing) : 0);
    }
    return tensors_++;
  }

  /// Whether this tensor has one element that all share; whether its elements, `size` numbers each, lie one behind
  /// another in memory.
  bool shared(int tensor) const {
    for (std::int64_t d = 0; d < dim(); ++d) {
      if (sizes_[d] > 1 && strides_[tensor * dim() + d] != 0) return false;
    }
    return true;
  }
  bool dense(int tensor, std::int64_t size) const {
    for (std::int64_t d = dim() - 1; d >= 0; --d) {
      if (sizes_[d] > 1 && strides_[tensor * dim() + d] != size) return false;
      size *= sizes_[d];
    }
    return true;
  }

  std::int64_t count() const { return count_; }
  std::int64_t dim() const { return static_cast<std::int64_t>(sizes_.size()); }

  /// The offsets, in elements, of one position of the batch after another.
  class Cursor {
   public:
    Cursor(const BroadcastBatch& batch, std::int64_t position)
        : batch_(batch), index_(batch.dim()), offset_(batch.tensors_) {
      for (std::int64_t d = batch.dim() - 1; d >= 0; --d) {
        index_[d] = position % batch.sizes_[d];
        position /= batch.sizes_[d];
        move(d, index_[d]);
      }
    }

    std::int64_t offset(int tensor) const { return offset_[tensor]; }

    void next() {
      for (std::int64_t d = batch_.dim() - 1; d >= 0; --d) {
        if (++index_[d] < batch_.sizes_[d]) return move(d, 1);
        move(d, 1 - index_[d]);
        index_[d] = 0;
      }
    }

   private:
    void move(std::int64_t d, std::int64_t steps) {
      for (int k = 0; k < batch_.tensors_; ++k) offset_[k] += steps * batch_.strides_[k * batch_.dim() + d];
    }

    const BroadcastBatch& batch_;
    c10::DimVector index_;
    c10::SmallVector<std::int64_t, 6> offset_;
  };

 private:
  at::IntArrayRef sizes_;
  std::int64_t count_ = 1;
  int tensors_ = 0;
  c10::SmallVector<std::int64_t, 16> strides_;  // [tensor][dimension]
};

}  // namespace lcp::ops
