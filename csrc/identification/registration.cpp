// Estimation as operators, for Python.
//
// What a caller in Python gives as a function is called by ops/call_python.h, so that the methods run as they are.
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "lcp/identification/interval.h"
#include "lcp/identification/least_squares.h"
#include "lcp/identification/moving_horizon.h"
#include "lcp/identification/particle_filter.h"
#include "lcp/identification/uncertainty.h"
#include "ops/call_python.h"
#include "ops/composite.h"

namespace lcp::identification {
namespace {

using at::Tensor;
using ops::call_python;
using Function = ops::PythonFunction;
using Tensors = std::vector<Tensor>;

Residuals residuals_of(Function function) {
  return [function](const Tensor& theta) { return call_python(function, {theta}).at(0); };
}

std::tuple<Tensor, Tensor> linearize_function(Function residuals, const Tensor& theta) {
  const Linearization found = linearize(residuals_of(residuals), theta);
  return {found.residuals, found.jacobian};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> least_squares_of(
    Function function, bool linearized, const Tensor& start, std::int64_t max_iterations, double tolerance,
    double least_curvature, const std::optional<Tensor>& lower, std::optional<Function> observer) {
  LeastSquaresOptions options;
  options.max_iterations = max_iterations;
  options.tolerance = tolerance;
  options.least_curvature = least_curvature;
  options.lower = lower.value_or(Tensor());
  if (observer) {
    options.observer = [&](std::int64_t iteration, const Tensor& theta, const Tensor& objective) {
      call_python(*observer, {theta.clone(), objective.clone()}, iteration);  // which a caller may keep
    };
  }
  const auto by_jacobian = [&](const Tensor& theta, const Tensor& problems) {
    const Tensors found = call_python(function, {theta, problems});
    return Linearization{found.at(0), found.at(1)};
  };
  const LeastSquares fit =
      linearized ? least_squares(by_jacobian, start, options) : least_squares(residuals_of(function), start, options);
  return {fit.theta, fit.objective, fit.residuals, fit.jacobian, fit.iterations, fit.status};
}

std::tuple<Tensor, Tensor, Tensor> moving_horizon_of(Function propagate, Function residuals, const Tensor& mean,
                                                     const Tensor& deviation, std::int64_t steps, std::int64_t window,
                                                     std::int64_t noises, std::int64_t max_iterations) {
  const HorizonModel model = {
      [&](const Tensor& x, const Tensor& w) {
        return call_python(propagate, {x, w}).at(0);
      },
      [&](const Tensor& x, std::int64_t step) { return call_python(residuals, {x}, step).at(0); }};
  const MovingHorizon found = moving_horizon(model, mean, deviation, steps, {window, noises, max_iterations});
  return {found.mean, found.std, found.iterations};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> particle_filter_of(Function propagate, Function log_likelihood,
                                                                      const Tensor& start, std::int64_t steps,
                                                                      const std::optional<at::Generator>& generator,
                                                                      const std::optional<Tensor>& roughening) {
  const FilterModel model = {
      [&](const Tensor& particles) { return call_python(propagate, {particles}).at(0); },
      [&](const Tensor& particles, std::int64_t step) { return call_python(log_likelihood, {particles}, step).at(0); }};
  const ParticleFilter found =
      particle_filter(model, start, steps, generator.value_or(at::Generator()), {roughening.value_or(Tensor())});
  return {found.mean, found.std, found.distinct, found.effective, found.particles};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> uncertainty_of(const Tensor& jacobian, const Tensor& noise) {
  const Uncertainty found = uncertainty(jacobian, noise);
  return {found.covariance, found.std, found.rank, found.null_space};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> interval_of(const Tensor& coarse_theta,
                                                                       const Tensor& coarse_residuals,
                                                                       const Tensor& theta, const Tensor& residuals,
                                                                       const Tensor& jacobian, const Tensor& noise,
                                                                       std::int64_t coordinates, double order) {
  LeastSquares coarse, fine;
  coarse.theta = coarse_theta;
  coarse.residuals = coarse_residuals;
  fine.theta = theta;
  fine.residuals = residuals;
  fine.jacobian = jacobian;
  const Interval found = interval(coarse, fine, noise, {.coordinates = coordinates, .order = order});
  return {found.theta, found.std, found.bias, found.low, found.high, found.explained};
}

LCP_LIBRARY_FRAGMENT(library) {
  library.def("_call_python(int function, Tensor[] tensors, int step) -> Tensor[]");
  library.def("_linearize(int residuals, Tensor theta) -> (Tensor residuals, Tensor jacobian)",
              TORCH_FN(linearize_function));
  library.def(
      "_least_squares(int function, bool linearized, Tensor start, *, int max_iterations=100, float tolerance=1e-8, "
      "float least_curvature=0.0, Tensor? lower=None, int? observer=None) -> (Tensor theta, Tensor objective, Tensor "
      "residuals, Tensor jacobian, Tensor iterations, Tensor status)",
      TORCH_FN(least_squares_of));
  library.def(
      "_moving_horizon(int propagate, int residuals, Tensor mean, Tensor deviation, int steps, *, int window=10, "
      "int noises=0, int max_iterations=20) -> (Tensor mean, Tensor std, Tensor iterations)",
      TORCH_FN(moving_horizon_of));
  library.def(
      "_particle_filter(int propagate, int log_likelihood, Tensor start, int steps, Generator? generator, *, "
      "Tensor? roughening=None) -> (Tensor mean, Tensor std, Tensor distinct, Tensor effective, Tensor particles)",
      TORCH_FN(particle_filter_of));
  ops::define_composite(library,
                        "_uncertainty(Tensor jacobian, Tensor noise) -> (Tensor covariance, Tensor std, Tensor rank, "
                        "Tensor null_space)",
                        TORCH_FN(uncertainty_of));
  ops::define_composite(
      library,
      "_explains(Tensor residuals, Tensor noise, int parameters, *, int coordinates=1, Tensor? seen=None) "
      "-> Tensor",
      TORCH_FN(explains));
  ops::define_composite(library,
                        "_interval(Tensor coarse_theta, Tensor coarse_residuals, Tensor fine_theta, Tensor "
                        "fine_residuals, Tensor fine_jacobian, Tensor noise, *, int coordinates=1, float order=1.0) -> "
                        "(Tensor theta, Tensor std, Tensor bias, Tensor low, Tensor high, Tensor explained)",
                        TORCH_FN(interval_of));
}

}  // namespace
}  // namespace lcp::identification
