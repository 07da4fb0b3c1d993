// Uncertainty and report of identified parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/files.h"
#include "run/output_folder.h"

namespace lcp::training {

/// The uncertainty of a least-squares estimate.
struct Confidence {
  torch::Tensor noise;     ///< [b], standard deviation of each coordinate: known, or estimated from the residuals
  torch::Tensor residual;  ///< [b], m, that of the residuals
  /// [b], bool: the residuals are what noise leaves. They are not too large for the noise, where that is known, and not
  /// correlated in time. Otherwise the model is wrong, or this is not its best fit, and `std` says nothing.
  torch::Tensor explained;
  torch::Tensor std;       ///< [b, p]; infinite where the data do not determine the unknown
  torch::Tensor quantile;  ///< [b], this many standard deviations around an estimate are an interval of 95 %
};

/// The uncertainty to first order. Where the noise is not known, its standard deviation is estimated from the
/// residuals, and the quantile is that of Student's distribution.
Confidence confidence(const TrackProblem& problem, const identification::LeastSquares& fit);

/// The values of mu that the track does not contradict, [b, 2], which contain the truth with probability 0.95 if the
/// track is explained: those for which the least objective over all other unknowns, the profile, exceeds that of the
/// fit by at most the square of quantile noise, as in a likelihood ratio test [SW, 5.9.3]. They are found + - quantile
/// std where the profile is a parabola. It is not where a body hardly slides: a larger mu may fit as well, and then the
/// upper bound is infinite.
///
///   [SW] Seber, Wild: Nonlinear Regression, Wiley, 1989.
torch::Tensor friction_interval(const TrackModel& model, const identification::LeastSquares& fit,
                                const Confidence& accuracy);

/// The bias of the estimates of mu of an estimator that follows tracks, [steps + 1, b], by the length of its steps: by
/// estimates with half of it, see lcp/identification/interval.h. Simulated tracks were made by the steps of the model,
/// and have none.
///   mean: [steps + 1, b, 1 + 2 k], the means of (mu, q, v). finer: returns them with steps of half the length.
torch::Tensor mu_bias(const TrackProblem& problem, const torch::Tensor& mean,
                      const std::function<torch::Tensor()>& finer);

/// ", bias of time steps 0.001" for the console, of one number; nothing for simulated tracks.
std::string bias_text(const TrackProblem& problem, const torch::Tensor& bias);

/// The values, with NaN for the tracks that are not explained.
torch::Tensor where_explained(const Confidence& accuracy, const torch::Tensor& x);

/// Columns track and time, the observed and the fitted values of each coordinate (x, x_fit), the fitted velocities
/// (v_x_fit), and of simulated bodies the true ones of all (x_true, v_x_true).
///   fitted: [steps + 1, b, k].
Table fit_table(const TrackFlags& flags, const TrackProblem& problem, const BodyState& fitted);

/// What an estimator knows after each step, a row for each step of each track: track,step,time,mu,mu_std,mu_low,
/// mu_high: from mu less two standard deviations and the bias to mu and as much.
///   mean, std: [steps + 1, b, ...], mu is their first entry.
Table online_table(const Tracks& tracks, const torch::Tensor& mean, const torch::Tensor& std,
                   const torch::Tensor& bias);

/// The motion in states (mu, position, velocity), [..., 1 + 2 k].
BodyState motion_of(const torch::Tensor& state);

/// The entry `unexplained` of metrics.json of an estimator that follows tracks: a line for each track from which its
/// motion, [steps + 1, b, k], is farther than the noise explains.
nlohmann::json unexplained_tracks(const TrackProblem& problem, const BodyState& followed);

/// position_rmse, m, and velocity_rmse, m/s, of the fit of simulated bodies, with angles as lengths; and
/// observed_position_rmse and observed_velocity_rmse, those of the observations and of their differences. Empty for a
/// file.
nlohmann::json motion_errors(const TrackProblem& problem, const BodyState& fitted);

/// Writes fit.csv and objective.csv (the objective of each track over mu, with all else as identified), prints the
/// estimates, and returns their part of metrics.json. Intervals of tracks of a file hold the bias of the time steps,
/// which fits with steps of half the length give. Tracks that are not explained have no uncertainty, and nothing is
/// said about the friction that they need.
nlohmann::json write_estimate(OutputFolder& out, const TrackFlags& flags, const TrackProblem& problem,
                              const TrackModel& model, const identification::LeastSquares& fit);

/// What monte_carlo_metrics needs of the fit of simulated tracks, [b, 8]: mu, its true value, both ends of its
/// interval, its standard deviation, the objective, the iterations and the status.
torch::Tensor estimates_of(const TrackProblem& problem, const TrackModel& model,
                           const identification::LeastSquares& fit);

/// Compares the scatter of the estimates with the predicted standard deviation.
///   estimates: [repeats, b, 8], of the same b tracks, each time with other noise.
nlohmann::json monte_carlo_metrics(const TrackFlags& flags, const torch::Tensor& estimates);

}  // namespace lcp::training
