#include "lcp/learning/bilevel_loss.h"

#include <ATen/ATen.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "lcp/solve.h"

namespace lcp::learning {
namespace {

using at::Tensor;
using Shape = std::vector<std::int64_t>;

// A x for each element, as a sum whose order does not depend on the size of the batch.
Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

Tensor products(const Tensor& a, const Tensor& b) { return a.unsqueeze(-1) * b.unsqueeze(-2); }

Tensor sum_of_products(const Tensor& a, const Tensor& b) { return (a * b).sum(-1); }

Tensor expanded(const Tensor& x, const Shape& batch, std::int64_t last) {
  Shape shape = batch;
  for (std::int64_t i = -last; i < 0; ++i) shape.push_back(x.size(i));
  return x.expand(shape);
}

struct Lcp {
  Tensor M, q;
};

// The LCP of the optimality conditions:
//
//   0 <= lambda perp 2 a1 B'(B lambda - beta) + a2 (G + G') lambda + a2 f - G'nu >= 0
//   0 <= s      perp a3 e - nu >= 0
//   0 <= nu     perp G lambda + f + s >= 0
Lcp optimality_conditions(const Tensor& G, const Tensor& f, const Tensor& B, const Tensor& beta,
                          const BilevelWeights& a) {
  const std::int64_t n = G.size(-1);
  const Tensor gram = (B.unsqueeze(-1) * B.unsqueeze(-2)).sum(-3);
  const Tensor curvature = 2 * a.prediction * gram + a.complementarity * (G + G.mT());
  const Shape batch = curvature.sizes().slice(0, curvature.dim() - 2).vec();
  const Tensor rows = expanded(G, batch, 2);
  const Tensor zero = expanded(at::zeros({n, n}, G.options()), batch, 2);
  const Tensor slope = a.complementarity * f - 2 * a.prediction * (B * beta.unsqueeze(-1)).sum(-2);
  const Tensor constraint = f.expand_as(slope);
  if (a.hard) {
    return {at::cat({at::cat({curvature, -rows.mT()}, -1), at::cat({rows, zero}, -1)}, -2),
            at::cat({slope, constraint}, -1)};
  }
  const Tensor one = expanded(at::eye(n, G.options()), batch, 2);
  return {at::cat({at::cat({curvature, zero, -rows.mT()}, -1), at::cat({zero, zero, -one}, -1),
                   at::cat({rows, one, zero}, -1)},
                  -2),
          at::cat({slope, at::full_like(slope, a.violation), constraint}, -1)};
}

// The objective for each element. All arguments have the shape of the whole batch.
Tensor objective(const Tensor& G, const Tensor& f, const Tensor& B, const Tensor& beta, const Tensor& lambda,
                 const Tensor& s, const BilevelWeights& a) {
  const Tensor error = beta - times(B, lambda);
  return a.prediction * sum_of_products(error, error) +
         a.complementarity * sum_of_products(lambda, times(G, lambda) + f) + a.violation * s.sum(-1);
}

// The objective at its minimiser, with the derivative of [Danskin].
class Value : public torch::autograd::Function<Value> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& G, const Tensor& f, const Tensor& B,
                        const Tensor& beta, const Tensor& lambda, const Tensor& s, const Tensor& nu,
                        const BilevelWeights& a) {
    context->save_for_backward({B, beta, lambda, nu});
    context->saved_data["a1"] = a.prediction;
    context->saved_data["a2"] = a.complementarity;
    return objective(G, f, B, beta, lambda, s, a);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& incoming) {
    const auto saved = context->get_saved_variables();
    const Tensor &B = saved[0], &beta = saved[1], &lambda = saved[2], &nu = saved[3];
    const Tensor g = incoming[0].unsqueeze(-1);
    const Tensor df = g * (context->saved_data["a2"].toDouble() * lambda - nu);
    const Tensor dbeta = g * (2 * context->saved_data["a1"].toDouble() * (beta - times(B, lambda)));
    return {products(df, lambda), df, -products(dbeta, lambda), dbeta, {}, {}, {}, {}};
  }
};

// Whether a function of autograd in C++ can have the derivatives that are asked for. Such a function has neither the
// derivatives of torch.func nor forward mode.
bool can_use_function(std::initializer_list<Tensor> inputs) {
  return !at::functorch::maybeCurrentDynamicLayer() &&
         std::none_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x._fw_grad(0).defined(); });
}

void check(const Tensor& G, const Tensor& f, const Tensor& B, const Tensor& beta, const BilevelWeights& a) {
  const auto weight = [](const char* name, double x, bool valid, const char* range) {
    TORCH_CHECK(std::isfinite(x) && valid, name, " must be finite and ", range, "; got ", x);
  };
  weight("prediction", a.prediction, a.prediction > 0, "> 0");
  weight("complementarity", a.complementarity, a.complementarity >= 0, ">= 0");
  weight("violation", a.violation, a.violation > 0, "> 0");
  TORCH_CHECK(G.dim() >= 2 && G.size(-1) == G.size(-2), "G must be [..., n, n]; got ", G.sizes());
  const std::int64_t n = G.size(-1);
  TORCH_CHECK(f.dim() >= 1 && f.size(-1) == n, "f must be [..., n] with n = ", n, "; got ", f.sizes());
  TORCH_CHECK(B.dim() >= 2 && B.size(-1) == n, "B must be [..., k, n] with n = ", n, "; got ", B.sizes());
  TORCH_CHECK(beta.dim() >= 1 && beta.size(-1) == B.size(-2), "beta must be [..., k] with k = ", B.size(-2), "; got ",
              beta.sizes());
}

}  // namespace

BilevelLoss bilevel_loss(const Tensor& G, const Tensor& f, const Tensor& B, const Tensor& beta,
                         const BilevelWeights& weights) {
  check(G, f, B, beta, weights);
  const auto [M, q] = optimality_conditions(G, f, B, beta, weights);
  const SolveResult result = solve(M, q);
  const std::int64_t n = G.size(-1);
  const auto part = [&](const Tensor& z, std::int64_t k) { return z.slice(-1, k * n, (k + 1) * n); };
  const auto violation = [&](const Tensor& z) {
    // s is 0 with hard constraints, and NaN, as the other results are, where the problem was not solved.
    return weights.hard ? at::where(part(z, 0).isnan(), part(z, 0), 0) : part(z, 1);
  };
  const std::int64_t last = weights.hard ? 1 : 2;

  // Elements that failed get finite numbers, so that no NaN enters the gradient of tensors that elements share.
  const Tensor failed = result.status != 0;
  const Shape batch = result.status.sizes().vec();
  const auto kept = [&](const Tensor& x, std::int64_t last_dims) {
    return at::where(last_dims == 1 ? failed.unsqueeze(-1) : failed.unsqueeze(-1).unsqueeze(-1), 0,
                     expanded(x, batch, last_dims));
  };
  const Tensor z = kept(result.z, 1);
  const Tensor all_G = expanded(G, batch, 2), all_f = expanded(f, batch, 1), all_B = kept(B, 2),
               all_beta = kept(beta, 1);
  const Tensor lambda = part(z, 0), s = violation(z);
  // Without [Danskin] the derivative is the same, but is computed through the derivative of the solution. The
  // derivative of the objective by the unknowns vanishes along every motion of the solution.
  const Tensor value = can_use_function({G, f, B, beta})
                           ? Value::apply(all_G, all_f, all_B, all_beta, lambda, s, part(z, last), weights)
                           : objective(all_G, all_f, all_B, all_beta, lambda, s, weights);
  return {at::where(failed, std::numeric_limits<double>::quiet_NaN(), value), part(result.z, 0), violation(result.z),
          part(result.z, last), result.status};
}

}  // namespace lcp::learning
