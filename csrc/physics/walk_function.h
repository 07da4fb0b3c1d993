// Rollouts in one call of an operator, whose derivative in reverse mode is one call of another one, its adjoint, and in
// forward mode of a third. Higher derivatives are those of operators of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/custom_class.h>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "physics/stepping.h"

namespace lcp::physics {

/// What a rollout computes from some tensors x. Objects are shared with the graph of the derivatives.
class WalkFunction : public torch::CustomClassHolder {
 public:
  /// All results, [..., T, k], those with gradients first.
  ///   with_gradient: whether `adjoint` will be called for them.
  virtual Tensors run(at::TensorList x, bool with_gradient) const = 0;

  /// How many results have gradients.
  virtual std::size_t differentiable() const = 0;

  /// The gradients of x for each trajectory, where bit k of `wanted` is set.
  ///   path: all results. g: the gradients of the first of them.
  virtual Tensors adjoint(const Tensors& x, const Tensors& path, const Tensors& g, std::int64_t wanted) const = 0;

  /// The tangents of the differentiable results for the tangents `change` of x, which have the shapes of x. Implemented
  /// by rollouts that call can_walk with forward_mode.
  virtual Tensors tangent(const Tensors& /*x*/, const Tensors& /*path*/, const Tensors& /*change*/) const {
    TORCH_CHECK(false, "this rollout has no walk in forward mode");
  }

  /// The results that have gradients in operators of tensors.
  virtual Tensors by_tensors(const Tensors& x) const = 0;

  /// The dimensions of x[place] behind those of the batch.
  virtual std::size_t core_dims(std::size_t place) const = 0;
};

/// All results, as functions of x to autograd.
Tensors walk(const Tensors& x, const c10::intrusive_ptr<WalkFunction>& function);

/// Whether the kernels of a walk can read all of x, and a walk has the derivatives that are asked for: not where a
/// tensor stands for others, as those of torch.func do, nor in both modes at a time.
///   forward_mode: whether the walk has its `tangent`.
bool can_walk(at::TensorList x, bool forward_mode = false);

template <class Signature>
c10::TypedOperatorHandle<Signature> operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

/// The results of an operator as a list.
template <class... Tensor>
Tensors listed(const std::tuple<Tensor...>& results) {
  return std::apply([](const auto&... result) { return Tensors{result...}; }, results);
}

}  // namespace lcp::physics
