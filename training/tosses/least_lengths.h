// Parameters that make residuals short, and how well the residuals determine them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace lcp::training {

struct LeastLengths {
  torch::Tensor at;          ///< [p], the parameters
  torch::Tensor deviations;  ///< [p], their standard deviations, see below
  torch::Tensor step;        ///< [p], the next step without damping, which may not make the sum smaller
};

/// Steps from `at` that make the sum of the lengths of the residuals smaller, at most `iterations`: those of
/// Levenberg and Marquardt for squares that are weighted by one over the lengths [Weiszfeld].
/// It counts the residuals as linear in the parameters, with derivatives that are differences over `step` on either
/// side; those that differ by more than 1 between the two sides are left out of the derivatives, since there a cube
/// falls onto another face, as are those that are not finite.
///
/// The covariance is H^-1 S H^-1 [White]: S is the sum over tosses of the squares of the slopes of their sums, H the
/// curvature of the whole sum. So the standard deviations are those that other tosses of the same cube would cause, and
/// know nothing of what is wrong with the model. Infinite where no residual depends on a parameter, and where others
/// can make up for a change of it.
///
///   [Weiszfeld] Weiszfeld: Sur le point pour lequel la somme des distances de n points donnes est minimum, Tohoku
///               Mathematical Journal 43, 1937.
///   [White] White: Maximum likelihood estimation of misspecified models, Econometrica 50, 1982.
///
/// The residuals and their derivatives are tasks that are divided among the processes (tasks.h). Collective.
///
///   residuals: at some parameters, [p]: [..., b, 2, 3], vectors of three numbers. toss: [b], int64, to which toss they
///   belong, from 0 on.
LeastLengths minimize_lengths(const std::function<torch::Tensor(const torch::Tensor&)>& residuals, torch::Tensor at,
                              double step, const torch::Tensor& toss, std::int64_t iterations);

}  // namespace lcp::training
