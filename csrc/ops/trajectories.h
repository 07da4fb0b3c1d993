// The inputs of operators that walk trajectories through time.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "batch/kernels.h"
#include "lcs/blocks.h"
#include "lcs/system.h"
#include "ops/broadcast.h"
#include "ops/operator.h"
#include "rigid/scene.h"

namespace lcp::ops {

/// The inputs of an operator as the walks read them. The reader keeps the copies that it makes.
template <class T>
class TrajectoryReader {
 public:
  explicit TrajectoryReader(at::IntArrayRef batch) : batch_(batch) {}

  batch::BatchView<T> per_trajectory(const Tensor& x, std::int64_t core_dims) {
    const bool shared = is_shared(x, core_dims);
    return {keep(shared ? one_of(x, core_dims) : expanded(x, core_dims)).template const_data_ptr<T>(), shared};
  }

  /// x: [..., T, length]. spread: whether numbers that all trajectories share are copied for each of them.
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

/// A batch in some of whose dimensions the trajectories are all the same. Such dimensions are the rows and the columns
/// of a Jacobian, which are gradients, or directions, of each trajectory.
class Directions {
 public:
  /// batch: the batch dimensions of the results. trajectories: lists of descriptions and tensors, the tensors that the
  /// trajectories have.
  Directions(at::IntArrayRef batch,
             std::initializer_list<std::pair<c10::ArrayRef<Argument>, at::TensorList>> trajectories)
      : is_shared_(batch.size(), true), of_trajectory_(1), of_direction_(1) {
    for (const auto& [what, all] : trajectories) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        const std::int64_t dims = all[k].dim() - what[k].sizes.count;
        for (std::int64_t i = 0; i < dims; ++i) {
          char& is_shared = is_shared_[batch.size() - dims + i];
          is_shared = is_shared && is_same_along(all[k], i);
        }
      }
    }
    std::int64_t stride = 1;
    for (std::size_t i = batch.size(); i-- > 0;) {
      std::vector<std::int64_t>& places = is_shared_[i] ? of_direction_ : of_trajectory_;
      std::vector<std::int64_t> more;
      for (std::int64_t j = 0; j < batch[i]; ++j) {
        for (const std::int64_t place : places) more.push_back(j * stride + place);
      }
      places = std::move(more);
      stride *= batch[i];
      if (!is_shared_[i]) batch_.insert(batch_.begin(), batch[i]);
    }
  }

  at::IntArrayRef batch() const { return batch_; }  ///< the batch of the trajectories
  std::int64_t trajectories() const { return static_cast<std::int64_t>(of_trajectory_.size()); }
  std::int64_t count() const { return static_cast<std::int64_t>(of_direction_.size()); }

  /// The place of a direction of a trajectory in the batch of the results.
  std::int64_t place(std::int64_t trajectory, std::int64_t direction) const {
    return of_trajectory_[trajectory] + of_direction_[direction];
  }

  /// The tensors of the trajectories without the dimensions of the directions.
  std::vector<Tensor> without(c10::ArrayRef<Argument> what, at::TensorList all) const {
    std::vector<Tensor> some = all.vec();
    for (std::size_t k = 0; k < some.size(); ++k) {
      const std::int64_t dims = some[k].dim() - what[k].sizes.count;
      const std::int64_t missing = static_cast<std::int64_t>(is_shared_.size()) - dims;
      for (std::int64_t i = dims; i-- > 0;) {
        if (is_shared_[missing + i]) some[k] = some[k].select(i, 0);
      }
    }
    return some;
  }

 private:
  // Whether x is the same along dimension `dim`. Bits are compared: 0 and -0 differ, and a NaN equals itself.
  static bool is_same_along(const Tensor& x, std::int64_t dim) {
    if (x.size(dim) == 1 || x.stride(dim) == 0) return true;
    const Tensor bits = x.scalar_type() == at::kDouble ? x.view(at::kLong) : x;
    return at::equal(bits, bits.narrow(dim, 0, 1).expand_as(bits));
  }

  std::vector<char> is_shared_;
  std::vector<std::int64_t> batch_, of_trajectory_, of_direction_;
};

/// The numbers of trajectory b of `view`, [..., T, size], at each step.
template <class T>
rigid::Series<const T> series_of(const lcs::StepsView<T>& view, std::int64_t b, std::int64_t size) {
  return {lcs::from(view, b, size).data, view.stride};
}

/// The numbers of trajectory b of a result [..., T, size] at each step, the steps first in memory.
template <class T>
rigid::Series<T> series_of(const Tensor& x, std::int64_t batch, std::int64_t b, std::int64_t size) {
  return {x.mutable_data_ptr<T>() + b * size, batch * size};
}

/// The number of trajectories of `steps` steps that are worth a separate task.
inline std::int64_t trajectories_per_task(std::int64_t steps, std::int64_t steps_per_task) {
  return std::max<std::int64_t>(1, steps_per_task / std::max<std::int64_t>(1, steps));
}

}  // namespace lcp::ops
