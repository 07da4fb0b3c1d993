#include "identification/estimate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "lcp/identification/interval.h"
#include "lcp/identification/uncertainty.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kShown = 10;                    // the estimates of at most this many bodies are printed
constexpr std::int64_t kValues = 101;                  // objective.csv has this many equidistant values of mu
constexpr double kNormalQuantile = 1.959963984540054;  // 95 % of a normal distribution are within +- this

constexpr double kRounding = 1e-9;  // errors of at most this part of the observed positions count as rounding

// The interval of mu is looked for at this many distances from the estimate, in a geometric sequence, and then at as
// many equidistant ones between the last within it and the next.
constexpr std::int64_t kDistances = 16;
// The limits of the fit of the other unknowns for each mu: an error of 1e-6 of the objective is far below the square of
// the noise.
constexpr std::int64_t kProfileIterations = 20;
constexpr double kProfileTolerance = 1e-3;
// A parabola from the estimate through a distance gives the end where the root of the excess there is this close to 1.
constexpr double kRegular = 0.2;
// The number of distances that are tried: first by parabolas, then by linear interpolation between a distance within
// the interval and one beyond it.
constexpr std::int64_t kTries = 8;
constexpr double kLongest = 5;                                  // the largest ratio of a distance to the one before
constexpr double kFirstDistance = 1e-3, kLeastDistance = 1e-9;  // the former where mu has no effect on the fit
constexpr double kFarthest = 10;  // a bound of mu that is above this multiple of mu, or this number, is none

// The objective of each track as a function of mu, with the other unknowns as identified.
struct Profile {
  Tensor mu;         // [n], ascending
  Tensor objective;  // [n, b]
};

Profile profile_of(const TrackModel& model, const Tensor& theta) {
  const Tensor found = theta.select(-1, 0);
  const Tensor grid = at::linspace(0, std::max(1.0, 1.5 * found.max().item<double>()), kValues, at::kDouble);
  const Tensor mu = std::get<0>(at::cat({grid, found}).sort());
  Tensor guesses = theta.expand({mu.size(0), -1, -1}).clone();
  guesses.select(-1, 0).copy_(mu.unsqueeze(-1).expand_as(guesses.select(-1, 0)));
  return {mu, model.residuals(guesses).square().sum(-1)};
}

Table table_of(const Profile& profile) {
  Table table;
  table.add("mu", entries_of(profile.mu));
  for (std::int64_t k = 0; k < profile.objective.size(1); ++k) {
    table.add("objective_" + std::to_string(k), entries_of(profile.objective.select(1, k)));
  }
  return table;
}

// The least objective over the unknowns beside mu, from those of the fit and from the first guess: [m, b] for mu
// [m, b].
Tensor least_objective(const TrackModel& model, const identification::LeastSquares& fit, const Tensor& mu) {
  const auto residuals = [&](const Tensor& others) {  // [..., m b, p - 1]
    const Tensor each = others.unflatten(-2, mu.sizes());
    auto shape = each.sizes().vec();
    shape.back() = 1;
    return model.residuals(at::cat({mu.unsqueeze(-1).expand(shape), each}, -1)).flatten(-3, -2);
  };
  identification::LeastSquaresOptions options;
  options.max_iterations = kProfileIterations;
  options.tolerance = kProfileTolerance;
  Tensor least = at::full_like(mu, std::numeric_limits<double>::infinity());
  for (const Tensor& theta : {fit.theta, model.start(0)}) {
    const Tensor others = theta.slice(-1, 1).expand({mu.size(0), -1, -1}).flatten(0, 1);
    const Tensor objective = others.size(-1) > 0 ? identification::least_squares(residuals, others, options).objective
                                                 : residuals(others).square().sum(-1);
    least = at::fmin(least, objective.view(mu.sizes()));
  }
  return least;
}

// The end of the interval on one side, -1 or 1, of the estimates, [b]; of tracks that are not explained it may be any.
//   near: [b], where the parabola ends; infinite where there is none. excess: [b], the largest of the objective.
Tensor interval_end(const TrackModel& model, const identification::LeastSquares& fit, double side, const Tensor& near,
                    const Tensor& excess, const Tensor& explained) {
  const Tensor found = fit.theta.select(-1, 0);
  // The root of the excess of the objective over that of the fit, relative to the largest: [m, b].
  const auto excess_at = [&](const Tensor& distance) {
    const Tensor over = least_objective(model, fit, found + side * distance) - fit.objective;
    return (over.clamp_min(0) / excess).sqrt().nan_to_num(std::numeric_limits<double>::infinity());
  };
  const auto last_within = [&](const Tensor& of) {  // [1, b]; the first, 0, is always within
    return ((of <= 1) * at::arange(of.size(0)).unsqueeze(-1)).amax(0, true);
  };
  const auto next = [](const Tensor& last) { return (last + 1).clamp_max(kDistances); };
  const Tensor far = side < 0 ? found : kFarthest * found.clamp_min(1);
  Tensor expected = at::fmin(near, far), inside = at::zeros_like(far), of_inside = inside;
  Tensor outside = at::full_like(far, std::numeric_limits<double>::infinity()), of_outside = outside;
  for (std::int64_t k = 0; k < kTries; ++k) {
    const Tensor there = excess_at(expected.unsqueeze(0)).squeeze(0), root = expected / there;
    if (((there - 1).abs() < kRegular).logical_or(~explained).all().item<bool>()) return found + side * root;
    const Tensor within = there <= 1;
    inside = at::where(within, expected, inside);
    of_inside = at::where(within, there, of_inside);
    outside = at::where(within, outside, expected);
    of_outside = at::where(within, of_outside, there);
    const Tensor between = inside + (outside - inside) * ((1 - of_inside) / (of_outside - of_inside));
    const Tensor wanted = at::where(between.isfinite(), between, root);
    expected = at::fmin(wanted.clamp(expected / kLongest, expected * kLongest), far);
  }
  const Tensor first = at::fmin(at::where(near.isfinite(), near / 2, kFirstDistance), far);
  const Tensor powers = at::linspace(0, 1, kDistances, at::kDouble).unsqueeze(-1);
  const Tensor geometric = at::where(first > 0, first * (far / first).pow(powers), 0);
  const Tensor distance = at::cat({at::zeros_like(geometric.slice(0, 0, 1)), geometric});
  const Tensor last = last_within(excess_at(distance));
  const Tensor from = distance.gather(0, last), to = distance.gather(0, next(last));
  const Tensor finer = from + (to - from) * at::linspace(0, 1, kDistances + 1, at::kDouble).unsqueeze(-1);
  const Tensor excess_finer = excess_at(finer), before = last_within(excess_finer);
  const Tensor low = excess_finer.gather(0, before), high = excess_finer.gather(0, next(before));
  // A parabola's root is linear. Where the next excess is infinite, nothing is added.
  const Tensor part = ((1 - low) / (high - low)).nan_to_num(0).clamp(0, 1);
  const Tensor end = finer.gather(0, before) + part * (finer.gather(0, next(before)) - finer.gather(0, before));
  return at::where(last == kDistances, side < 0 ? 0 : std::numeric_limits<double>::infinity(), found + side * end)
      .squeeze(0);
}

// m, [b]: errors of at most this size count as rounding.
Tensor rounding(const TrackProblem& problem) {
  return kRounding * (problem.tracks.observed * problem.reach).abs().amax({0, 2});
}

// Why mu is not determined, for a track that the fit explains or not.
//   interval: [2], of this track.
std::string reason(const Profile& profile, const identification::LeastSquares& fit, bool explained,
                   const FrictionEvidence& evidence, const Tensor& interval, std::int64_t b) {
  const Tensor objective = profile.objective.select(1, b), best = objective.argmin();
  const double found = fit.objective[b].item<double>(), least = objective[best].item<double>();
  const bool better = least < found * (1 - kRounding);
  if (!explained || better) {
    // With other unknowns, the profile is that of a failed fit of these, and its least value means nothing.
    const bool alone = fit.theta.size(1) == 1;
    return "it has no effect on this fit, which does not explain the track" +
           (better && alone ? "; its objective is " + short_number(found) + " m^2, and " + short_number(least) +
                                  " m^2 for mu = " + short_number(profile.mu[best].item<double>())
                            : "");
  }
  if (evidence.least_mu[b].item<double>() < 0) return "it never touches the ground";
  const bool slides = evidence.slides[b].item<bool>();
  if (std::isfinite(interval[1].item<double>())) return "it has no effect on what is identified";
  return (slides ? "it may never slide; only mu >= " : "it never slides; only mu >= ") +
         short_number(interval[0].item<double>());
}

// A line for each direction of the unknowns that a track does not determine, and where it gives mu no upper bound:
// "track 2: mu is not determined: it never slides; only mu >= 0.8".
std::vector<std::string> unobservable(const TrackModel& model, const Profile& profile,
                                      const identification::LeastSquares& fit, const Confidence& accuracy,
                                      const FrictionEvidence& evidence, const Tensor& interval) {
  std::vector<std::string> lines;
  for (std::int64_t b = 0; b < fit.theta.size(0); ++b) {
    const std::string track = fit.theta.size(0) > 1 ? "track " + std::to_string(b) + ": " : "";
    const bool explained = accuracy.explained[b].item<bool>();
    IdentifiabilityReport identifiability;
    std::vector<std::string> names = model.names();
    names.resize(static_cast<std::size_t>(fit.theta.size(1)), "a random force");
    identifiability.add(fit.jacobian[b], names);
    const nlohmann::json known = identifiability.json();
    bool named = false;
    const auto add = [&](const std::string& direction) {
      named = named || direction == "mu";
      lines.push_back(track + direction + " is not determined" +
                      (direction == "mu" ? ": " + reason(profile, fit, explained, evidence, interval[b], b) : ""));
    };
    for (const std::string direction : known["unidentifiable_directions"]) add(direction);
    if (!named && explained && std::isinf(interval[b][1].item<double>())) add("mu");
  }
  return lines;
}

// A line for each track that the model does not explain.
std::vector<std::string> unexplained_fits(const TrackProblem& problem, const Confidence& accuracy) {
  std::vector<std::string> lines;
  const std::int64_t count = accuracy.explained.size(0);
  for (std::int64_t b = 0; b < count; ++b) {
    if (accuracy.explained[b].item<bool>()) continue;
    const std::string noise = std::isnan(problem.noise) ? "" : ", noise of " + short_number(problem.noise) + " m";
    lines.push_back((count > 1 ? "track " + std::to_string(b) + ": " : "") +
                    "the fit does not explain the track: residuals of " +
                    short_number(accuracy.residual[b].item<double>()) + " m" +
                    (noise.empty() ? ", correlated in time" : noise) + "; its uncertainty is not known");
  }
  return lines;
}

void print_estimates(const TrackProblem& problem, const identification::LeastSquares& fit, const Tensor& std,
                     const Tensor& bias, const Tensor& interval, const nlohmann::json& metrics) {
  const auto number = [](const Tensor& x, int digits) { return short_number(x.item<double>(), digits); };
  const std::int64_t count = fit.theta.size(0);
  for (std::int64_t b = 0; b < std::min(count, kShown); ++b) {
    std::cout << padded("mu" + (count > 1 ? " of track " + std::to_string(b) : ""), 24) << number(fit.theta[b][0], 8);
    if (std[b][0].isfinite().item<bool>()) {
      std::cout << " +- " << number(std[b][0], 2) << bias_text(problem, bias[b][0])
                << ", 95 %: " << number(interval[b][0], 8) << " to " << number(interval[b][1], 8);
    }
    std::cout << "\n";
  }
  if (count > kShown) std::cout << "and " << count - kShown << " more tracks in metrics.json\n";
  for (const std::string line : metrics["unobservable"]) std::cout << line << "\n";
}

// What the length of the time steps changes.
struct StepError {
  Tensor bias;                       // [b, p]: the estimates are too large by this
  identification::LeastSquares fit;  // its residuals are without this error where it does not explain its track
};

// By fits with the steps of the tracks and with half of them, see lcp/identification/interval.h. Simulated tracks were
// made by the steps of the model.
StepError step_error(const TrackModel& model, const identification::LeastSquares& fit) {
  StepError result{at::zeros_like(fit.theta), fit};
  if (model.problem().mu.defined()) return result;
  const auto fit_with = [&](std::int64_t substeps) {
    const auto residuals = [&](const Tensor& theta) { return model.residuals(theta, substeps); };
    return identification::least_squares(residuals, fit.theta, {.lower = model.lower()});
  };
  const identification::LeastSquares coarse = fit_with(1), fine = fit_with(2);
  result.bias = 2 * (coarse.theta - fine.theta);
  result.fit.residuals = at::where(confidence(model.problem(), fit).explained.unsqueeze(-1), fit.residuals,
                                   2 * fine.residuals - coarse.residuals);
  result.fit.objective = result.fit.residuals.square().sum(-1);
  return result;
}

}  // namespace

Confidence confidence(const TrackProblem& problem, const identification::LeastSquares& fit) {
  const bool known = !std::isnan(problem.noise);
  const Tensor seen = problem.tracks.seen.transpose(0, 1);  // [b, n, 1]
  const std::int64_t n = seen.size(1), k = problem.reach.size(0);
  const Tensor observed = static_cast<double>(k) * seen.sum({1, 2});
  const std::int64_t random = problem.random_forces();  // each of these unknowns has a residual of its own
  const Tensor freedom = (observed - (fit.theta.size(-1) - random)).clamp_min(1);
  const Tensor errors = fit.residuals.slice(-1, 0, n * k);
  Confidence result;
  result.residual = (fit.residuals.slice(-1, 0, n * k + random).square().sum(-1) / freedom).sqrt();
  result.noise = known ? at::full_like(result.residual, problem.noise) : (fit.objective / freedom).sqrt();
  const Tensor largest = result.noise * (1 + kSuspicious * (2 / freedom).sqrt()).sqrt();  // of a sum of squares
  // Random forces are residuals, too, but not part of the series.
  const Tensor independent = identification::explains(errors, result.noise, 0, k, seen.squeeze(-1).to(at::kBool));
  result.explained = (result.residual <= rounding(problem)) | ((result.residual <= largest) & independent);
  result.std = identification::uncertainty(fit.jacobian, result.noise).std;
  result.quantile = at::full_like(fit.objective, kNormalQuantile);
  for (std::int64_t b = 0; b < result.quantile.size(0) && !known; ++b) {
    result.quantile[b] = identification::student_95(freedom[b].item<double>());
  }
  return result;
}

std::string bias_text(const TrackProblem& problem, const Tensor& bias) {
  return problem.mu.defined() ? "" : ", bias of time steps " + short_number(bias.item<double>(), 2);
}

Tensor where_explained(const Confidence& accuracy, const Tensor& x) {
  Tensor explained = accuracy.explained;
  while (explained.dim() < x.dim()) explained = explained.unsqueeze(-1);
  return x.masked_fill(~explained, std::numeric_limits<double>::quiet_NaN());
}

Table fit_table(const TrackFlags& flags, const TrackProblem& problem, const BodyState& fitted) {
  const auto ending_in = [](const char* suffix, std::vector<std::string> names) {
    for (std::string& name : names) name += suffix;
    return names;
  };
  TrajectoryTable table = track_table(problem.tracks);
  const auto add = [&](const char* suffix, const BodyState& motion) {
    table.add(ending_in(suffix, flags.coordinates), motion.position);
    table.add(ending_in(suffix, flags.velocities()), motion.velocity);
  };
  table.add_steps("time", 0, problem.tracks.dt).add(flags.coordinates, problem.tracks.observed);
  add("_fit", fitted);
  if (problem.motion.position.defined()) add("_true", problem.motion);
  return table.take();
}

nlohmann::json motion_errors(const TrackProblem& problem, const BodyState& fitted) {
  const BodyState& truth = problem.motion;
  if (!truth.position.defined()) return nlohmann::json::object();
  const auto rmse = [&](const Tensor& x, const Tensor& y) {
    return ((x - y) * problem.reach).square().sum(-1).mean().sqrt().item<double>();
  };
  const Tensor& observed = problem.tracks.observed;
  return {{"position_rmse", rmse(fitted.position, truth.position)},
          {"velocity_rmse", rmse(fitted.velocity, truth.velocity)},
          {"observed_position_rmse", rmse(observed, truth.position)},
          {"observed_velocity_rmse", rmse(observed.diff(1, 0) / problem.tracks.dt, truth.velocity.slice(0, 1))}};
}

// The values of mu that the track does not contradict, [b, 2], which contain the truth with probability 0.95 if the
// track is explained: those for which the least objective over all other unknowns, the profile, exceeds that of the fit
// by at most the square of quantile noise, as in a likelihood ratio test [SW, 5.9.3]. They are found + - quantile std
// where the profile is a parabola. It is not where a body hardly slides: a larger mu may fit as well, and then the
// upper bound is infinite.
//
//   [SW] Seber, Wild: Nonlinear Regression, Wiley, 1989.
static Tensor friction_interval(const TrackModel& model, const identification::LeastSquares& fit,
                                const Confidence& accuracy) {
  const Tensor excess = (accuracy.quantile * accuracy.noise).square() + rounding(model.problem()).square();
  const Tensor near = (accuracy.quantile * accuracy.std.select(-1, 0)).clamp_min(kLeastDistance);
  return at::stack({interval_end(model, fit, -1, near, excess, accuracy.explained),
                    interval_end(model, fit, 1, near, excess, accuracy.explained)},
                   -1);
}

nlohmann::json write_estimate(OutputFolder& out, const TrackFlags& flags, const TrackProblem& problem,
                              const TrackModel& model, const identification::LeastSquares& fit) {
  const StepError steps = step_error(model, fit);
  Confidence accuracy = confidence(problem, steps.fit);
  accuracy.residual = confidence(problem, fit).residual;
  const FrictionEvidence evidence = model.evidence(fit.theta);
  const Profile profile = profile_of(model, fit.theta);
  const Tensor bias = where_explained(accuracy, steps.bias),
               reach = identification::kBiasSafety * bias.select(-1, 0).abs();
  Tensor interval = friction_interval(model, fit, accuracy);
  interval = at::stack({(interval.select(-1, 0) - reach).clamp_min(0), interval.select(-1, 1) + reach}, -1);
  Tensor std = where_explained(accuracy, accuracy.std);
  std.select(-1, 0).masked_fill_(interval.select(-1, 1).isinf(), std::numeric_limits<double>::infinity());
  const double objective = fit.objective.sum().item<double>();
  nlohmann::json metrics = {
      {"unknowns", model.names()},
      {"mu", to_json(fit.theta.select(-1, 0))},
      {"mu_std", to_json(std.select(-1, 0))},
      {"mu_bias", to_json(bias.select(-1, 0))},
      {"mu_interval", to_json(where_explained(accuracy, interval))},
      {"theta", to_json(fit.theta.slice(-1, 0, model.unknowns()))},
      {"theta_std", to_json(std.slice(-1, 0, model.unknowns()))},
      {"theta_bias", to_json(bias.slice(-1, 0, model.unknowns()))},
      {"noise_std", to_json(accuracy.noise)},
      {"residual_std", to_json(accuracy.residual)},
      {"objective", objective},
      {"objectives", to_json(fit.objective)},
      {"kinked_steps", to_json(evidence.certificate.kinked.to(at::kDouble))},
      {"tied_steps", to_json(evidence.certificate.tied.to(at::kDouble))},
      {"unexplained", unexplained_fits(problem, accuracy)},
      {"unobservable", unobservable(model, profile, fit, accuracy, evidence, interval)},
  };
  if (flags.noise > 0) metrics["objective_over_noise_squared"] = objective / (flags.noise * flags.noise);
  if (problem.mu.defined()) metrics["mu_error"] = to_json(fit.theta.select(-1, 0) - problem.mu);
  const BodyState motion = model.motion(fit.theta);
  metrics.update(motion_errors(problem, motion));
  out.write_csv("fit.csv", fit_table(flags, problem, motion));
  out.write_csv("objective.csv", table_of(profile));
  if (!out.quiet()) print_estimates(problem, fit, std, bias, interval, metrics);
  return metrics;
}

Tensor estimates_of(const TrackProblem& problem, const TrackModel& model, const identification::LeastSquares& fit) {
  const Confidence accuracy = confidence(problem, fit);
  const Tensor interval = friction_interval(model, fit, accuracy);
  return at::stack(
      {fit.theta.select(-1, 0), problem.mu, interval.select(-1, 0), interval.select(-1, 1), accuracy.std.select(-1, 0),
       fit.objective, fit.iterations.to(at::kDouble), fit.status.to(at::kDouble)},
      -1);
}

nlohmann::json monte_carlo_metrics(const TrackFlags& flags, const Tensor& estimates) {
  const std::vector<Tensor> column = estimates.unbind(-1);
  const Tensor &mu = column[0], &truth = column[1];
  const Tensor covered = (column[2] <= truth) & (truth <= column[3]);
  return {{"seeds", estimates.size(0)},
          {"mu_mean", to_json(mu.mean(0))},
          {"mu_std", to_json((mu - truth).square().mean(0).sqrt())},
          {"predicted_mu_std", to_json(column[4].mean(0))},
          {"covered_by_interval", covered.to(at::kDouble).mean().item<double>()},
          {"objective_over_noise_squared", column[5].mean().item<double>() / (flags.noise * flags.noise)},
          {"iterations", column[6].mean().item<double>()},
          {"unconverged", (column[7] != 0).sum().item<std::int64_t>()}};
}

}  // namespace lcp::training
