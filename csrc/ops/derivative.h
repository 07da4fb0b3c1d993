// Building blocks for the formulas of derivatives. Sums are taken per element, so that no bit depends on the batch.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <limits>

#include "ops/active_set/operators.h"
#include "ops/node.h"
#include "ops/torch_versions.h"

namespace lcp::ops {

namespace autograd = torch::autograd;

inline Shape shape_of(const Tensor& x) { return x.sym_sizes().vec(); }

// A x with the batch dimensions of either; per element, so that the bits do not depend on the batch.
inline Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

// dM x, where a NaN in x (an unsolved element) makes a dM of 0 count as 0 and any other as NaN.
inline Tensor times_tangent(const Tensor& dM, const Tensor& x) {
  const Tensor unsolved = x.isnan();
  const Tensor changed = (dM != 0).any(-1).any(-1, true) & unsolved.any(-1, true);
  return times(dM, x.masked_fill(unsolved, 0)).masked_fill(changed, std::numeric_limits<double>::quiet_NaN());
}

inline Tensor sum_outer(const Tensor& t, const Tensor& x, c10::SymIntArrayRef size) {
  return sum_outer_op().call(t, x, size);
}

// x summed to `shape`, the sum's order as in sum_outer.
inline Tensor sum_to_shape(const Tensor& x, const Shape& shape) {
  if (x.sym_sizes() == c10::SymIntArrayRef(shape)) return x;
  Shape column = shape;
  column.emplace_back(1);
  return sum_outer(x, at::ones({1}, x.options()), column).squeeze(-1);
}

// g, or zeros that broadcast where g is undefined.
inline Tensor or_zeros(const Tensor& g, const Tensor& like) {
  return g.defined() ? g : at::zeros_symint({like.sym_size(-1)}, like.options());
}

inline Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

template <auto formula>
using NodePtr = NodePointer<FormulaNode<formula>>;

// The node of an operator with these differentiable inputs, if it needs one.
template <auto formula, class... Tensors>
NodePtr<formula> make_node(const char* name, const Tensors&... inputs) {
  if (!autograd::compute_requires_grad(inputs...)) return {};
  auto node = new_node<FormulaNode<formula>>(name);
  node->set_next_edges(autograd::collect_next_edges(inputs...));
  return node;
}

/// Calls an operator by the keys behind autograd.
template <class Handle, class... Arguments>
auto below_autograd(const Handle& op, c10::DispatchKeySet keys, const Arguments&... arguments) {
  at::AutoDispatchBelowADInplaceOrView guard;
  return op.redispatch(keys & c10::after_autograd_keyset, arguments...);
}

/// Sets the node, if there is one, as the history of the outputs of an operator.
template <class Node>
void set_history(const Node& node, std::initializer_list<std::reference_wrapper<Tensor>> outputs) {
  if (!node) return;
  for (Tensor& output : outputs) autograd::set_history(output, node);
}

template <class... Tensors>
bool has_tangent(const Tensors&... inputs) {
  return (autograd::isFwGradDefined(inputs) || ...);
}

/// Whether reverse or forward mode asks for a derivative by one of these inputs.
template <class... Tensors>
bool needs_derivative(const Tensors&... inputs) {
  return autograd::compute_requires_grad(inputs...) || has_tangent(inputs...);
}

inline Tensor primal(const Tensor& x) { return x._fw_primal(0); }
inline Tensor tangent(const Tensor& x) { return x._fw_grad(0); }

// Backward of a tensor that has its own value and another tensor's derivative.
inline variable_list carried_backward(const variable_list& g, const Needs&) { return {g[0]}; }

// Gives `value` the derivative of `carrier`.
inline void carry(Tensor& value, const Tensor& carrier) {
  const auto node = make_node<carried_backward>("LcpSmoothBackward", carrier);
  if (node) autograd::set_history(value, node);
  if (has_tangent(carrier)) value._set_fw_grad(tangent(carrier), 0, false);
}

}  // namespace lcp::ops
