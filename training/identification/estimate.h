// What an identification found, how sure it is, and how it is told.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "lcp/identification/least_squares.h"
#include "lcp/identification/uncertainty.h"
#include "run/files.h"

namespace lcp::training {

/// Of least squares: how far an estimate may be off.
struct Confidence {
  torch::Tensor noise;     ///< [b], standard deviation of each coordinate: known, or of the residuals
  torch::Tensor std;       ///< [b, p]; infinite where the data do not determine the unknown
  torch::Tensor interval;  ///< [b, p, 2], that holds the truth with probability 0.95
};

/// To first order. Noise that is not known is taken from the residuals, whose quantiles are then Student's.
Confidence confidence(const TrackProblem& problem, const identification::LeastSquares& fit);

/// The quantile of Student's distribution with nu degrees of freedom that holds the middle 95 %.
///   [AS] Abramowitz, Stegun: Handbook of Mathematical Functions, 26.7.5.
double student_quantile(double nu);

/// What the tracks cannot tell, in words, a line for each direction: "track 2: mu is not determined: it never slides;
/// only mu >= 0.8".
std::vector<std::string> unobservable(const TrackModel& model, const identification::LeastSquares& fit,
                                      const Evidence& evidence);

/// Columns track, time, and of each coordinate what was observed and what was fitted.
///   fitted: [steps + 1, b, k].
Table fit_table(const TrackFlags& flags, const Tracks& tracks, const torch::Tensor& fitted);

/// Writes fit.csv and objective.csv (mu and the objective of each track, all else as identified); returns what
/// metrics.json says of an estimate.
nlohmann::json report(const RunFlags& run, const TrackFlags& flags, const TrackProblem& problem,
                      const TrackModel& model, const identification::LeastSquares& fit);

/// How the estimates of `repeats` times the same tracks with other noise scatter, beside what is predicted.
nlohmann::json scatter(const TrackFlags& flags, const TrackProblem& problem, const identification::LeastSquares& fit,
                       std::int64_t repeats);

}  // namespace lcp::training
