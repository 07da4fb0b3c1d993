// Uncertainty and report of identified parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/files.h"
#include "run/output_folder.h"

namespace lcp::training {

/// A statistic of the residuals may differ from that of noise by this many of its standard deviations. One track in a
/// million of those that the model explains differs by more.
constexpr double kSuspicious = 5;

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

/// ", bias of time steps 0.001" for the console, of one number; nothing for simulated tracks.
std::string bias_text(const TrackProblem& problem, const torch::Tensor& bias);

/// The values, with NaN for the tracks that are not explained.
torch::Tensor where_explained(const Confidence& accuracy, const torch::Tensor& x);

/// Columns track and time, the observed and the fitted values of each coordinate (x, x_fit), the fitted velocities
/// (v_x_fit), and of simulated bodies the true ones of all (x_true, v_x_true).
///   fitted: [steps + 1, b, k].
Table fit_table(const TrackFlags& flags, const TrackProblem& problem, const BodyState& fitted);

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
