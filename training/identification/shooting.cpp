#include "identification/shooting.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "identification/estimate.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using identification::least_squares;
using identification::LeastSquares;
using identification::LeastSquaresOptions;
using identification::LeastSquaresStatus;
using torch::Tensor;

// The values of mu from which the search starts again.
constexpr double kFurtherStarts[] = {0.02, 0.05, 0.1, 0.2, 0.4, 0.8};
constexpr const char* kEstimates = "estimates";

// For each body the fit of `b` where `mask` holds, otherwise that of `a`.
LeastSquares choose(const Tensor& mask, const LeastSquares& b, const LeastSquares& a) {
  const auto pick = [&](const Tensor& x, const Tensor& y) {
    Tensor m = mask;
    while (m.dim() < x.dim()) m = m.unsqueeze(-1);
    return at::where(m, x, y);
  };
  return {pick(b.theta, a.theta),       pick(b.objective, a.objective),   pick(b.residuals, a.residuals),
          pick(b.jacobian, a.jacobian), pick(b.iterations, a.iterations), pick(b.status, a.status)};
}

std::string reason(LeastSquaresStatus status, std::int64_t iterations) {
  switch (status) {
    case LeastSquaresStatus::kStopped:
      return "not converged in --iterations " + std::to_string(iterations);
    case LeastSquaresStatus::kStalled:
      return "the fit ends where no step improves it, though its gradient is not 0, as at a kink of the simulation; "
             "its uncertainty may be wrong";
    default:
      return "the first simulation has no solution, or no finite one";
  }
}

}  // namespace

void ShootingFlags::add_to(CommandLine& line) {
  line.add(
      "escape", escape,
      "What to do where mu has no effect, and with random forces, whose fit has several minima: starts (search again "
      "from several mu) or none",
      one_of({"starts", "none"}));
  line.add("iterations", iterations, "Largest number of iterations from each start", at_least_one);
  line.add("monte-carlo", monte_carlo,
           "Repeat with this many other seeds of the noise, to compare the scatter of mu with mu_std", at_least_zero);
  add_resume_flag(line, resume);
}

ShootingResult fit_by_shooting(const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                               const TrackModel& model) {
  ShootingResult shot{{}, {}, {{"started_at", "track", "iteration", "mu", "objective"}, {}}};
  std::optional<Progress> progress;
  std::int64_t before = 0;  // the iterations of earlier searches, each of which counts as if it took all of them
  const auto expect = [&](std::int64_t searches) {
    before = 0;
    progress.emplace("iteration", 0, searches * flags.iterations, run.quiet, std::chrono::seconds(1));
  };
  const auto search_from = [&](double mu) {
    LeastSquaresOptions options{.max_iterations = flags.iterations, .lower = model.lower()};
    options.observer = [&](std::int64_t iteration, const Tensor& theta, const Tensor& objective) {
      for (std::int64_t k = 0; k < theta.size(0); ++k) {
        shot.history.add_row({mu, static_cast<double>(k), static_cast<double>(iteration), theta[k][0].item<double>(),
                              objective[k].item<double>()});
      }
      progress->show(before + iteration,
                     "from mu " + short_number(mu) + ", objective " + short_number(objective.sum().item<double>()));
    };
    LeastSquares fit =
        least_squares([&](const Tensor& theta) { return model.residuals(theta); }, model.start(mu), options);
    before += flags.iterations;
    return fit;
  };
  expect(1);
  shot.fit = search_from(tracks.initial_mu);
  shot.escaped = (shot.fit.jacobian.select(-1, 0) == 0).all(-1);
  if (model.problem().random_forces() > 0) shot.escaped.fill_(true);  // there are several minima
  if (flags.escape == "none") shot.escaped.fill_(false);
  if (!shot.escaped.any().item<bool>()) return shot;
  expect(std::ssize(kFurtherStarts));
  for (const double start : kFurtherStarts) {
    const LeastSquares other = search_from(start);
    const Tensor iterations = shot.fit.iterations + at::where(shot.escaped, other.iterations, 0);
    shot.fit = choose(shot.escaped & (other.objective < shot.fit.objective), other, shot.fit);
    shot.fit.iterations = iterations;
  }
  return shot;
}

namespace {

// Fits the tracks, writes history.csv and the files of `write_estimate`, and returns the content of metrics.json. Warns
// of tracks whose fit did not converge.
nlohmann::json identify(OutputFolder& out, const RunFlags& run, const TrackFlags& tracks, const ShootingFlags& flags,
                        const TrackProblem& problem, const TrackModel& model) {
  const ShootingResult shot = fit_by_shooting(run, tracks, flags, model);
  nlohmann::json metrics = write_estimate(out, tracks, problem, model, shot.fit);
  out.write_csv("history.csv", shot.history);
  metrics.update({{"iterations", shot.fit.iterations.max().item<std::int64_t>()},
                  {"unconverged", (shot.fit.status != 0).sum().item<std::int64_t>()},
                  {"escaped", shot.escaped.sum().item<std::int64_t>()}});
  for (std::int64_t k = 0; k < shot.fit.status.size(0); ++k) {
    const auto status = static_cast<LeastSquaresStatus>(shot.fit.status[k].item<std::int8_t>());
    if (status == LeastSquaresStatus::kConverged) continue;
    const std::string why = "track " + std::to_string(k) + ": " + reason(status, flags.iterations);
    if (metrics["unexplained"].empty()) metrics["status"] = why;
    std::cerr << "warning: " << why << std::endl;
  }
  return metrics;
}

void require_fits(const nlohmann::json& metrics) {
  const nlohmann::json& objectives = metrics["objectives"];
  const auto fits = [](const nlohmann::json& x) { return x.is_number() && std::isfinite(x.get<double>()); };
  const auto without = std::count_if(objectives.begin(), objectives.end(), std::not_fn(fits));
  if (without == 0) return;
  throw std::runtime_error("no fit for " + std::to_string(without) + " of " + std::to_string(objectives.size()) +
                           " tracks: their first simulation has no finite distance from the data");
}

}  // namespace

int identify_by_shooting(
    CommandLine& line, const RunFlags& run, TrackSystem& system, const ShootingFlags& flags,
    std::int64_t tracks_of_a_task,
    const std::function<std::vector<std::string>(OutputFolder& out, const TrackProblem& problem)>& further) {
  FolderLock lock(run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.resume);
  system.validate(line, {"particles", "monte-carlo"});
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = system.load(run);
  OutputFolder out(line, run, std::move(lock));
  if (checkpoint) out.continue_earlier_run();
  const bool is_first = ProcessGroup::current().is_first();
  nlohmann::json metrics;
  if (is_first) metrics = identify(out, run, system.tracks, flags, problem, TrackModel(system, problem));
  if (flags.monte_carlo > 0) {
    RunFlags quietly = run;
    quietly.quiet = true;
    const std::int64_t at_once = std::max<std::int64_t>(1, tracks_of_a_task / system.tracks.bodies);
    Sweep sweep(out, run, checkpoint);
    const auto stopped = sweep.run((flags.monte_carlo + at_once - 1) / at_once, "part", [&](std::int64_t k) {
      const torch::NoGradGuard none;
      const std::int64_t first = k * at_once;
      const TrackProblem repeated = system.repeat(run, first, std::min(at_once, flags.monte_carlo - first));
      const TrackModel model(system, repeated);
      const LeastSquares fit = fit_by_shooting(quietly, system.tracks, flags, model).fit;
      return Checkpoint{{}, {{kEstimates, estimates_of(repeated, model, fit)}}};
    });
    if (stopped) return *stopped;
    if (!is_first) return 0;
    std::vector<Tensor> all;
    for (const auto& [k, part] : sweep.results()) all.push_back(part.tensors.at(kEstimates));
    metrics["monte_carlo"] = monte_carlo_metrics(system.tracks, at::cat(all).unflatten(0, {flags.monte_carlo, -1}));
  }
  if (!is_first) return 0;
  std::vector<std::string> figures = {"fit.png"};
  if (further) {
    for (const std::string& name : further(out, problem)) figures.push_back(name);
  }
  write_results(out, metrics, figures);
  require_fits(metrics);
  return 0;
}

}  // namespace lcp::training
