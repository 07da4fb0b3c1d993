// Counts how often a block that friction holds remains at rest if M and q of its LCP are perturbed [Notes, 3.2].
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "noise/report.h"
#include "noise/study.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/files.h"
#include "run/fingerprint.h"
#include "run/folder_lock.h"
#include "run/output_folder.h"
#include "run/results.h"
#include "run/sweep.h"
#include "run/trainer.h"

namespace {

using namespace lcp::training;

std::string all_positive(const std::vector<double>& x) {
  const bool valid = !x.empty() && std::all_of(x.begin(), x.end(), [](double y) { return positive(y).empty(); });
  return valid ? "" : "finite numbers > 0";
}

int study_noise(int argc, const char* const* argv) {
  CommandLine line("study_noise",
                   "Perturbs M and q of the traditional LCP of a sliding block, and counts the steps that still end at "
                   "rest, those with several solutions or none, and the errors of the velocity.");
  RunFlags run;
  PhysicsFlags block{1, 1, 1, 1};
  std::int64_t samples = 3000;
  std::vector<double> sigmas = {1e-4, 1e-3, 1e-2, 1e-1, 3e-1, 1};
  std::string data;
  bool resumes = false;
  run.add_to(line);
  block.add_to(line);
  line.add<std::int64_t>("samples", samples, "Perturbed steps for each state, kind of noise and size of noise",
                         at_least_one);
  line.add<std::vector<double>>("sigma", sigmas, "Standard deviations of the noise, in units of dt mu g and mu m g",
                                all_positive);
  line.add<std::string>(
      "data", data,
      "CSV file with columns v,u of steps to perturb instead of simulated ones; its rows are repeated "
      "equally often, to at least --samples steps",
      nullptr, Role::kFile);
  add_resume_flag(line, resumes);
  line.footer("Example: study_noise --sigma 0.001 0.01 0.1 --out runs/noise");
  if (const auto status = line.parse(argc, argv)) return *status;
  FolderLock lock(run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, resumes);
  if (block.mu == 0 || block.gravity == 0) {
    throw UsageError("--" + std::string(block.mu == 0 ? "mu" : "gravity") +
                     " must be > 0: noise is relative to the friction that it allows");
  }
  if (!data.empty()) data = std::filesystem::weakly_canonical(data).string();

  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  Study study{run, block,
              data.empty() ? default_states(samples, run.seed) : std::vector{read_states(data, samples, block)}};
  std::vector<torch::Tensor> all_states;
  for (const State& state : study.states) all_states.insert(all_states.end(), {state.v, state.u});
  OutputFolder out(line, run, std::move(lock));
  if (checkpoint) out.continue_earlier_run();
  study.single_entries = change_single_entries(study);
  study.biased_steps = biased_steps(study);
  for (std::size_t state = 0; state < study.states.size(); ++state) {
    for (std::size_t noise = 0; noise < kNoises.size(); ++noise) {
      for (const double sigma : sigmas) study.measurements.push_back({state, noise, sigma, {}, {}, 0});
    }
  }
  Sweep sweep(out, run, checkpoint, fingerprint(all_states));
  const auto count = static_cast<std::int64_t>(study.measurements.size());
  const auto stopped = sweep.run(count, "measurement", [&](std::int64_t k) {
    const torch::NoGradGuard none;
    const Measurement& which = study.measurements[static_cast<std::size_t>(k)];
    return measure(study, which.state, which.noise, which.sigma, k).save();
  });
  if (stopped) return *stopped;
  for (const auto& [k, found] : sweep.results()) study.measurements[static_cast<std::size_t>(k)].load(found);

  const nlohmann::json metrics = metrics_of(study);
  write_tables(out, study);
  out.write("table.md", page_of(study));
  if (!run.quiet) summarise(study, metrics);
  write_results(out, metrics, {"sticking.png", "errors.png", "single_entries.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program(
      "study_noise", [&] { return study_noise(argc, argv); }, Processes::kDivided);
}
