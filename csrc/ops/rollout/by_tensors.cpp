// Derivatives of rollouts in operators of tensors, which have derivatives of any order.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "ops/derivative.h"
#include "ops/rollout/operators.h"

namespace lcp::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The batch dimensions of arguments.
at::DimVector common_batch(std::initializer_list<std::pair<c10::ArrayRef<Argument>, at::TensorList>> all) {
  at::DimVector batch;
  for (const auto& [what, x] : all) {
    for (std::size_t k = 0; k < what.size(); ++k) {
      batch = at::infer_size_dimvector(batch, x[k].sizes().slice(0, x[k].dim() - what[k].sizes.count));
    }
  }
  return batch;
}

// The differentiable inputs of each trajectory, recorded, and the results of all. A view of an input, so that what is
// derived by it does not count for another one that it was computed from.
struct Recorded {
  List x, results;
  std::int64_t batch_dims;

  Recorded(std::string_view step, at::TensorList given, const at::DimVector& batch)
      : batch_dims(static_cast<std::int64_t>(batch.size())) {
    const RolloutKind& kind = kind_of(step);
    List all = given.vec();
    for (std::size_t k = 0; k < kind.differentiable_inputs(); ++k) {
      at::DimVector shape = batch;
      const auto core = all[k].sizes().slice(all[k].dim() - kind.inputs()[k].sizes.count);
      shape.append(core.begin(), core.end());
      all[k] = all[k].expand(shape);
      if (!all[k].requires_grad()) all[k].requires_grad_();
      x.push_back(all[k]);
    }
    results = by_tensors(kind.name())(StepText(step), all);
  }

  // J' g, one number for each input of each trajectory, for the derivative J of the results or of what is computed from
  // them.
  List adjoint(at::TensorList g, bool has_derivatives) const { return adjoint(results, g, has_derivatives); }
  List adjoint(const List& all, at::TensorList g, bool has_derivatives) const {
    List of, given;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!all[k].requires_grad()) continue;
      of.push_back(all[k]);
      given.push_back(g[k].expand_as(all[k]));
    }
    return gradients(of, x, given, has_derivatives);
  }

  // J d, as the gradient of d' J' g in g, which is the same for all g. NaN for steps that are not solved, and for
  // trajectories that have no derivative, whose J' g is NaN for g = 1.
  List tangents(at::TensorList d, bool has_derivatives) const { return tangents(results, d, has_derivatives); }
  List tangents(const List& all, at::TensorList d, bool has_derivatives) const {
    List g;
    for (const Tensor& each : all) g.push_back(at::ones_like(each).detach().requires_grad_());
    const List by_x = adjoint(all, g, true);
    const Tensor has_none = have_nan(by_x) & ~have_nan(results);
    List found = nan_where(has_none, gradients(products(by_x, d), g, {}, has_derivatives));
    for (std::size_t k = 0; k < found.size(); ++k) found[k] = found[k].masked_fill(results[k].isnan(), kNan);
    return found;
  }

  // Whether one of the numbers of a trajectory is NaN.
  Tensor have_nan(const List& all) const {
    Tensor found;
    for (const Tensor& each : all) {
      const Tensor here = each.isnan().flatten(batch_dims).any(-1);
      found = found.defined() ? found | here : here;
    }
    return found;
  }

  // `all` with NaN for these trajectories.
  List nan_where(const Tensor& trajectories, List all) const {
    for (Tensor& each : all) {
      Tensor mask = trajectories;
      while (mask.dim() < each.dim()) mask = mask.unsqueeze(-1);
      each = each.masked_fill(mask, kNan);
    }
    return all;
  }

  // The gradients of `of` in `in`, given theirs; 0 where they do not depend on an input.
  static List gradients(const List& of, const List& in, const List& given, bool has_derivatives) {
    List found(in.size());
    if (!of.empty()) {
      found = autograd::grad(of, in, given, /*retain_graph=*/true, has_derivatives, /*allow_unused=*/true);
    }
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (!found[k].defined()) found[k] = at::zeros_like(in[k]).detach();
    }
    return found;
  }

  // The sum of all products, to be derived; none where they do not depend on what is recorded.
  static List products(at::TensorList a, at::TensorList b) {
    Tensor sum = at::zeros({}, a.front().options());
    for (std::size_t k = 0; k < a.size(); ++k) sum = sum + (a[k] * b[k]).sum();
    return sum.requires_grad() ? List{sum} : List();
  }
};

}  // namespace

List adjoint_by_tensors(std::string_view step, at::TensorList x, at::TensorList g) {
  const RolloutKind& kind = kind_of(step);
  return Recorded(step, x, common_batch({{kind.inputs(), x}, {kind.gradients(), g}})).adjoint(g, false);
}

List tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList d, bool has_derivatives) {
  const RolloutKind& kind = kind_of(step);
  return Recorded(step, x, common_batch({{kind.inputs(), x}, {kind.tangents(), d}})).tangents(d, has_derivatives);
}

// The tangent of J d, where x changes by dx and d by dd.
List tangent_tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList d, at::TensorList dx,
                                at::TensorList dd) {
  const RolloutKind& kind = kind_of(step);
  const Recorded all(
      step, x, common_batch({{kind.inputs(), x}, {kind.tangents(), d}, {kind.tangents(), dx}, {kind.tangents(), dd}}));
  List found = all.tangents(all.tangents(d, true), dx, false);
  const List by_d = all.tangents(dd, false);
  for (std::size_t k = 0; k < found.size(); ++k) found[k] = found[k] + by_d[k];
  return found;
}

// The gradient of d' J' g + dg' y in x, where y are the results. NaN for trajectories whose J' g is NaN.
List adjoint_tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList g, at::TensorList d,
                                at::TensorList dg, bool has_derivatives) {
  const RolloutKind& kind = kind_of(step);
  const Recorded all(
      step, x, common_batch({{kind.inputs(), x}, {kind.gradients(), g}, {kind.tangents(), d}, {kind.gradients(), dg}}));
  const List by_x = all.adjoint(g, true);
  List of = Recorded::products(by_x, d);
  const List by_dg = Recorded::products(all.results, dg);
  of.insert(of.end(), by_dg.begin(), by_dg.end());
  return all.nan_where(all.have_nan(by_x), Recorded::gradients(of, all.x, {}, has_derivatives));
}

}  // namespace lcp::ops
