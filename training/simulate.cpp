// Simulates a system by lcp::solve and compares it with its exact solution.
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

#include "common/command_line.h"
#include "common/error.h"
#include "common/figures.h"
#include "common/files.h"
#include "common/random.h"
#include "common/sliding_block_data.h"
#include "lcp/physics/sliding_block.h"

namespace {

using namespace lcp::training;
namespace physics = lcp::physics;

struct Flags {
  std::string system = "sliding_block";
  std::string formulation = "direct";
  SlidingBlockFlags block;
  double speed = 1;
  std::int64_t steps = 50;
  std::int64_t trajectories = 1;
  std::string inputs;
};

int simulate(int argc, const char* const* argv) {
  CommandLine line("simulate",
                   "Simulates a system by lcp::solve, compares each step with the exact answer and writes data.csv.");
  RunFlags run;
  Flags flags;
  run.add_to(line);
  line.add<std::string>("system", flags.system, "sliding_block",
                        [](const std::string& x) { return x == "sliding_block" ? "" : "sliding_block"; });
  line.add<std::string>(
      "formulation", flags.formulation, "direct (2 unknowns) or traditional (3 unknowns)",
      [](const std::string& x) { return x == "direct" || x == "traditional" ? "" : "direct or traditional"; });
  flags.block.add_to(line);
  line.add<double>("speed", flags.speed, "Velocity before the first step, m/s", finite_number);
  line.add<std::int64_t>("steps", flags.steps, "Steps of each trajectory", at_least_one);
  line.add<std::int64_t>("trajectories", flags.trajectories,
                         "Trajectories, each under its own random force of standard deviation 1.5 mu m g",
                         at_least_one);
  line.add<std::string>("inputs", flags.inputs, "CSV file with columns v,u (m/s, N): each row is one independent step",
                        nullptr, Role::kFile);
  line.footer("Example: simulate --formulation traditional --trajectories 4 --out runs/block");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (!flags.inputs.empty()) {
    for (const char* name : {"speed", "steps", "trajectories"}) {
      if (line.given(name)) throw UsageError(std::string("--") + name + " has no meaning with --inputs");
    }
  }

  if (!flags.inputs.empty()) flags.inputs = std::filesystem::weakly_canonical(flags.inputs).string();
  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  const auto dtype = run.dtype == "float32" ? torch::kFloat : torch::kDouble;
  const auto formulation = flags.formulation == "direct" ? physics::SlidingBlockFormulation::kDirect
                                                         : physics::SlidingBlockFormulation::kTraditional;
  const physics::SlidingBlock block = flags.block.block();
  torch::Tensor v, u;  // [steps, trajectories]
  physics::SlidingBlockSolution solution;
  if (flags.inputs.empty()) {
    const torch::Tensor speed = torch::full({flags.trajectories}, flags.speed, dtype);
    u = random_forces(flags.steps, flags.trajectories, flags.block, generator(run.seed, Stream::kSimulatedForces))
            .to(dtype);
    solution = physics::simulate(speed, u, block, formulation);
    v = torch::cat({speed.unsqueeze(0), solution.step.v_next.slice(0, 0, -1)});
  } else {
    const Table inputs = read_csv(flags.inputs, {"v", "u"});
    v = torch::tensor(inputs["v"], torch::kDouble).to(dtype).unsqueeze(0);
    u = torch::tensor(inputs["u"], torch::kDouble).to(dtype).unsqueeze(0);
    solution = physics::step(v, u, block, formulation);
  }
  const torch::Tensor exact = physics::exact_step(v, u, block).v_next;
  const torch::Tensor solved = solution.status == 0;

  write_json(run.out / "config.json", line.config());
  write_csv(run.out / "data.csv", sliding_block_table(v, u, solution.step));
  const std::int64_t unsolved = v.numel() - solved.sum().item<std::int64_t>();
  nlohmann::json metrics = {
      {"steps", v.numel()},
      {"unsolved", unsolved},
      {"max_residual", solution.residual.max().item<double>()},
      {"max_error_vs_exact", (solution.step.v_next - exact).abs().max().item<double>()},
      {"sticking_fraction", (solution.step.v_next == 0).to(torch::kDouble).mean().item<double>()},
  };
  write_json(run.out / "metrics.json", metrics);
  if (!run.quiet) {
    std::cout << v.numel() << " steps; largest residual " << metrics["max_residual"] << ", largest error against exact "
              << "Coulomb friction " << metrics["max_error_vs_exact"] << " m/s, sticking in "
              << 100 * metrics["sticking_fraction"].get<double>() << " %\n"
              << (run.out / "data.csv").string() << "\n"
              << (run.out / "metrics.json").string() << std::endl;
  }
  const bool drawn = draw_figures("simulate", run.out, run.quiet);
  if (drawn && !run.quiet) std::cout << (run.out / "figures" / "motion.png").string() << std::endl;
  if (unsolved > 0) throw std::runtime_error(std::to_string(unsolved) + " steps were not solved; see data.csv");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("simulate", [&] { return simulate(argc, argv); });
}
