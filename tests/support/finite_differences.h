// Derivatives by central differences, to compare with those of autograd.
#pragma once

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace lcp::testing {

using Inputs = std::vector<torch::Tensor>;
using Function = std::function<torch::Tensor(const Inputs&)>;  // returns a tensor of any shape

/// Fixed weights, different for each output.
inline torch::Tensor weights_like(const torch::Tensor& x) {
  return torch::cos(torch::arange(x.numel(), x.options()) * 1.7 + 0.3).view(x.sizes());
}

/// The largest difference between autograd's and the central-difference gradient of <weights, f(inputs)>, over all
/// elements of all inputs, relative to max(1, |gradient|).
inline double gradient_error(const Function& f, const Inputs& inputs, double h = 1e-6) {
  Inputs leaves;
  for (const auto& x : inputs) leaves.push_back(x.detach().clone().requires_grad_());
  const torch::Tensor value = f(leaves);
  const auto analytic = torch::autograd::grad({(weights_like(value) * value).sum()}, leaves, {}, {}, false, true);
  const torch::NoGradGuard no_grad;
  double worst = 0;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    torch::Tensor flat = leaves[k].detach().view(-1);
    const torch::Tensor gradient = analytic[k].defined() ? analytic[k].reshape(-1) : torch::zeros_like(flat);
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const double x = flat[i].item<double>();
      const auto at = [&](double shifted) {
        flat[i] = shifted;
        const torch::Tensor y = f(leaves);
        return (weights_like(y) * y).sum().item<double>();
      };
      const double numeric = (at(x + h) - at(x - h)) / (2 * h);
      flat[i] = x;
      const double exact = gradient[i].item<double>();
      const double error = std::abs(exact - numeric) / std::max(1.0, std::abs(numeric));
      worst = std::isnan(error) ? error : std::max(worst, error);
      if (std::isnan(worst)) return worst;
    }
  }
  return worst;
}

/// The same for second derivatives.
inline double second_gradient_error(const Function& f, const Inputs& inputs, double h = 1e-6) {
  const Function gradient = [&](const Inputs& at) {
    Inputs leaves;
    for (const auto& x : at) leaves.push_back(x.requires_grad() ? x : x.detach().requires_grad_());
    const torch::AutoGradMode enabled(true);
    const torch::Tensor value = f(leaves);
    // Squared, so that the gradient of the gradient is not that of a constant.
    const auto gradients =
        torch::autograd::grad({(weights_like(value) * value.square()).sum()}, leaves, {}, true, true);
    std::vector<torch::Tensor> flat;
    for (const auto& g : gradients) flat.push_back(g.reshape(-1));
    return torch::cat(flat);
  };
  return gradient_error(gradient, inputs, h);
}

/// d f / d x of each element of a batch: [b, outputs, inputs] for f: [b, inputs] to [b, outputs].
inline torch::Tensor jacobians(const std::function<torch::Tensor(const torch::Tensor&)>& f, const torch::Tensor& x) {
  const torch::Tensor leaf = x.detach().clone().requires_grad_();
  const torch::Tensor y = f(leaf);
  std::vector<torch::Tensor> rows;
  rows.reserve(y.size(-1));
  for (std::int64_t i = 0; i < y.size(-1); ++i) {
    rows.push_back(torch::autograd::grad({y.select(-1, i).sum()}, {leaf}, {}, true)[0]);
  }
  return torch::stack(rows, -2);
}

/// Compares the Jacobian of `next` at states x, [b, k], with one-sided differences in random directions.
struct Slopes {
  torch::Tensor error;  ///< [b], the largest difference between the Jacobian and a one-sided derivative
  torch::Tensor jump;   ///< [b], the largest difference between the derivatives of two opposite sides
};

inline Slopes slopes(const std::function<torch::Tensor(const torch::Tensor&)>& next, const torch::Tensor& x,
                     double h = 1e-7) {
  const torch::Tensor J = jacobians(next, x);
  const torch::Tensor here = next(x);
  Slopes worst{torch::zeros({x.size(0)}, torch::kDouble), torch::zeros({x.size(0)}, torch::kDouble)};
  for (int k = 0; k < 30; ++k) {
    const torch::Tensor d = torch::randn({x.size(1)}, torch::kDouble);
    const torch::Tensor ahead = (next(x + h * d) - here) / h;
    const torch::Tensor behind = (here - next(x - h * d)) / h;
    const torch::Tensor slope = torch::matmul(J, d);
    worst.error =
        torch::maximum(worst.error, torch::maximum((ahead - slope).abs().amax(-1), (behind - slope).abs().amax(-1)));
    worst.jump = torch::maximum(worst.jump, (ahead - behind).abs().amax(-1));
  }
  return worst;
}

}  // namespace lcp::testing
