// Derivatives of rollouts: those of the first and of the second order are operators, which are found when they are
// asked for; beyond, they are operators of tensors, see by_tensors.cpp.
#include <ATen/TensorOperators.h>
#include <ATen/core/TensorBody.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <string>

#include "ops/composite.h"
#include "ops/derivative.h"
#include "ops/registration.h"
#include "ops/rollout/operators.h"

namespace lcp::ops {
namespace {

// Whether operators of tensors can read the numbers of x, so that they may choose by them.
bool can_read(at::TensorList x) {
  return std::all_of(x.begin(), x.end(), [](const Tensor& each) {
    const Tensor inner = without_wrappers(each);
    return !inner.is_meta() && !inner.key_set().has(c10::DispatchKey::Python) &&
           !inner.key_set().has(c10::DispatchKey::Functionalize) && !at::functorch::isBatchedTensor(inner);
  });
}

// x, [..., size...], summed to `shape` in an order that depends on nothing but both shapes.
Tensor summed(const Tensor& x, const Shape& shape, int core_dims) {
  if (x.sym_sizes() == c10::SymIntArrayRef(shape)) return x;
  const auto flat = [&](c10::SymIntArrayRef sizes) {
    Shape all(sizes.begin(), sizes.end() - core_dims);
    c10::SymInt core = 1;
    for (const c10::SymInt& size : sizes.slice(sizes.size() - core_dims)) core = core * size;
    all.push_back(core);
    return all;
  };
  Shape to = flat(shape);
  to.emplace_back(1);
  return sum_outer(x.reshape_symint(flat(x.sym_sizes())), at::ones({1}, x.options()), to).reshape_symint(shape);
}

// The differentiable inputs.
at::TensorList varied_of(const RolloutKind& kind, at::TensorList x) {
  TORCH_CHECK(x.size() == kind.inputs().size(), "x must have ", kind.inputs().size(), " tensors; got ", x.size());
  return x.slice(0, kind.differentiable_inputs());
}

std::int64_t bits_of(const Needs& needs) {
  std::int64_t bits = 0;
  for (std::size_t k = 0; k < needs.size(); ++k) bits |= std::int64_t{needs[k]} << k;
  return bits;
}

bool any_defined(const variable_list& g) {
  return std::any_of(g.begin(), g.end(), [](const Tensor& each) { return each.defined(); });
}

// Gradients, or tangents, with zeros that broadcast in place of those that are undefined.
List filled(const variable_list& given, at::TensorList like, c10::ArrayRef<Argument> what) {
  List all;
  for (std::size_t k = 0; k < what.size(); ++k) {
    const auto core = like[k].sym_sizes().slice(like[k].dim() - what[k].sizes.count);
    all.push_back(given[k].defined() ? given[k] : at::zeros({}, like[k].options()).expand_symint(core));
  }
  return all;
}

List primals(at::TensorList x) {
  List all;
  for (const Tensor& each : x) all.push_back(primal(each));
  return all;
}

List tangents_in(at::TensorList x, std::size_t count) {
  List all;
  for (std::size_t k = 0; k < count; ++k) all.push_back(tangent(x[k]));
  return all;
}

bool has_tangents(at::TensorList x) { return autograd::isFwGradDefinedTensorList(x); }

variable_list rollout_backward(const variable_list& g, const Needs& needs, const std::string& step, const List& x,
                               const List& path) {
  variable_list result(needs.size());
  if (!any_defined(g)) return result;
  const RolloutKind& kind = kind_of(step);
  List found = rollout_adjoint_op().call(step, x, path, filled(g, path, kind.gradients()), bits_of(needs));
  for (std::size_t k = 0; k < needs.size(); ++k) {
    if (needs[k]) result[k] = summed(found[k], shape_of(x[k]), kind.inputs()[k].sizes.count);
  }
  return result;
}

List rollout_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x, std::int64_t saved) {
  const RolloutKind& kind = kind_of(step);
  const at::TensorList varied = varied_of(kind, x);
  const auto node = make_node<rollout_backward>("LcpRolloutBackward", varied);
  const bool has_tangent = has_tangents(varied);
  if (node || has_tangent) saved = kind.saved(StepText(step), x);
  List path = below_autograd(rollout_op(), keys, step, x, saved);
  for (std::size_t k = 0; node && k < kind.differentiable_results(); ++k) autograd::set_history(path[k], node);
  if (has_tangent) {
    const List d = filled(tangents_in(x, varied.size()), x, kind.tangents());
    const List found = rollout_tangent_op().call(step, primals(x), primals(path), d);
    for (std::size_t k = 0; k < found.size(); ++k) path[k]._set_fw_grad(found[k], 0, /*is_inplace_op=*/false);
  }
  if (node) node->save(std::string(step), x.vec(), path);
  return path;
}

// The gradients of the inputs, linear in g: those in g are a tangent, those in x one of the second order.
variable_list rollout_adjoint_backward(const variable_list& c, const Needs& needs, const std::string& step,
                                       const List& x, const List& path, const List& g) {
  const RolloutKind& kind = kind_of(step);
  variable_list result(needs.size());
  if (!any_defined(c)) return result;
  const List d = filled(c, x, kind.tangents());
  const std::size_t inputs = kind.differentiable_inputs();
  if (std::any_of(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(inputs), [](bool need) { return need; })) {
    const List none = filled(variable_list(g.size()), path, kind.gradients());
    const List found = rollout_adjoint_tangent_op().call(step, x, path, g, d, none);
    for (std::size_t k = 0; k < inputs; ++k) {
      if (needs[k]) result[k] = summed(found[k], shape_of(x[k]), kind.inputs()[k].sizes.count);
    }
  }
  const List of_g = rollout_tangent_op().call(step, x, path, d);
  for (std::size_t k = 0; k < g.size(); ++k) {
    if (needs[inputs + k]) result[inputs + k] = summed(of_g[k], shape_of(g[k]), kind.gradients()[k].sizes.count);
  }
  return result;
}

List rollout_adjoint_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x, at::TensorList path,
                              at::TensorList g, std::int64_t wanted) {
  const RolloutKind& kind = kind_of(step);
  const at::TensorList varied = varied_of(kind, x);
  const auto node = make_node<rollout_adjoint_backward>("LcpRolloutAdjointBackward", varied, g);
  List found = below_autograd(rollout_adjoint_op(), keys, step, x, path, g, wanted);
  for (std::size_t k = 0; node && k < found.size(); ++k) autograd::set_history(found[k], node);
  if (has_tangents(varied) || has_tangents(g)) {
    const List d = filled(tangents_in(x, varied.size()), x, kind.tangents());
    const List dg = filled(tangents_in(g, g.size()), path, kind.gradients());
    const List change = rollout_adjoint_tangent_op().call(step, primals(x), primals(path), primals(g), d, dg);
    for (std::size_t k = 0; k < found.size(); ++k) found[k]._set_fw_grad(change[k], 0, /*is_inplace_op=*/false);
  }
  if (node) node->save(std::string(step), x.vec(), path.vec(), g.vec());
  return found;
}

// The tangents, linear in d: the gradients in d are those of the inputs, those in x of the second order.
variable_list rollout_tangent_backward(const variable_list& c, const Needs& needs, const std::string& step,
                                       const List& x, const List& path, const List& d) {
  const RolloutKind& kind = kind_of(step);
  variable_list result(needs.size());
  if (!any_defined(c)) return result;
  const List g = filled(c, path, kind.gradients());
  const List none = filled(variable_list(g.size()), path, kind.gradients());
  const std::size_t inputs = kind.differentiable_inputs();
  const List by_x = rollout_adjoint_tangent_op().call(step, x, path, g, d, none);
  const List by_d = rollout_adjoint_op().call(step, x, path, g, bits_of(Needs(inputs, true)));
  for (std::size_t k = 0; k < inputs; ++k) {
    const int core_dims = kind.inputs()[k].sizes.count;
    if (needs[k]) result[k] = summed(by_x[k], shape_of(x[k]), core_dims);
    if (needs[inputs + k]) result[inputs + k] = summed(by_d[k], shape_of(d[k]), core_dims);
  }
  return result;
}

constexpr const char* kNotTransformed =
    " of a rollout cannot be mapped nor traced: call it outside of torch.vmap and torch.compile";

List rollout_tangent_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x, at::TensorList path,
                              at::TensorList d) {
  const at::TensorList varied = varied_of(kind_of(step), x);
  if (has_tangents(varied) || has_tangents(d)) {
    TORCH_CHECK(can_read(x) && can_read(d), "forward mode of forward mode", kNotTransformed);
    return tangent_by_tensors(step, x, d);
  }
  const auto node = make_node<rollout_tangent_backward>("LcpRolloutTangentBackward", varied, d);
  List found = below_autograd(rollout_tangent_op(), keys, step, x, path, d);
  if (!node) return found;
  for (Tensor& each : found) autograd::set_history(each, node);
  node->save(std::string(step), x.vec(), path.vec(), d.vec());
  return found;
}

List rollout_adjoint_tangent_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x,
                                      at::TensorList path, at::TensorList g, at::TensorList d, at::TensorList dg) {
  const at::TensorList varied = varied_of(kind_of(step), x);
  const bool has_tangent = has_tangents(varied) || has_tangents(g) || has_tangents(d) || has_tangents(dg);
  if (!has_tangent && !autograd::compute_requires_grad(varied, g, d, dg)) {
    return below_autograd(rollout_adjoint_tangent_op(), keys, step, x, path, g, d, dg);
  }
  TORCH_CHECK(can_read(x) && can_read(g) && can_read(d) && can_read(dg), "the third derivative", kNotTransformed);
  return adjoint_tangent_by_tensors(step, x, g, d, dg);
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_rollout", TORCH_FN(rollout_autograd));
  library.impl("_rollout_adjoint", TORCH_FN(rollout_adjoint_autograd));
  library.impl("_rollout_tangent", TORCH_FN(rollout_tangent_autograd));
  library.impl("_rollout_adjoint_tangent", TORCH_FN(rollout_adjoint_tangent_autograd));
}

}  // namespace
}  // namespace lcp::ops
