// What an identification found, how sure it is, and how it is told.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "identification/particle.h"
#include "lcp/identification/least_squares.h"
#include "lcp/identification/uncertainty.h"

namespace lcp::training {

/// Of least squares: how far an estimate may be off.
struct Confidence {
  torch::Tensor noise;     ///< [b], standard deviation of each coordinate: known, or of the residuals
  torch::Tensor std;       ///< [b, p]; infinite where the data do not determine the unknown
  torch::Tensor interval;  ///< [b, p, 2], that holds the truth with probability 0.95
};

/// To first order. Noise that is not known is taken from the residuals, whose quantiles are then Student's.
///   noise: m, or NaN. data: [b], how many numbers were observed.
Confidence confidence(const identification::LeastSquares& fit, double noise, const torch::Tensor& data);

/// The quantile of Student's distribution with nu degrees of freedom that holds the middle 95 %.
///   [AS] Abramowitz, Stegun: Handbook of Mathematical Functions, 26.7.5.
double student_quantile(double nu);

/// What the tracks cannot tell, in words, a line for each direction: "particle 2: mu is not determined: it never
/// slides; only mu >= 0.8".
std::vector<std::string> unobservable(const ParticleModel& model, const identification::LeastSquares& fit,
                                      const physics::PointMassSolution& rollout);

/// Writes fit.csv (track, time, x, y, x_fit, y_fit) and objective.csv (mu and the objective of each track, all else as
/// identified); returns what metrics.json says of an estimate.
nlohmann::json report(const RunFlags& run, const ParticleFlags& flags, const ParticleProblem& problem,
                      const ParticleModel& model, const identification::LeastSquares& fit);

}  // namespace lcp::training
