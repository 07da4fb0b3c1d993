// Intervals of parameters that know the error of time stepping.
//
// A model that steps in time has the error h^r of its method, with the step h. Its best fit to exact data is therefore
// not the truth theta, but theta + c h^r, up to higher powers of h, whatever the noise. Fits of the same data with the
// steps h and h / 2 give c. The difference of their residuals gives the residuals of a model without that error [R]:
//
//   bias of the fit with h / 2 = (theta_h - theta_h/2) / (2^r - 1)
//   residuals without it       = r_h/2 - (r_h - r_h/2) / (2^r - 1)
//
// Both fits have the same noise, which therefore cancels in the bias, except for the change of the Jacobian.
//
//   [R]  Richardson: The deferred approach to the limit, Philosophical Transactions of the Royal Society A 226, 1927.
//   [Ro] Roache: Perspective: a method for uniform reporting of grid refinement studies, Journal of Fluids Engineering
//        116, 1994.
//   [N]  von Neumann: Distribution of the ratio of the mean square successive difference to the variance, Annals of
//        Mathematical Statistics 12, 1941.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/identification/least_squares.h"

namespace lcp::identification {

/// Whether residuals look like the noise that a fit of a true model leaves: false where one of two statistics is more
/// than five standard deviations from its expectation. With many normal residuals of a true model that happens to one
/// fit in a million.
///   * Size: the sum of the squared residuals, over noise^2, is too far above m minus the number of parameters.
///   * Correlation in time: the mean square of the differences of successive residuals of a coordinate is too far below
///     twice the mean square of the residuals [N]. Residuals whose sum of squares is at most noise^2 may be correlated,
///     as those that round-off leaves of data without noise.
/// Where the noise was estimated from the residuals, their size tells nothing, and only their correlation checks the
/// model.
///   residuals: [b, m], m = samples times coordinates, the coordinates of a sample one after another. noise: [b] or [],
///   > 0, the standard deviation of each. parameters: the number that were fitted. coordinates: 1 or more; with 1, all
///   residuals are one series. seen: [b, samples] or undefined, bool: false for the samples that do not count.
/// Returns [b], bool; false where a residual that counts is not finite. Throws c10::Error where a shape, dtype or
/// number does not fit.
LCP_API at::Tensor explains(const at::Tensor& residuals, const at::Tensor& noise, std::int64_t parameters,
                            std::int64_t coordinates = 1, const std::optional<at::Tensor>& seen = std::nullopt);

/// The factor by which the bias, which is known to first order in h, counts as larger. [Ro] uses this factor for the
/// error of a grid that is refined with a known order.
inline constexpr double kBiasSafety = 1.25;

/// How many standard deviations an interval of 95 % reaches to each side, where these are estimated with so many
/// degrees of freedom: the quantile .975 of Student's distribution, to nine digits up to 1e6; infinity below 1.
LCP_API double student_95(double degrees_of_freedom);

/// The same for the standard deviations of `parameters` least-squares estimates from the squared slopes of independent
/// groups of samples, whose squares are too small by the factor (n - p) / n where there are few groups.
LCP_API double half_width_95(std::int64_t groups, std::int64_t parameters);

struct IntervalOptions {
  /// The coordinates of a sample, see explains.
  std::int64_t coordinates = 1;
  /// r, the order of the time stepping, >= 1. Where a smooth model has a higher order than this, its bias is
  /// overestimated.
  double order = 1;
};

struct Interval {
  at::Tensor theta;  ///< [b, p], the estimates with the finer steps
  at::Tensor std;    ///< [b, p], by `uncertainty`: from the noise alone; infinite where the data do not determine it
  at::Tensor bias;   ///< [b, p]: theta is too large by this through its time steps; theta - bias is the limit
  /// [b, p], the ends of intervals of 95 %, theta -+ (1.96 std + kBiasSafety |bias|); NaN where the fit does not
  /// explain its data.
  at::Tensor low, high;
  /// [b], bool: whether the residuals without the error of time stepping look like noise, see explains.
  at::Tensor explained;
};

/// Intervals of 95 % that include the bias of the time steps, from two fits of the same data, the second with steps of
/// half the length. The intervals hold the truth with a probability of 95 % or, where the bias matters, more: one of
/// the two sides is always too wide. Fits that end in different minima have a large bias.
///   coarse, fine: of least_squares, with theta [b, p] and residuals [b, m], float64. noise: [b] or [], the standard
///   deviation of the errors.
/// Throws c10::Error where a shape, dtype or option does not fit.
LCP_API Interval interval(const LeastSquares& coarse, const LeastSquares& fine, const at::Tensor& noise,
                          const IntervalOptions& options = {});

}  // namespace lcp::identification
