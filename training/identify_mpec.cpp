// Identifies friction and initial states from noisy tracks by a mathematical program with complementarity constraints.
#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "identification/bilinear_program.h"
#include "identification/estimate.h"
#include "identification/system.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/files.h"
#include "run/one_thread.h"
#include "run/output_folder.h"
#include "run/progress.h"
#include "run/results.h"
#include "run/text.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

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
    bodies.system().add_estimate_to(line);
    line.add<std::string>(
        "complementarity", complementarity,
        "How complementarity is imposed: penalty (products in the objective, with a growing weight) or relaxation (a "
        "shrinking upper bound on the products)",
        one_of({"penalty", "relaxation"}));
    line.add<double>("first", first, "First weight of the penalty, or first bound of the relaxation; 0: 0.001 or 10",
                     nonnegative);
    line.add<std::int64_t>("iterations", iterations, "Largest number of Ipopt iterations", at_least_one);
    line.add<double>("bound", bound, "Bound on the error of each observation, m; 0: none", nonnegative);
    line.add<std::string>("bound-norm", bound_norm,
                          "Norm of the error that --bound limits: infinity (x and y separately) or euclidean",
                          one_of({"infinity", "euclidean"}));
    line.footer(
        "Examples: identify_mpec --noise 0.05 --estimate mu,q0,v0 --out runs/mpec\n"
        "          identify_mpec --system tripod --process-noise 0.5 --out runs/tripod\n"
        "Data of your own: CSV as for identify_shooting and identify_tripod. --mass, --gravity and --force say what "
        "acts\n"
        "on the bodies.");
  }

  MpecOptions options() const {
    const bool penalty = complementarity == "penalty";
    return {.method = penalty ? Complementarity::kPenalty : Complementarity::kRelaxation,
            .first = first > 0 ? first
                     : penalty ? 1e-3
                               : 10,
            .max_iterations = iterations};
  }
};

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
  const auto model = system.model(problem);
  OutputFolder out(line, flags.run);
  const TrackProgram program = system.program(problem, {flags.bound, flags.bound_norm == "euclidean"});
  Table history{{"iteration", "parameter", "objective", "infeasibility"}, {}};
  Progress progress("iteration", 0, flags.iterations, flags.run.quiet, std::chrono::seconds(1));
  const MpecSolution solution = solve(program.program, flags.options(), [&](const MpecIterate& at) {
    history.add_row({static_cast<double>(at.iteration), at.parameter, at.objective, at.infeasibility});
    progress.show(at.iteration,
                  "objective " + short_number(at.objective) + ", infeasibility " + short_number(at.infeasibility));
  });
  const ProgramMotion found = system.read(program, solution, *model);
  nlohmann::json metrics = {{"program_objective", solution.objective},
                            {"program_unknowns", program.program.lower.size()},
                            {"iterations", solution.iterations},
                            {"max_complementarity", solution.largest_product},
                            {"lcp_residual", found.residual.slice(0, 1).max().item<double>()},
                            {"status", solution.status}};
  out.write_csv("history.csv", history);
  out.write_csv("motion.csv", motion_table(system.tracks(), problem.tracks, found));
  const bool solved = solution.status == "solved";
  if (solved) {
    const auto at = lcp::identification::linearize([&](const Tensor& x) { return model->residuals(x); }, found.theta);
    const Tensor none = torch::zeros({found.theta.size(0)}, torch::kLong);
    metrics.update(write_estimate(out, system.tracks(), problem, *model,
                                  {found.theta, at.residuals.square().sum(-1), at.residuals, at.jacobian, none, none}));
  } else {
    metrics.update({{"mu", nullptr}, {"last_iterate", to_json(found.theta.slice(-1, 0, model->unknowns()))}});
  }
  std::vector<std::string> figures = {"motion.png"};
  if (solved) figures.emplace_back("fit.png");
  write_results(out, metrics, figures);
  if (!solved) {
    const std::string near = flags.bound > 0 ? "; no motion may be as near to the tracks as --bound" : "";
    throw std::runtime_error("not solved: " + solution.status + near + "; motion.csv holds the last iterate of Ipopt");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("identify_mpec", [&] { return identify_mpec(argc, argv); });
}
