#include "lcp/identification/interval.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unsupported/Eigen/SpecialFunctions>

#include "lcp/identification/uncertainty.h"

namespace lcp::identification {
namespace {

using at::Tensor;

constexpr double kQuantile95 = 1.959963984540054;  // 95 % of a normal distribution are within +- this

// The number of standard deviations by which a statistic of the residuals may differ from its expectation for noise.
constexpr double kMostDeviations = 5;

}  // namespace

Tensor explains(const Tensor& residuals, const Tensor& noise, std::int64_t parameters, std::int64_t coordinates,
                const std::optional<Tensor>& seen) {
  TORCH_CHECK(residuals.dim() == 2 && residuals.scalar_type() == at::kDouble, "residuals must be [b, m], float64; got ",
              residuals.sizes(), ", ", residuals.scalar_type());
  const std::int64_t b = residuals.size(0), m = residuals.size(1);
  TORCH_CHECK(parameters >= 0, "parameters must be >= 0; got ", parameters);
  TORCH_CHECK(coordinates >= 1 && m % coordinates == 0, "coordinates must divide the number of residuals, ", m,
              "; got ", coordinates);
  TORCH_CHECK(noise.dim() == 0 || (noise.dim() == 1 && (noise.size(0) == b || noise.size(0) == 1)), "noise must be [",
              b, "] or []; got ", noise.sizes());
  const std::int64_t count = m / coordinates;
  TORCH_CHECK(!seen || (seen->sizes() == at::IntArrayRef{b, count} && seen->scalar_type() == at::kBool),
              "seen must be [", b, ", ", count, "], bool; got ", seen ? seen->sizes() : at::IntArrayRef{}, ", ",
              seen ? seen->scalar_type() : at::kBool);
  const c10::NoGradGuard no_grad;
  const Tensor counts = (seen ? *seen : at::ones({b, count}, residuals.options().dtype(at::kBool))).unsqueeze(-1);
  const Tensor samples = residuals.unflatten(-1, {count, coordinates}).masked_fill(~counts, 0);
  const Tensor freedom = (static_cast<double>(coordinates) * counts.sum({1, 2}) - parameters).clamp_min(1);
  const Tensor variance = noise.to(at::kDouble).square(), squares = samples.square().sum({1, 2});
  const Tensor small = squares <= variance * freedom * (1 + kMostDeviations * (2 / freedom).sqrt());
  // The ratio is 2 for independent residuals, with a standard deviation of 2 / sqrt(pairs). It is NaN, which is not
  // below the limit, where all residuals are 0 or there are no pairs.
  const Tensor pairs = counts.slice(1, 1) & counts.slice(1, 0, -1);
  const auto mean_of = [&](const Tensor& x) { return (x * pairs).sum(1) / pairs.sum(1); };
  const Tensor own = samples.slice(1, 1).square() + samples.slice(1, 0, -1).square();
  const Tensor ratio = 2 * mean_of(samples.diff(1, 1).square()) / mean_of(own);
  const Tensor correlated = (ratio < 2 - kMostDeviations * 2 / pairs.sum(1).to(at::kDouble).sqrt()).any(-1);
  return small & (~correlated | (squares <= variance)) & samples.isfinite().all(-1).all(-1);
}

Interval interval(const LeastSquares& coarse, const LeastSquares& fine, const Tensor& noise,
                  const IntervalOptions& options) {
  TORCH_CHECK(coarse.theta.sizes() == fine.theta.sizes(), "coarse.theta must have the shape of fine.theta, ",
              fine.theta.sizes(), "; got ", coarse.theta.sizes());
  TORCH_CHECK(coarse.residuals.sizes() == fine.residuals.sizes(),
              "coarse.residuals must have the shape of fine.residuals, ", fine.residuals.sizes(), "; got ",
              coarse.residuals.sizes());
  TORCH_CHECK(options.order >= 1, "order must be >= 1; got ", options.order);
  const c10::NoGradGuard no_grad;
  const double share = 1 / (std::exp2(options.order) - 1);
  Interval result;
  result.theta = fine.theta;
  result.std = uncertainty(fine.jacobian, noise).std;
  result.bias = share * (coarse.theta - fine.theta);
  result.explained = explains(fine.residuals - share * (coarse.residuals - fine.residuals), noise, fine.theta.size(-1),
                              options.coordinates);
  const Tensor reach = (kQuantile95 * result.std + kBiasSafety * result.bias.abs())
                           .masked_fill(~result.explained.unsqueeze(-1), std::numeric_limits<double>::quiet_NaN());
  result.low = result.theta - reach;
  result.high = result.theta + reach;
  return result;
}

// The probability of (-t, t) is the regularised incomplete beta function I_x(1 / 2, nu / 2) of x = t^2 / (nu + t^2).
//   [AS] Abramowitz, Stegun: Handbook of Mathematical Functions, 26.7.1 and 26.5.27.
double student_95(double degrees_of_freedom) {
  const double nu = degrees_of_freedom;
  if (!(nu >= 1)) return std::numeric_limits<double>::infinity();
  double low = 1, high = 13;  // the quantiles of a normal distribution and of nu = 1, 1.96 and 12.71, are between
  for (double t = (low + high) / 2; low < t && t < high; t = (low + high) / 2) {
    (Eigen::numext::betainc(0.5, nu / 2, t * t / (nu + t * t)) < 0.95 ? low : high) = t;
  }
  return high;
}

double half_width_95(std::int64_t groups, std::int64_t parameters) {
  const std::int64_t left = groups - parameters;
  if (left < 1) return std::numeric_limits<double>::infinity();
  const auto degrees = static_cast<double>(left);
  return student_95(degrees) * std::sqrt(static_cast<double>(groups) / degrees);
}

}  // namespace lcp::identification
