#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "comparison/comparison.h"
#include "network/black_box.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kTimes = "times.json";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Data data_of(const ComparisonRun& run, const ComparisonFlags& flags) {
  return load_data(flags.run, flags.block,
                   {.known_forces = KnownForces::kNone, .samples = 0, .data = run.flags["data"], .states = {}});
}

// The baseline: the best affine map from v and u to v_next.
json fit_affine(const ComparisonRun& run, const ComparisonFlags& flags) {
  const Clock::time_point start = Clock::now();
  const Data data = data_of(run, flags);
  const Samples training = data.training.to(flags.run.scalar_type());
  const Samples heldout = data.heldout.to(flags.run.scalar_type());
  json metrics = heldout_metrics(affine_prediction(training, heldout), heldout, flags.block);
  IdentifiabilityReport report;
  report.add(affine_features(data.training), {"v", "u", "1"});
  metrics.update(report.json());
  metrics["time"] = seconds_since(start);
  return metrics;
}

// The best of all black boxes by one in five of the samples. They are trained once: the result is kept in a file.
json fit_black_box(OutputFolder& out, const ComparisonRun& run, const ComparisonFlags& flags, bool resuming,
                   const Interrupt& interrupt) {
  const std::string name = run.folder.substr(0, run.folder.size() - 1) + ".json";
  if (resuming && has_written(out.path(), name)) return read_json(out / name);
  const Clock::time_point start = Clock::now();
  const Data data = data_of(run, flags);
  const auto motion = [](const Samples& samples) {
    return Motion{torch::stack({samples.v, samples.u}, 1), samples.v_next.unsqueeze(1)};
  };
  const Motion known = motion(data.training);
  const torch::Tensor row = torch::arange(known.count()), validates = row % kHeldOutOneIn == 0;
  const Motion training = known.at((~validates).nonzero().squeeze(-1));
  const Motion validation = known.at(validates.nonzero().squeeze(-1));
  const torch::Tensor input_unit = training.x.std(0), output_unit = training.v_next.std(0);
  BlackBoxOptions options;
  options.iterations = flags.black_box_iterations;
  options.seed = run.seed;
  std::vector<BlackBox> boxes(kBlackBoxFamilies);
  run_tasks(kBlackBoxFamilies, flags.run.threads, [&](std::int64_t k) {
    boxes[static_cast<std::size_t>(k)] = best_of_family(k, training, validation, input_unit, output_unit, options,
                                                        [&] { return interrupt.signal() != 0; });
  });
  if (interrupt.signal() != 0) return {{"error", "stopped"}};
  const BlackBox& best = *std::min_element(boxes.begin(), boxes.end(), [](const BlackBox& a, const BlackBox& b) {
    return a.validation_error < b.validation_error;
  });
  const torch::NoGradGuard no_grad;
  const torch::Tensor predicted = best.predict(motion(data.heldout).x).squeeze(1);
  json metrics = heldout_metrics(predicted, data.heldout, flags.block);
  metrics["black_box"] = best.name;
  metrics["time"] = seconds_since(start);
  out.write_json(name, metrics);
  return metrics;
}

bool complete(const fs::path& folder, const ComparisonRun& run) {
  if (!has_written(folder, "metrics.json")) return false;
  const json config = read_json(folder / "config.json");
  return std::all_of(run.flags.items().begin(), run.flags.items().end(), [&](const auto& flag) {
    return flag.key() == "data" || (config.contains(flag.key()) && config[flag.key()] == flag.value());
  });
}

}  // namespace

json perform(OutputFolder& out, const ComparisonRun& run, const ComparisonFlags& flags, bool resuming,
             const Interrupt& interrupt) {
  if (run.method.name == std::string(kBlackBox)) return fit_black_box(out, run, flags, resuming, interrupt);
  if (!run.method.program) return fit_affine(run, flags);
  const fs::path program = program_folder() / run.method.program;
  if (run.method.needs && !fs::exists(program)) return {{"not_built", run.method.needs}};
  const fs::path folder = out / run.folder;
  json times = json::object();  // of all runs, s
  if (has_written(out.path(), kTimes)) times = read_json(out / kTimes);
  double time = times.value(run.folder, 0.0);
  if (!resuming || !complete(folder, run)) {
    out.announce(run.folder);
    std::vector<std::string> command = {program.string(), "--out", folder.string(), "--quiet"};
    if (flags.run.overwrite) command.emplace_back("--overwrite");
    for (const auto& [name, value] : run.flags.items()) {
      command.push_back("--" + name);
      command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (resuming && run.method.start != Start::kNone) command.emplace_back("--resume");
    const Clock::time_point start = Clock::now();
    const ProcessResult result = run_process(command, {"TORCHLCP_PYTHON="}, &interrupt);  // without figures
    time += seconds_since(start);
    times[run.folder] = time;
    out.write_json(kTimes, times);
    if (result.status != 0) {
      const std::string reason = result.last_error();
      if (!reason.empty()) return {{"error", reason}};
      return {{"error", result.status < 0 ? "cannot run " + program.string()
                                          : std::string(run.method.program) + " ended with exit status " +
                                                std::to_string(result.status)}};
    }
  }
  json metrics = read_json(folder / "metrics.json");
  metrics["time"] = time;
  return metrics;
}

}  // namespace lcp::training
