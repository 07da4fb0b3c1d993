// Reverse and forward mode for the operators, written as PyTorch's own derivatives are: a Node, not an
// autograd::Function, so that forward mode, functorch and double differentiation compose.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ops/schema.h"

namespace lcp::ops {
namespace {

namespace autograd = torch::autograd;
using autograd::SavedVariable;
using autograd::variable_list;

using Shape = std::vector<c10::SymInt>;

Shape shape_of(const Tensor& x) { return x.sym_sizes().vec(); }

// A x with the batch dimensions of either; per element, so that the bits do not depend on the batch.
Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

// dM x, where a NaN in x (an unsolved element) makes a dM of 0 count as 0 and any other as NaN.
Tensor times_tangent(const Tensor& dM, const Tensor& x) {
  const Tensor unsolved = x.isnan();
  const Tensor changed = (dM != 0).any(-1).any(-1, true) & unsolved.any(-1, true);
  return times(dM, x.masked_fill(unsolved, 0)).masked_fill(changed, std::numeric_limits<double>::quiet_NaN());
}

Tensor sum_outer(const Tensor& t, const Tensor& x, c10::SymIntArrayRef size) { return sum_outer_op().call(t, x, size); }

// x summed to `shape`, the sum's order as in sum_outer.
Tensor sum_to_shape(const Tensor& x, const Shape& shape) {
  if (x.sym_sizes() == c10::SymIntArrayRef(shape)) return x;
  Shape column = shape;
  column.emplace_back(1);
  return sum_outer(x, at::ones({1}, x.options()), column).squeeze(-1);
}

Tensor or_zeros(const Tensor& g, const Tensor& like) { return g.defined() ? g : at::zeros_like(like); }

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

std::tuple<Tensor, Tensor> solve_tangent(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& r) {
  return solve_tangent_op().call(M, z, w, r);
}

Tensor solve_adjoint(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& g_z, const Tensor& g_w) {
  return solve_adjoint_op().call(M, z, w, g_z, g_w);
}

c10::intrusive_ptr<autograd::Node> self(autograd::Node* node) {
  return c10::intrusive_ptr<autograd::Node>::unsafe_reclaim_from_nonowning(node);
}

// Backward of (z, w) = solve(M, q), with x = z, and of (dz, dw) = J r, with x = dz: in both the outputs change by
// J (dM x + dr), so that t = J' g is the gradient of r (or q), and t x' that of M.
struct TangentBackward final : autograd::Node {
  explicit TangentBackward(std::string label) : label_(std::move(label)) {}

  std::string name() const override { return label_; }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable* saved : {&saved_M, &saved_z, &saved_w, &saved_x}) saved->reset_data();
  }

  variable_list apply(variable_list&& g) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!g[0].defined() && !g[1].defined()) return {Tensor(), Tensor()};
    const Tensor M = saved_M.unpack();
    const Tensor z = saved_z.unpack(self(this));
    const Tensor w = saved_w.unpack(self(this));
    const Tensor x = saved_x.unpack(self(this));
    const Tensor t = solve_adjoint(M, z, w, or_zeros(g[0], z), or_zeros(g[1], w));
    return {task_should_compute_output(0) ? sum_outer(t, x, M_shape) : Tensor(),
            task_should_compute_output(1) ? sum_to_shape(t, r_shape) : Tensor()};
  }

  SavedVariable saved_M, saved_z, saved_w, saved_x;
  Shape M_shape, r_shape;

 private:
  std::string label_;
};

// Backward of t = J' g: p' dt = t' (dM (J p)_z) + (J p)' dg.
struct AdjointBackward final : autograd::Node {
  std::string name() const override { return "LcpSolveAdjointBackward"; }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable* saved : {&saved_M, &saved_z, &saved_w, &saved_t}) saved->reset_data();
  }

  variable_list apply(variable_list&& p) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!p[0].defined()) return {Tensor(), Tensor(), Tensor()};
    const Tensor t = saved_t.unpack(self(this));
    const auto [dz, dw] = solve_tangent(saved_M.unpack(), saved_z.unpack(), saved_w.unpack(), p[0]);
    return {task_should_compute_output(0) ? sum_outer(t, dz, M_shape) : Tensor(),
            task_should_compute_output(1) ? sum_to_shape(dz, g_z_shape) : Tensor(),
            task_should_compute_output(2) ? sum_to_shape(dw, g_w_shape) : Tensor()};
  }

  SavedVariable saved_M, saved_z, saved_w, saved_t;
  Shape M_shape, g_z_shape, g_w_shape;
};

struct SumOuterBackward final : autograd::Node {
  std::string name() const override { return "LcpSumOuterBackward"; }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable* saved : {&saved_t, &saved_x}) saved->reset_data();
  }

  variable_list apply(variable_list&& g) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!g[0].defined()) return {Tensor(), Tensor()};
    const Tensor t = saved_t.unpack();
    const Tensor x = saved_x.unpack();
    // The sum's gradient is the same for each of its terms, so it is expanded to the whole batch first.
    const auto batch =
        at::infer_size_symdimvector(t.sym_sizes().slice(0, t.dim() - 1), x.sym_sizes().slice(0, x.dim() - 1));
    const auto gradient = [&](const Tensor& product, const Tensor& argument) {
      c10::SymDimVector shape = batch;
      shape.push_back(argument.sym_size(-1));
      return sum_to_shape(product.expand_symint(shape), shape_of(argument));
    };
    return {task_should_compute_output(0) ? gradient(times(g[0], x.masked_fill(x.isnan(), 0)), t) : Tensor(),
            task_should_compute_output(1) ? gradient(times(g[0].mT(), t), x) : Tensor()};
  }

  SavedVariable saved_t, saved_x;
};

template <class Node, class... Tensors>
c10::intrusive_ptr<Node> make_node(c10::intrusive_ptr<Node> node, const Tensors&... inputs) {
  node->set_next_edges(autograd::collect_next_edges(inputs...));
  return node;
}

template <class... Tensors>
bool has_tangent(const Tensors&... inputs) {
  return (autograd::isFwGradDefined(inputs) || ...);
}

Tensor primal(const Tensor& x) { return x._fw_primal(0); }
Tensor tangent(const Tensor& x) { return x._fw_grad(0); }

std::tuple<Tensor, Tensor, Tensor> solve_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q,
                                                  const std::optional<Tensor>& guess, std::string_view method,
                                                  std::string_view ties, double kappa, std::optional<double> tolerance,
                                                  std::optional<std::int64_t> max_pivots) {
  check_layout(M, q);
  c10::intrusive_ptr<TangentBackward> node;
  if (autograd::compute_requires_grad(M, q)) {
    node = make_node(c10::make_intrusive<TangentBackward>("LcpSolveBackward"), M, q);
    node->saved_M = SavedVariable(M, false);
    node->M_shape = shape_of(M);
    node->r_shape = shape_of(q);
  }
  auto [z, w, status] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_op().redispatch(keys & c10::after_autograd_keyset, M, q, guess, method, ties, kappa, tolerance,
                                 max_pivots);
  }();
  if (node) {
    autograd::set_history(z, node);
    autograd::set_history(w, node);
  }
  if (has_tangent(M, q)) {
    const Tensor dM = tangent(M);
    const Tensor r = plus(dM.defined() ? times_tangent(dM, primal(z)) : Tensor(), tangent(q));
    const auto [dz, dw] = solve_tangent(primal(M), primal(z), primal(w), r);
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) {
    node->saved_z = SavedVariable(z, true);
    node->saved_w = SavedVariable(w, true);
    node->saved_x = SavedVariable(z, true);
  }
  return {z, w, status};
}

std::tuple<Tensor, Tensor> solve_tangent_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& z,
                                                  const Tensor& w, const Tensor& r) {
  c10::intrusive_ptr<TangentBackward> node;
  if (autograd::compute_requires_grad(M, r)) {
    node = make_node(c10::make_intrusive<TangentBackward>("LcpSolveTangentBackward"), M, r);
    node->saved_M = SavedVariable(M, false);
    node->saved_z = SavedVariable(z, false);
    node->saved_w = SavedVariable(w, false);
    node->M_shape = shape_of(M);
    node->r_shape = shape_of(r);
  }
  auto [dz, dw] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_tangent_op().redispatch(keys & c10::after_autograd_keyset, M, z, w, r);
  }();
  if (node) {
    autograd::set_history(dz, node);
    autograd::set_history(dw, node);
  }
  if (has_tangent(M, r)) {
    const Tensor dM = tangent(M);
    const Tensor change = plus(dM.defined() ? times_tangent(dM, primal(dz)) : Tensor(), tangent(r));
    const auto [ddz, ddw] = solve_tangent(primal(M), primal(z), primal(w), change);
    dz._set_fw_grad(ddz, 0, false);
    dw._set_fw_grad(ddw, 0, false);
  }
  if (node) node->saved_x = SavedVariable(dz, true);
  return {dz, dw};
}

Tensor solve_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& z, const Tensor& w,
                              const Tensor& g_z, const Tensor& g_w) {
  c10::intrusive_ptr<AdjointBackward> node;
  if (autograd::compute_requires_grad(M, g_z, g_w)) {
    node = make_node(c10::make_intrusive<AdjointBackward>(), M, g_z, g_w);
    node->saved_M = SavedVariable(M, false);
    node->saved_z = SavedVariable(z, false);
    node->saved_w = SavedVariable(w, false);
    node->M_shape = shape_of(M);
    node->g_z_shape = shape_of(g_z);
    node->g_w_shape = shape_of(g_w);
  }
  Tensor t = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_adjoint_op().redispatch(keys & c10::after_autograd_keyset, M, z, w, g_z, g_w);
  }();
  if (node) autograd::set_history(t, node);
  if (has_tangent(M, g_z, g_w)) {
    const Tensor dM = tangent(M);
    const Tensor dg_z = plus(dM.defined() ? times(dM.mT(), primal(t)) : Tensor(), tangent(g_z));
    t._set_fw_grad(
        solve_adjoint(primal(M), primal(z), primal(w), or_zeros(dg_z, primal(t)), or_zeros(tangent(g_w), primal(t))), 0,
        false);
  }
  if (node) node->saved_t = SavedVariable(t, true);
  return t;
}

Tensor sum_outer_autograd(c10::DispatchKeySet keys, const Tensor& t, const Tensor& x, c10::SymIntArrayRef size) {
  c10::intrusive_ptr<SumOuterBackward> node;
  if (autograd::compute_requires_grad(t, x)) {
    node = make_node(c10::make_intrusive<SumOuterBackward>(), t, x);
    node->saved_t = SavedVariable(t, false);
    node->saved_x = SavedVariable(x, false);
  }
  Tensor result = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return sum_outer_op().redispatch(keys & c10::after_autograd_keyset, t, x, size);
  }();
  if (node) autograd::set_history(result, node);
  if (has_tangent(t, x)) {
    const Tensor dt = tangent(t);
    const Tensor dx = tangent(x);
    result._set_fw_grad(plus(dt.defined() ? sum_outer(dt, primal(x), size) : Tensor(),
                             dx.defined() ? sum_outer(primal(t), dx, size) : Tensor()),
                        0, false);
  }
  return result;
}

TORCH_LIBRARY_IMPL(lcp, Autograd, library) {
  library.impl("solve", TORCH_FN(solve_autograd));
  library.impl("_solve_tangent", TORCH_FN(solve_tangent_autograd));
  library.impl("_solve_adjoint", TORCH_FN(solve_adjoint_autograd));
  library.impl("_sum_outer", TORCH_FN(sum_outer_autograd));
}

}  // namespace
}  // namespace lcp::ops
