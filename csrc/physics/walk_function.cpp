#include "physics/walk_function.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lcp::physics {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;

// x, [..., size...], summed to `shape` in an order that depends on nothing but both shapes.
Tensor summed(const Tensor& x, at::IntArrayRef shape, std::size_t core_dims) {
  if (x.sizes() == shape) return x;
  const auto flat = [&](at::IntArrayRef sizes) {
    std::vector<c10::SymInt> all(sizes.begin(), sizes.end() - core_dims);
    all.emplace_back(c10::multiply_integers(sizes.end() - core_dims, sizes.end()));
    return all;
  };
  std::vector<c10::SymInt> to = flat(shape);
  to.emplace_back(1);
  static const auto sum_outer =
      operator_named<Tensor(const Tensor&, const Tensor&, c10::SymIntArrayRef)>("lcp::_sum_outer");
  return sum_outer.call(x.reshape_symint(flat(x.sizes())), at::ones({1}, x.options()), to).reshape(shape);
}

class Walk : public torch::autograd::Function<Walk> {
 public:
  static Tensors forward(AutogradContext* context, at::TensorList x, const c10::intrusive_ptr<WalkFunction>& function,
                         bool with_gradient) {
    Tensors path = function->run(x, with_gradient);
    Tensors saved = x.vec();
    saved.insert(saved.end(), path.begin(), path.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["function"] = c10::IValue::make_capsule(function);
    context->saved_data["inputs"] = static_cast<std::int64_t>(x.size());
    context->mark_non_differentiable(
        {path.begin() + static_cast<std::ptrdiff_t>(function->differentiable()), path.end()});
    context->set_materialize_grads(false);
    return path;
  }

  static Tensors backward(AutogradContext* context, const Tensors& g) {
    const auto function = c10::static_intrusive_pointer_cast<WalkFunction>(context->saved_data["function"].toCapsule());
    const auto inputs = context->saved_data["inputs"].toInt();
    const Tensors saved = context->get_saved_variables();
    const Tensors x(saved.begin(), saved.begin() + inputs), path(saved.begin() + inputs, saved.end());
    std::vector<bool> needs(inputs);
    for (std::size_t k = 0; k < needs.size(); ++k) needs[k] = context->needs_input_grad(k);
    Tensors gradients =
        c10::GradMode::is_enabled() ? differentiable(*function, x, g, needs) : walk_back(*function, x, path, g, needs);
    gradients.resize(inputs + 2);  // of the other arguments
    return gradients;
  }

 private:
  static Tensors walk_back(const WalkFunction& function, const Tensors& x, const Tensors& path, const Tensors& g,
                           const std::vector<bool>& needs) {
    Tensors given;
    for (std::size_t k = 0; k < function.differentiable(); ++k) {
      const Tensor& of = path[k];
      given.push_back(g[k].defined() ? g[k] : at::zeros({1, 1}, of.options()).expand({of.size(-2), of.size(-1)}));
    }
    std::int64_t wanted = 0;
    for (std::size_t k = 0; k < needs.size(); ++k) wanted |= std::int64_t{needs[k]} << k;
    Tensors all = function.adjoint(x, path, given, wanted);
    for (std::size_t k = 0; k < needs.size(); ++k) {
      all[k] = needs[k] ? summed(all[k], x[k].sizes(), function.core_dims(k)) : Tensor();
    }
    return all;
  }

  // The gradients of the same by operators of tensors, which can be differentiated again.
  static Tensors differentiable(const WalkFunction& function, const Tensors& given, const Tensors& g,
                                const std::vector<bool>& needs) {
    Tensors x, wanted;
    for (std::size_t k = 0; k < needs.size(); ++k) {
      // What is derived by one input must not count for another that it was computed from.
      x.push_back(needs[k] ? given[k].view_as(given[k]) : given[k]);
      if (needs[k]) wanted.push_back(x.back());
    }
    const Tensors all = function.by_tensors(x);
    Tensors results, of_results;
    for (std::size_t k = 0; k < function.differentiable(); ++k) {
      if (!g[k].defined() || !all[k].requires_grad()) continue;
      results.push_back(all[k]);
      of_results.push_back(g[k]);
    }
    Tensors gradients(needs.size());
    if (results.empty()) return gradients;
    const Tensors found = torch::autograd::grad(results, wanted, of_results, /*retain_graph=*/true,
                                                /*create_graph=*/true, /*allow_unused=*/true);
    for (std::size_t k = 0, next = 0; k < needs.size(); ++k) {
      if (needs[k]) gradients[k] = found[next++];
    }
    return gradients;
  }
};

bool needs_gradient(at::TensorList x) {
  return c10::GradMode::is_enabled() &&
         std::any_of(x.begin(), x.end(), [](const Tensor& input) { return input.requires_grad(); });
}

// Whether forward mode asks for the derivative by one of these.
bool has_change(at::TensorList x) {
  return std::any_of(x.begin(), x.end(), [](const Tensor& input) { return input._fw_grad(0).defined(); });
}

}  // namespace

Tensors walk(const Tensors& x, const c10::intrusive_ptr<WalkFunction>& function) {
  if (!has_change(x)) return Walk::apply(at::TensorList(x), function, needs_gradient(x));
  Tensors values, change;
  for (const Tensor& input : x) {
    values.push_back(input._fw_primal(0));
    const Tensor& of_input = input._fw_grad(0);
    change.push_back(of_input.defined() ? of_input : at::zeros({1}, input.options()).expand(input.sizes()));
  }
  Tensors path = function->run(values, /*with_gradient=*/true);
  const Tensors changed = function->tangent(values, path, change);
  for (std::size_t k = 0; k < changed.size(); ++k) path[k]._set_fw_grad(changed[k], 0, /*is_inplace_op=*/false);
  return path;
}

bool can_walk(at::TensorList x, bool forward_mode) {
  const bool readable = std::all_of(x.begin(), x.end(), [](const Tensor& input) {
    return input.device().is_cpu() && input.layout() == at::kStrided && can_read(input);
  });
  return readable && (!has_change(x) || (forward_mode && !needs_gradient(x)));
}

}  // namespace lcp::physics
