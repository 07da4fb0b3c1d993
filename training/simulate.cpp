// Simulates a system by lcp::solve, lcp::solve_friction or lcp::solve_contact and compares it with its exact solution.
#include <torch/types.h>
#include <torch/utils.h>

#include <iomanip>
#include <iostream>

#include "run/program.h"
#include "simulation/system.h"

namespace {

using namespace lcp::training;

// The largest entry that is no NaN; null where there is none.
nlohmann::json largest(const torch::Tensor& x) {
  const torch::Tensor finite = x.masked_select(~x.isnan());
  return finite.numel() > 0 ? nlohmann::json(finite.max().item<double>()) : nlohmann::json();
}

std::string help_of(const std::string& system) {
  std::string text =
      "Simulates a system by lcp::solve, lcp::solve_friction or lcp::solve_contact, compares it with its exact "
      "solution, "
      "where one is known, and writes data.csv.\n";
  text += "Systems and their formulations:\n";
  for (const std::string& name : system_names()) {
    text += "  " + name + ": ";
    const auto formulations = make_system(name)->formulations;
    for (std::size_t k = 0; k < formulations.size(); ++k) text += (k > 0 ? ", " : "") + formulations[k];
    text += "\n";
  }
  return text + "These are the flags of " + system +
         "; simulate --system NAME --help shows those of another. --robot FILE is --system robot --robot FILE.";
}

int simulate(int argc, const char* const* argv) {
  const bool has_robot = !early_value(argc, argv, "robot", "").empty();
  std::string name = early_value(argc, argv, "system", has_robot ? "robot" : system_names().front());
  const std::unique_ptr<System> system = make_system(name);
  if (!system) throw UsageError("--system must be " + listed(system_names()) + "; got \"" + name + "\"");

  CommandLine line("simulate", help_of(name));
  RunFlags run;
  Request request;
  request.formulation = system->formulations.front();
  request.steps = system->default_steps;
  std::string inputs;
  std::string animation = "gif";
  run.add_to(line);
  line.add("system", name, "What is simulated: " + listed(system_names()));
  line.add("formulation", request.formulation, listed(system->formulations), one_of(system->formulations));
  system->add_physics(line);
  system->add_to(line);
  line.add("steps", request.steps, "Steps of each trajectory", at_least_one);
  line.add("trajectories", request.trajectories,
           "Number of trajectories; all but the first have random starts or forces", at_least_one);
  std::string columns;
  for (const std::string& column : system->columns(system->inputs)) columns += (columns.empty() ? "" : ",") + column;
  for (const std::string& column : system->columns(system->optional_inputs)) columns += "[," + column + "]";
  if (!columns.empty()) {
    line.add("inputs", inputs, "CSV file with columns " + columns + ": each row is one independent step", nullptr,
             Role::kFile);
  }
  line.add("velocity-noise", request.velocity_noise, "Standard deviation of normal noise on the velocities of data.csv",
           nonnegative);
  if (system->has_positions) {
    line.add("position-noise", request.position_noise,
             "Standard deviation of normal noise on the positions of data.csv", nonnegative);
  }
  line.add("animation", animation, "Animation of a rollout: gif, mp4 (needs ffmpeg) or none",
           one_of({"gif", "mp4", "none"}));
  line.footer("Example: simulate " + system->example + " --out runs/example");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (!inputs.empty()) {
    auto excluded = system->rollout_flags;
    excluded.insert(excluded.end(), {"steps", "trajectories"});
    line.exclude(excluded, "--inputs");
    request.inputs = read_csv(inputs, system->columns(system->inputs), system->columns(system->optional_inputs));
  }

  request.dtype = run.scalar_type();
  request.seed = run.seed;
  system->check_flags(request);
  OutputFolder out(line, run);
  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  const Motion motion = system->run(request);

  const std::int64_t steps = motion.status.numel();
  const torch::Tensor solved = motion.status == 0;
  const std::int64_t unsolved = steps - solved.sum().item<std::int64_t>();
  nlohmann::json metrics = motion.metrics;
  metrics.update({
      {"steps", steps},
      {"unsolved", unsolved},
      {"max_residual", largest(motion.residual)},
      {"max_error_vs_exact", largest(motion.error)},
      {"sticking_fraction", motion.sticking.to(torch::kDouble).mean().item<double>()},
      {"kinked_steps", motion.certificate.kinked.sum().item<std::int64_t>()},
  });
  if (motion.certificate.tied.defined()) metrics["tied_steps"] = motion.certificate.tied.sum().item<std::int64_t>();
  out.write_csv("data.csv", motion.data);
  for (const auto& [file, table] : motion.tables) out.write_csv(file, table);
  out.write_json("metrics.json", metrics);
  if (!run.quiet) {
    std::cout << steps << " steps";
    if (unsolved < steps) {
      std::cout << std::setprecision(3) << "; largest residual " << metrics["max_residual"].get<double>();
      if (!motion.exact.empty()) {
        std::cout << ", largest error against " << motion.exact << " " << metrics["max_error_vs_exact"].get<double>()
                  << " m/s";
      }
      std::cout << ", at rest after " << 100 * metrics["sticking_fraction"].get<double>() << " % of them";
    }
    std::cout << "\n";
    for (const std::string& remark : motion.remarks) std::cout << remark << "\n";
    std::cout << (out / "data.csv").string() << "\n" << (out / "metrics.json").string() << std::endl;
  }
  std::vector<std::string> names = {"motion.png"};
  if (animation != "none" && inputs.empty()) names.emplace_back("motion.gif");  // what mp4 falls back to without ffmpeg
  if (animation == "mp4" && inputs.empty()) names.emplace_back("motion.mp4");
  for (const auto& [file, table] : motion.tables) {
    if (file == "convergence.csv") names.emplace_back("convergence.png");
  }
  for (const auto& figure : draw_figures(out, names)) {
    if (!run.quiet) std::cout << figure.string() << std::endl;
  }
  if (unsolved > 0 && !motion.expects_no_solution) {
    throw std::runtime_error(std::to_string(unsolved) + " steps were not solved; see data.csv");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("simulate", simulate, argc, argv); }
