// Parameters that make residuals short, and how well the residuals determine them.
//
//   [Weiszfeld] Weiszfeld: Sur le point pour lequel la somme des distances de n points donnes est minimum, Tohoku
//               Mathematical Journal 43, 1937.
//   [White] White: Maximum likelihood estimation of misspecified models, Econometrica 50, 1982.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lcp/export.h"

namespace lcp::identification {

/// Computes work(0), ..., work(count - 1) and returns the results in this order. What implements it may divide the work
/// among threads or processes.
using Tasks =
    std::function<std::vector<at::Tensor>(std::int64_t count, const std::function<at::Tensor(std::int64_t k)>& work)>;

struct LeastLengthsOptions {
  double step = 0.02;  ///< of the differences by which the residuals are differentiated
  std::int64_t max_iterations = 6;
  double own_step = 0.2;  ///< the same of the own parameters of the residuals
  Tasks tasks = nullptr;  ///< divides the evaluations of the residuals; none: one after another
};

struct LeastLengths {
  at::Tensor theta;       ///< [p]
  at::Tensor covariance;  ///< [p, p], of the combinations of parameters that the residuals determine
  at::Tensor std;         ///< [p], infinite for what they do not determine
  at::Tensor step;        ///< [p], the next step without damping, which may not make the sum smaller
  at::Tensor own = {};    ///< [b, q], the own parameters; undefined without any
};

/// Steps from `start` that make the sum of the lengths of the residuals smaller: those of Levenberg and Marquardt for
/// squares that are weighted by one over the lengths [Weiszfeld]. Lengths count, not squares, so that residuals that
/// are far off have little weight. The residuals count as linear in the parameters, with derivatives that are
/// differences over `step` on either side. Those that change by more than 1 between the two sides are left out of the
/// derivatives, since there a motion takes another course, and so are those that are not finite.
///
/// The covariance is H^-1 S H^-1 [White]: S is the sum over groups of the squares of the slopes of their sums, H the
/// curvature of the whole sum. So it is that which other groups of the same kind would cause, such as other recordings
/// of the same body, and knows nothing of what is wrong with the model. A deviation is infinite where no residual
/// depends on a parameter, and where others can make up for a change of it. The differences of residuals with kinks may
/// hide the latter.
///   residuals: of parameters [p]: [..., b, m, 3], vectors of three numbers in units in which 1 is a usual error.
///   start: [p], float64. group: [b], int64, to which group they belong, from 0 on.
/// The result has no gradient, and does not depend on the number of threads if the residuals do not. Throws c10::Error
/// where a shape does not fit.
LCP_API LeastLengths least_lengths(const std::function<at::Tensor(const at::Tensor& theta)>& residuals,
                                   const at::Tensor& start, const at::Tensor& group,
                                   const LeastLengthsOptions& options = {});

/// The same where the residuals of each of the b have parameters of their own, too, such as the start of a motion.
/// These have the mean 0 and the standard deviation 1: half of the sum of their squares is part of what is minimised.
/// They are eliminated from each step (Schur complement), and the covariance knows that they were found from the same
/// residuals.
///   residuals: of parameters [p] and own ones [b, q]. own: [b, q], float64, where they begin.
LCP_API LeastLengths least_lengths(
    const std::function<at::Tensor(const at::Tensor& theta, const at::Tensor& own)>& residuals, const at::Tensor& start,
    const at::Tensor& own, const at::Tensor& group, const LeastLengthsOptions& options = {});

}  // namespace lcp::identification
