// How well tosses determine the parameters of a cube.
#pragma once

#include <torch/types.h>

#include <functional>

namespace lcp::training {

/// Standard deviations, [p], of parameters that minimise the sum of the lengths of residuals, from the covariance
/// H^-1 S H^-1 [White]: S is the sum over tosses of the squares of the slopes of their sums, H the curvature of the
/// whole sum, where the residuals count as linear in the parameters. Their derivatives are differences over `step` on
/// either side. Residuals that differ by more than 1 between the two are left out: there a cube falls onto another
/// face. Infinite where no residual depends on a parameter; very large where other parameters can make up for it.
///
///   [White] White: Maximum likelihood estimation of misspecified models, Econometrica 50, 1982.
///
///   residuals: at some parameters, [p]: [..., b, 2, 3], vectors of three numbers. at: the parameters. toss: [b],
///   int64, to which toss they belong, from 0 on.
torch::Tensor standard_deviations(const std::function<torch::Tensor(const torch::Tensor&)>& residuals,
                                  const torch::Tensor& at, double step, const torch::Tensor& toss);

}  // namespace lcp::training
