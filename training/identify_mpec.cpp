// Identifies friction and initial states from noisy tracks by a mathematical program with complementarity constraints.
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "identification/bilinear_program.h"
#include "identification/estimate.h"
#include "identification/track_program.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

// Values of MpecOptions::first, which lead to different local minima.
constexpr double kFirstWeights[] = {1e-3, 0.1, 1, 10};

// The friction coefficients that the program begins with: that of [BT], and smaller ones.
constexpr double kInitialMus[] = {1, 0.3, 0.1};

// What Ipopt begins with, beside the observed positions.
struct Start {
  double first;  // weight of the penalty, or bound of the relaxation
  double mu;
  bool known_velocity;  // the motion that the program finds where the initial velocity is known
};

struct Flags {
  SystemFlag bodies;
  RunFlags run = {};
  std::string complementarity = "penalty";
  double first = 0;
  std::int64_t iterations = 3000;
  double bound = 0;
  std::string bound_norm = "infinity";

  void add_to(CommandLine& line) {
    run.add_to(line, Precision::kFloat64);
    bodies.add_to(line);
    bodies.system().add_bodies_to(line);
    bodies.system().tracks.add_estimate_to(line);
    line.add(
        "complementarity", complementarity,
        "How complementarity is imposed: penalty (products in the objective, with a growing weight) or relaxation (a "
        "shrinking upper bound on the products)",
        one_of({"penalty", "relaxation"}));
    line.add(
        "first", first,
        "First weight of the penalty, or first bound of the relaxation; 0: several, one after another until the result "
        "explains the tracks. Each begins with mu = 1, .3 and .1, or only with --initial-mu if that is given",
        nonnegative);
    line.add("iterations", iterations, "Largest number of Ipopt iterations for each of them", at_least_one);
    line.add("bound", bound, "Bound on the error of each observation, m; 0: none", nonnegative);
    line.add("bound-norm", bound_norm,
             "Norm of the error that --bound limits: infinity (x and y separately) or euclidean",
             one_of({"infinity", "euclidean"}));
    line.footer(
        "Examples: identify_mpec --noise 0.05 --estimate mu,q0,v0 --out runs/mpec\n"
        "          identify_mpec --system tripod --process-noise 0.5 --out runs/tripod\n"
        "Data of your own: CSV as for identify_shooting and identify_tripod. --mass, --gravity and --force say what "
        "acts\n"
        "on the bodies.");
  }

  // The starts, one after another until the fit explains the tracks.
  std::vector<Start> starts(const CommandLine& line) {
    std::vector<double> firsts(std::begin(kFirstWeights), std::end(kFirstWeights));
    std::iter_swap(firsts.begin(), std::find(firsts.begin(), firsts.end(), bodies.system().first_weight()));
    if (complementarity == "relaxation") firsts = {10, 0.1};
    if (first > 0) firsts = {first};
    std::vector<double> mus(std::begin(kInitialMus), std::end(kInitialMus));
    if (line.given("initial-mu")) mus = {bodies.system().tracks.initial_mu};
    std::vector<Start> all;
    for (const double with_first : firsts) {
      for (const double mu : mus) {
        all.push_back({with_first, mu, false});
        if (bodies.system().tracks.estimate == "mu,q0,v0") all.push_back({with_first, mu, true});
      }
    }
    return all;
  }

  MpecOptions options(double with_first) const {
    return {.method = complementarity == "penalty" ? Complementarity::kPenalty : Complementarity::kRelaxation,
            .first = with_first,
            .max_iterations = iterations};
  }
};

// What one start ended with.
struct Found {
  MpecSolution solution;
  ProgramMotion motion;
  std::optional<lcp::identification::LeastSquares> fit;  // of the model at these unknowns; none where not solved
  bool explained = false;                                // the fit explains all tracks

  bool better_than(const Found& other) const {
    if (!fit || !other.fit) return fit.has_value() && !other.fit;
    if (explained != other.explained) return explained;
    return fit->objective.sum().item<double>() < other.fit->objective.sum().item<double>();
  }
};

Found read(const TrackSystem& system, const TrackProgram& program, MpecSolution solution, const TrackProblem& problem,
           const TrackModel& model) {
  Found found{std::move(solution), {}, {}};
  found.motion = system.read(program, found.solution, model);
  if (found.solution.status != "solved") return found;
  const Tensor& theta = found.motion.theta;
  const auto at = lcp::identification::linearize([&](const Tensor& x) { return model.residuals(x); }, theta);
  const Tensor none = torch::zeros({theta.size(0)}, torch::kLong);
  found.fit = {theta, at.residuals.square().sum(-1), at.residuals, at.jacobian, none, none};
  found.explained = confidence(problem, *found.fit).explained.all().item<bool>();
  return found;
}

int identify_mpec(int argc, const char* const* argv) {
  CommandLine line("identify_mpec",
                   "Finds the friction, and if asked the start, of bodies that slide, from noisy tracks: the states "
                   "and forces of all\n"
                   "steps are unknowns of one program, solved by Ipopt with exact derivatives. identify_shooting and "
                   "identify_tripod\n"
                   "solve the same problem by simulation.");
  Flags flags{SystemFlag(argc, argv)};
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  const TrackSystem& system = flags.bodies.system();
  flags.bodies.system().validate(line, {"particles"});
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const TrackProblem problem = system.load(flags.run);
  const TrackModel model(system, problem);
  OutputFolder out(line, flags.run);
  TrackProgram program = system.program(problem, {flags.bound, flags.bound_norm == "euclidean"});
  const std::vector<Start> from = flags.starts(line);
  Table history{{"start", "iteration", "parameter", "objective", "infeasibility"}, {}};
  std::int64_t before = 0;  // the iterations of earlier starts
  Progress progress("start", 0, std::ssize(from), flags.run.quiet, std::chrono::seconds(1));
  nlohmann::json starts = nlohmann::json::array();
  std::optional<Found> best;
  for (const auto& [first, initial_mu, known_velocity] : from) {
    const std::int64_t start = std::ssize(starts);
    program.begin_with(initial_mu);
    const auto solve_from_here = [&](const BilinearProgram& smooth) {
      MpecSolution end = solve(smooth, flags.options(first), [&](const MpecIterate& at) {
        const std::int64_t iteration = before + at.iteration;
        history.add_row(
            {static_cast<double>(start), static_cast<double>(iteration), at.parameter, at.objective, at.infeasibility});
        progress.show(start, "iteration " + std::to_string(iteration) + ", objective " + short_number(at.objective) +
                                 ", infeasibility " + short_number(at.infeasibility));
      });
      before += end.iterations;
      return end;
    };
    BilinearProgram begun = program.program;
    if (known_velocity) {  // there are fewer local minima then
      const MpecSolution known = solve_from_here(program.with_known_velocity());
      if (known.status == "solved") begun.start = known.x;
    }
    MpecSolution solution = solve_from_here(begun);
    Found found = read(system, program, std::move(solution), problem, model);
    starts.push_back({{"first", first},
                      {"initial_mu", initial_mu},
                      {"known_velocity", known_velocity},
                      {"status", found.solution.status},
                      {"iterations", found.solution.iterations},
                      {"program_objective", found.solution.objective},
                      {"mu", to_json(found.motion.theta.select(-1, 0))}});
    if (!best || found.better_than(*best)) best = std::move(found);
    if (best->explained) break;
  }
  nlohmann::json metrics = {{"program_objective", best->solution.objective},
                            {"program_unknowns", program.program.lower.size()},
                            {"iterations", best->solution.iterations},
                            {"starts", starts},
                            {"max_complementarity", best->solution.largest_product},
                            {"lcp_residual", best->motion.residual.slice(0, 1).max().item<double>()}};
  out.write_csv("history.csv", history);
  out.write_csv("motion.csv", motion_table(system.tracks, problem.tracks, best->motion));
  const bool solved = best->fit.has_value();
  if (solved) {
    metrics.update(write_estimate(out, system.tracks, problem, model, *best->fit));
  } else {
    metrics.update({{"status", best->solution.status},
                    {"mu", nullptr},
                    {"last_iterate", to_json(best->motion.theta.slice(-1, 0, model.unknowns()))}});
  }
  std::vector<std::string> figures = {"motion.png"};
  if (solved) figures.emplace_back("fit.png");
  write_results(out, metrics, figures);
  if (!solved) {
    const std::string near = flags.bound > 0 ? "; no motion may be as near to the tracks as --bound" : "";
    throw std::runtime_error("not solved: " + best->solution.status + near +
                             "; motion.csv holds the last iterate of Ipopt");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("identify_mpec", identify_mpec, argc, argv); }
