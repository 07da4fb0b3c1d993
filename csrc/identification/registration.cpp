// Estimation as operators, for Python.
//
// What a caller in Python gives as a function is called by ops/call_python.h, so that the methods run as they are.
#include <torch/library.h>

#include <optional>
#include <vector>

#include "lcp/identification/interval.h"
#include "lcp/identification/least_squares.h"
#include "lcp/identification/moving_horizon.h"
#include "lcp/identification/particle_filter.h"
#include "lcp/identification/uncertainty.h"
#include "ops/call_python.h"
#include "ops/composite.h"

namespace lcp::identification {

LCP_MEMBERS(Linearization, residuals, jacobian)
LCP_MEMBERS(LeastSquares, theta, objective, residuals, jacobian, iterations, status)
LCP_MEMBERS(MovingHorizonOptions, window, noises, max_iterations)
LCP_MEMBERS(MovingHorizon, mean, std, iterations)
LCP_MEMBERS(ParticleFilter, mean, std, distinct, effective, particles)
LCP_MEMBERS(Uncertainty, covariance, std, rank, null_space)
LCP_MEMBERS(IntervalOptions, coordinates, order)
LCP_MEMBERS(Interval, theta, std, bias, low, high, explained)

namespace {

using at::Tensor;
using ops::call_python;
using ops::define;
using ops::define_plain;
using Function = ops::PythonFunction;
using Tensors = std::vector<Tensor>;

Residuals residuals_of(Function function) {
  return [function](const Tensor& theta) { return call_python(function, {theta}).at(0); };
}

// The options of least squares that are no functions.
struct FitOptions {
  std::int64_t max_iterations = 100;
  double tolerance = 1e-8, least_curvature = 0;
  Tensor lower;
  std::optional<Function> observer;
};
LCP_MEMBERS(FitOptions, max_iterations, tolerance, least_curvature, lower, observer)

LeastSquares fit(Function function, bool linearized, const Tensor& start, const FitOptions& given) {
  LeastSquaresOptions options{given.max_iterations, given.tolerance, given.least_curvature, given.lower};
  if (given.observer) {
    options.observer = [&](std::int64_t iteration, const Tensor& theta, const Tensor& objective) {
      call_python(*given.observer, {theta.clone(), objective.clone()}, iteration);  // which a caller may keep
    };
  }
  const auto by_jacobian = [&](const Tensor& theta, const Tensor& problems) {
    const Tensors found = call_python(function, {theta, problems});
    return Linearization{found.at(0), found.at(1)};
  };
  return linearized ? least_squares(by_jacobian, start, options)
                    : least_squares(residuals_of(function), start, options);
}

MovingHorizon estimate(Function propagate, Function residuals, const Tensor& mean, const Tensor& deviation,
                       std::int64_t steps, const MovingHorizonOptions& options) {
  const HorizonModel model = {
      [&](const Tensor& x, const Tensor& w) {
        return call_python(propagate, {x, w}).at(0);
      },
      [&](const Tensor& x, std::int64_t step) { return call_python(residuals, {x}, step).at(0); }};
  return moving_horizon(model, mean, deviation, steps, options);
}

ParticleFilter filter(Function propagate, Function log_likelihood, const Tensor& start, std::int64_t steps,
                      const at::Generator& generator, const Tensor& roughening) {
  const FilterModel model = {
      [&](const Tensor& particles) { return call_python(propagate, {particles}).at(0); },
      [&](const Tensor& particles, std::int64_t step) { return call_python(log_likelihood, {particles}, step).at(0); }};
  return particle_filter(model, start, steps, generator, {roughening});
}

Interval interval_of(const Tensor& coarse_theta, const Tensor& coarse_residuals, const Tensor& theta,
                     const Tensor& residuals, const Tensor& jacobian, const Tensor& noise,
                     const IntervalOptions& options) {
  LeastSquares coarse, fine;
  coarse.theta = coarse_theta;
  coarse.residuals = coarse_residuals;
  fine.theta = theta;
  fine.residuals = residuals;
  fine.jacobian = jacobian;
  return interval(coarse, fine, noise, options);
}

LCP_LIBRARY_FRAGMENT(library) {
  library.def("_call_python(int function, Tensor[] tensors, int step) -> Tensor[]");
  define_plain(library, "_linearize(residuals, theta)",
               [](Function residuals, const Tensor& theta) { return linearize(residuals_of(residuals), theta); });
  define_plain<fit>(library, "_least_squares(function, linearized, start, *, options=)");
  define_plain<estimate>(library, "_moving_horizon(propagate, residuals, mean, deviation, steps, *, options=)");
  define_plain<filter>(library,
                       "_particle_filter(propagate, log_likelihood, start, steps, generator?, *, roughening?=None)");
  define<uncertainty>(library, "_uncertainty(jacobian, noise)");
  define<explains>(library, "_explains(residuals, noise, parameters, *, coordinates=1, seen=None)");
  define<interval_of>(library,
                      "_interval(coarse_theta, coarse_residuals, fine_theta, fine_residuals, fine_jacobian, noise, *, "
                      "options=)");
}

}  // namespace
}  // namespace lcp::identification
