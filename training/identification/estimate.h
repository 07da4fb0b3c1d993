// Uncertainty and report of identified parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "run/files.h"
#include "run/output_folder.h"

namespace lcp::training {

/// The uncertainty of a least-squares estimate.
struct Confidence {
  torch::Tensor noise;     ///< [b], standard deviation of each coordinate: known, or estimated from the residuals
  torch::Tensor std;       ///< [b, p]; infinite where the data do not determine the unknown
  torch::Tensor interval;  ///< [b, p, 2], contains the truth with probability 0.95
};

/// The uncertainty to first order. Where the noise is not known, its standard deviation is estimated from the
/// residuals, and the interval is that of Student's distribution.
Confidence confidence(const TrackProblem& problem, const identification::LeastSquares& fit);

/// Columns track and time, and the observed and the fitted values of each coordinate.
///   fitted: [steps + 1, b, k].
Table fit_table(const TrackFlags& flags, const Tracks& tracks, const torch::Tensor& fitted);

/// Writes fit.csv and objective.csv (the objective of each track over mu, with all else as identified), prints the
/// estimates, and returns their part of metrics.json.
nlohmann::json write_estimate(OutputFolder& out, const TrackFlags& flags, const TrackProblem& problem,
                              const TrackModel& model, const identification::LeastSquares& fit);

/// Compares the scatter of the estimates with the predicted standard deviation. The problem has the same tracks
/// `repeats` times, each time with other noise.
nlohmann::json monte_carlo_metrics(const TrackFlags& flags, const TrackProblem& problem,
                                   const identification::LeastSquares& fit, std::int64_t repeats);

}  // namespace lcp::training
