// Derivatives of rollouts: those of the first and of the second order are operators, which are found when they are
// asked for; beyond, they are operators of tensors, see by_tensors.cpp.
#include <ATen/TensorOperators.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
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
  Tensor zero;
  for (std::size_t k = 0; k < what.size(); ++k) {
    all.push_back(given[k]);
    if (given[k].defined()) continue;
    if (!zero.defined()) zero = at::zeros({}, like[k].options());
    all.back() = zero.expand_symint(like[k].sym_sizes().slice(like[k].dim() - what[k].sizes.count));
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

// Whether one of the first `count` is needed, or one of the others.
bool needs_first(const Needs& needs, std::size_t count) {
  return std::find(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(count), true) !=
         needs.begin() + static_cast<std::ptrdiff_t>(count);
}
bool needs_others(const Needs& needs, std::size_t count) {
  return std::find(needs.begin() + static_cast<std::ptrdiff_t>(count), needs.end(), true) != needs.end();
}

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
  for (std::size_t k = 0; k < x.size(); ++k) check_layout(kind.inputs()[k].name, x[k]);
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
  if (needs_first(needs, inputs)) {
    const List none = filled(variable_list(g.size()), path, kind.gradients());
    const List found = rollout_adjoint_tangent_op().call(step, x, path, g, d, none);
    for (std::size_t k = 0; k < inputs; ++k) {
      if (needs[k]) result[k] = summed(found[k], shape_of(x[k]), kind.inputs()[k].sizes.count);
    }
  }
  if (!needs_others(needs, inputs)) return result;
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
  const std::size_t inputs = kind.differentiable_inputs();
  if (needs_first(needs, inputs)) {
    const List none = filled(variable_list(g.size()), path, kind.gradients());
    const List by_x = rollout_adjoint_tangent_op().call(step, x, path, g, d, none);
    for (std::size_t k = 0; k < inputs; ++k) {
      if (needs[k]) result[k] = summed(by_x[k], shape_of(x[k]), kind.inputs()[k].sizes.count);
    }
  }
  if (!needs_others(needs, inputs)) return result;
  const List by_d = rollout_adjoint_op().call(step, x, path, g, bits_of(Needs(inputs, true)));
  for (std::size_t k = 0; k < inputs; ++k) {
    if (needs[inputs + k]) result[inputs + k] = summed(by_d[k], shape_of(d[k]), kind.inputs()[k].sizes.count);
  }
  return result;
}

constexpr const char* kNotTransformed =
    " of a rollout cannot be mapped nor traced: call it outside of torch.vmap and torch.compile";
constexpr const char* kThird = "the third derivative";

List rollout_tangent_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x, at::TensorList path,
                              at::TensorList d) {
  const RolloutKind& kind = kind_of(step);
  const at::TensorList varied = varied_of(kind, x);
  const bool has_tangent = has_steps(path) && (has_tangents(varied) || has_tangents(d));
  if (has_tangent && can_read(x) && can_read(d)) return tangent_by_tensors(step, x, d, /*has_derivatives=*/true);
  const auto node = make_node<rollout_tangent_backward>("LcpRolloutTangentBackward", varied, d);
  List found = below_autograd(rollout_tangent_op(), keys, step, x, path, d);
  if (has_tangent) {
    TORCH_CHECK(!node, kThird, kNotTransformed);
    const List dx = filled(tangents_in(x, varied.size()), x, kind.tangents());
    const List dd = filled(tangents_in(d, d.size()), d, kind.tangents());
    const List change = rollout_tangent_tangent_op().call(step, primals(x), primals(path), primals(d), dx, dd);
    for (std::size_t k = 0; k < found.size(); ++k) found[k]._set_fw_grad(change[k], 0, /*is_inplace_op=*/false);
  }
  if (!node) return found;
  for (Tensor& each : found) autograd::set_history(each, node);
  node->save(std::string(step), x.vec(), path.vec(), d.vec());
  return found;
}

// The third derivative and all higher ones.
variable_list rollout_adjoint_tangent_backward(const variable_list& c, const Needs& needs, const std::string& step,
                                               const List& x, const List& path, const List& g, const List& d,
                                               const List& dg) {
  variable_list result(needs.size());
  if (!any_defined(c) || !has_steps(path)) return result;
  TORCH_CHECK(can_read(x) && can_read(g) && can_read(d) && can_read(dg) && can_read(c), kThird, kNotTransformed);
  const bool creates_graph = at::GradMode::is_enabled();
  const at::AutoGradMode records(true);
  const RolloutKind& kind = kind_of(step);
  const auto first = std::find_if(c.begin(), c.end(), [](const Tensor& each) { return each.defined(); });
  const at::IntArrayRef batch = first->sizes().slice(0, first->dim() - kind.tangents()[first - c.begin()].sizes.count);
  std::array<List, 4> given = {x, g, d, dg};
  const std::array what = {kind.tangents(), kind.gradients(), kind.tangents(), kind.gradients()};
  struct Wanted {
    std::size_t place;
    Shape shape;
    int core_dims;
  };
  std::vector<Wanted> wanted;
  variable_list varied;
  std::size_t next = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t k = 0; k < what[i].size(); ++k, ++next) {
      if (!needs[next]) continue;
      Tensor& each = given[i][k];
      const int core_dims = what[i][k].sizes.count;
      wanted.push_back({next, shape_of(each), core_dims});
      at::DimVector shape(batch.begin(), batch.end());
      const auto core = each.sizes().slice(each.dim() - core_dims);
      shape.append(core.begin(), core.end());
      each = each.expand(shape);
      varied.push_back(each);
    }
  }
  const List found = adjoint_tangent_by_tensors(step, given[0], given[1], given[2], given[3], /*has_derivatives=*/true);
  List of;
  variable_list of_found;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (!c[k].defined() || !found[k].requires_grad()) continue;
    of.push_back(found[k]);
    of_found.push_back(c[k]);
  }
  if (of.empty()) return result;
  const variable_list gradients = autograd::grad(of, varied, of_found, creates_graph, creates_graph, true);
  const at::AutoGradMode as_before(creates_graph);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (gradients[k].defined()) {
      result[wanted[k].place] = summed(gradients[k], wanted[k].shape, wanted[k].core_dims);
    }
  }
  return result;
}

List rollout_adjoint_tangent_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x,
                                      at::TensorList path, at::TensorList g, at::TensorList d, at::TensorList dg) {
  const at::TensorList varied = varied_of(kind_of(step), x);
  if (has_steps(path) && (has_tangents(varied) || has_tangents(g) || has_tangents(d) || has_tangents(dg))) {
    TORCH_CHECK(can_read(x) && can_read(g) && can_read(d) && can_read(dg), kThird, kNotTransformed);
    return adjoint_tangent_by_tensors(step, x, g, d, dg, /*has_derivatives=*/true);
  }
  const auto node = make_node<rollout_adjoint_tangent_backward>("LcpRolloutAdjointTangentBackward", varied, g, d, dg);
  List found = below_autograd(rollout_adjoint_tangent_op(), keys, step, x, path, g, d, dg);
  if (!node) return found;
  for (Tensor& each : found) autograd::set_history(each, node);
  node->save(std::string(step), x.vec(), path.vec(), g.vec(), d.vec(), dg.vec());
  return found;
}

List rollout_tangent_tangent_autograd(c10::DispatchKeySet keys, std::string_view step, at::TensorList x,
                                      at::TensorList path, at::TensorList d, at::TensorList dx, at::TensorList dd) {
  const at::TensorList varied = varied_of(kind_of(step), x);
  const bool has_derivative = autograd::compute_requires_grad(varied, d, dx, dd) || has_tangents(varied) ||
                              has_tangents(d) || has_tangents(dx) || has_tangents(dd);
  TORCH_CHECK(!has_derivative, kThird, kNotTransformed);
  return below_autograd(rollout_tangent_tangent_op(), keys, step, x, path, d, dx, dd);
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_rollout", TORCH_FN(rollout_autograd));
  library.impl("_rollout_adjoint", TORCH_FN(rollout_adjoint_autograd));
  library.impl("_rollout_tangent", TORCH_FN(rollout_tangent_autograd));
  library.impl("_rollout_adjoint_tangent", TORCH_FN(rollout_adjoint_tangent_autograd));
  library.impl("_rollout_tangent_tangent", TORCH_FN(rollout_tangent_tangent_autograd));
}

}  // namespace
}  // namespace lcp::ops
