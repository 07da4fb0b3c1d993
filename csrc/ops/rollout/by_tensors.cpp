// Derivatives of rollouts in operators of tensors, which have derivatives of any order.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/rollout/operators.h"

namespace lcp::ops {
namespace {

// x, recorded for derivatives. What is derived by one input must not count for another that it was computed from.
Tensor recorded(const Tensor& x) { return x.requires_grad() ? x.view_as(x) : x.detach().requires_grad_(); }

// The differentiable inputs, recorded, and the results of all, which have the batch dimensions of all inputs.
struct Recorded {
  List x, results;

  Recorded(std::string_view step, at::TensorList given) {
    const RolloutKind& kind = kind_of(step);
    at::DimVector batch;
    for (std::size_t k = 0; k < given.size(); ++k) batch = at::infer_size_dimvector(batch, batch_of(kind, given, k));
    List all = given.vec();
    for (std::size_t k = 0; k < kind.differentiable_inputs(); ++k) {
      x.push_back(recorded(all[k]));
      at::DimVector shape = batch;
      const auto core = all[k].sizes().slice(batch_of(kind, given, k).size());
      shape.append(core.begin(), core.end());
      all[k] = x[k].expand(shape);
    }
    results = by_tensors(kind.name())(StepText(step), all);
  }

 private:
  static at::IntArrayRef batch_of(const RolloutKind& kind, at::TensorList x, std::size_t k) {
    return x[k].sizes().slice(0, x[k].dim() - kind.inputs()[k].sizes.count);
  }
};

// The gradients of `of` in `in`, given theirs; 0 where they do not depend on an input.
List gradients(const List& of, const List& in, const List& given) {
  List found(in.size());
  if (!of.empty()) {
    found = torch::autograd::grad(of, in, given, /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!found[k].defined()) found[k] = at::zeros_like(in[k]).detach();
  }
  return found;
}

// Those of the sum of all products of `of` and `by`.
List product_gradients(const List& of, at::TensorList by, const List& in) {
  Tensor sum = at::zeros({}, of.front().options());
  for (std::size_t k = 0; k < of.size(); ++k) sum = sum + (of[k] * by[k]).sum();
  return gradients(sum.requires_grad() ? List{sum} : List(), in, {});
}

// J d, as the gradient of d' J' g in g.
List tangents(const Recorded& all, at::TensorList d) {
  List of, g, found;
  for (const Tensor& result : all.results) {
    if (!result.requires_grad()) continue;
    of.push_back(result);
    g.push_back(at::zeros_like(result).detach().requires_grad_());
  }
  const List by_g = g.empty() ? List() : product_gradients(gradients(of, all.x, g), d, g);
  std::size_t next = 0;
  for (const Tensor& result : all.results) {
    found.push_back(result.requires_grad() ? by_g[next++] : at::zeros_like(result));
  }
  return found;
}

}  // namespace

List adjoint_by_tensors(std::string_view step, at::TensorList x, at::TensorList g) {
  const Recorded all(step, x);
  List of, given;
  for (std::size_t k = 0; k < all.results.size(); ++k) {
    if (!all.results[k].requires_grad()) continue;
    of.push_back(all.results[k]);
    given.push_back(g[k].expand_as(all.results[k]));
  }
  return gradients(of, all.x, given);
}

List tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList d) {
  return tangents(Recorded(step, x), d);
}

// J' dg, and the gradient of g' J d in x.
List adjoint_tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList g, at::TensorList d,
                                at::TensorList dg) {
  const Recorded all(step, x);
  List sum = product_gradients(tangents(all, d), g, all.x);
  const List by_g = adjoint_by_tensors(step, x, dg);
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = sum[k] + by_g[k];
  return sum;
}

}  // namespace lcp::ops
