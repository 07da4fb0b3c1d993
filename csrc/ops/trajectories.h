// The inputs of operators that walk trajectories through time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "batch/kernels.h"
#include "lcs/blocks.h"
#include "lcs/system.h"
#include "ops/broadcast.h"
#include "rigid/scene.h"

namespace lcp::ops {

/// The inputs of an operator as the walks read them. It keeps the copies that this takes.
template <class T>
class TrajectoryReader {
 public:
  explicit TrajectoryReader(at::IntArrayRef batch) : batch_(batch) {}

  batch::BatchView<T> per_trajectory(const Tensor& x, std::int64_t core_dims) {
    const bool shared = is_shared(x, core_dims);
    return {keep(shared ? one_of(x, core_dims) : expanded(x, core_dims)).template const_data_ptr<T>(), shared};
  }

  /// x: [..., T, length]. spread: whether what all trajectories share is copied for each of them.
  template <class Element = T>
  lcs::StepsView<Element> per_step(const Tensor& x, bool spread = false) {
    const bool shared = !spread && is_shared(x, 2);
    const Tensor& kept = keep(shared ? one_of(x, 2) : expanded(x, 2).movedim(-2, 0));
    return {kept.template const_data_ptr<Element>(), x.size(-1) * (shared ? 1 : c10::multiply_integers(batch_)),
            shared};
  }

 private:
  bool is_shared(const Tensor& x, std::int64_t core_dims) const {
    BroadcastBatch batch(batch_);
    batch.add(x, core_dims);
    return batch.shared(0);
  }
  static Tensor one_of(const Tensor& x, std::int64_t core_dims) {
    Tensor one = x;
    while (one.dim() > core_dims) one = one.select(0, 0);
    return one;
  }
  Tensor expanded(const Tensor& x, std::int64_t core_dims) const {
    std::vector<std::int64_t> shape = batch_.vec();
    shape.insert(shape.end(), x.sizes().end() - core_dims, x.sizes().end());
    return x.expand(shape);
  }
  const Tensor& keep(const Tensor& x) { return kept_.emplace_back(x.contiguous()); }

  at::IntArrayRef batch_;
  std::deque<Tensor> kept_;
};

/// What trajectory b of `view`, [..., T, size], has at each step.
template <class T>
rigid::Series<const T> series_of(const lcs::StepsView<T>& view, std::int64_t b, std::int64_t size) {
  return {lcs::from(view, b, size).data, view.stride};
}

/// The same of a result [..., T, size], the steps first in memory.
template <class T>
rigid::Series<T> series_of(const Tensor& x, std::int64_t batch, std::int64_t b, std::int64_t size) {
  return {x.mutable_data_ptr<T>() + b * size, batch * size};
}

/// How many trajectories are worth a task of their own, where so many steps are.
inline std::int64_t trajectories_per_task(std::int64_t steps, std::int64_t steps_per_task) {
  return std::max<std::int64_t>(1, steps_per_task / std::max<std::int64_t>(1, steps));
}

}  // namespace lcp::ops
