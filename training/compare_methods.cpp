// Runs the learning methods on the same data from the same seeds, and compares their results.
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "comparison/comparison.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
namespace fs = std::filesystem;

// Takes the flags that were not given from `file`, the config.json of the comparison that is resumed.
void continue_with(CommandLine& line, const fs::path& file) {
  const nlohmann::json config = read_json(file);
  const nlohmann::json program = config.value("program", nlohmann::json());
  if (program != line.program()) {
    const std::string other = program.is_string() ? program.get<std::string>() : "another program";
    throw UsageError(file.string() + ": is of " + other + ", not of " + line.program());
  }
  line.agree_with(config, file);
}

// The data of all runs and the names of their files in --out. Throws a UsageError where the comparison that is resumed
// learned from other data.
std::vector<std::pair<std::string, Table>> all_files(const ComparisonFlags& flags, bool resuming) {
  std::vector<std::pair<std::string, Table>> files;
  for (std::int64_t k = 0; k < flags.seeds; ++k) {
    for (auto& file : files_of(flags, flags.run.seed + k)) files.push_back(std::move(file));
  }
  for (const auto& [name, table] : files) {
    const fs::path path = flags.run.out / name;
    if (resuming && fs::exists(path) && read_csv(path, table.names).columns != table.columns) {
      throw UsageError(path.string() + ": is not the data that these flags give now");
    }
  }
  return files;
}

// Performs the runs one after another. Returns an exit status where a signal ended it.
std::optional<int> perform_all(OutputFolder& out, const ComparisonFlags& flags, const std::vector<ComparisonRun>& runs,
                               bool resuming, Results& results) {
  const Interrupt interrupt;
  const auto count = static_cast<std::int64_t>(runs.size());
  Progress progress("run", 0, count, flags.run.quiet);
  for (std::int64_t k = 0; k < count; ++k) {
    const ComparisonRun& run = runs[static_cast<std::size_t>(k)];
    progress.show(k, "now " + run.title());
    results.add(run, perform(out, run, flags, resuming, interrupt));
    if (const int signal = interrupt.signal(); signal != 0) {
      if (!flags.run.quiet) {
        std::cerr << "\nstopped at " << run.title() << "; to continue: " << resume_command(out.path().string())
                  << std::endl;
      }
      return 128 + signal;
    }
  }
  progress.show(count, "all are done");
  return std::nullopt;
}

int compare_methods(int argc, const char* const* argv) {
  CommandLine line("compare_methods",
                   "Runs the learning methods one after another on the same data from the same seeds, as a user would\n"
                   "run their programs, and writes one table and one figure of their results.");
  ComparisonFlags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  FolderLock lock(flags.run.out);
  const fs::path config = lock.path() / "config.json";
  std::error_code error;
  const bool exists = fs::exists(config, error), resuming = flags.resume && exists;
  if (resuming) continue_with(line, config);
  flags.validate(line);
  const OneThread one_thread;  // --threads is passed on to the programs
  const torch::NoGradGuard no_grad;
  const std::vector<ComparisonRun> runs = plan(flags);
  const auto files = all_files(flags, resuming);
  OutputFolder out(line, flags.run, std::move(lock));
  if (resuming) out.continue_earlier_run();
  for (const auto& [name, table] : files) out.write_csv(name, table);
  if (!flags.run.quiet && flags.resume && !exists) {
    std::cerr << "no comparison in " << flags.run.out.string() << ": starting at the beginning" << std::endl;
  } else if (!flags.run.quiet && exists && !resuming) {
    std::cerr << "replacing the run in " << flags.run.out.string() << "; --resume would have continued it" << std::endl;
  }

  Results results;
  if (const auto stopped = perform_all(out, flags, runs, resuming, results)) return *stopped;
  results.summarise();
  out.write_json("table.json", results.rows());
  out.write("table.md", results.page(flags));
  if (!flags.run.quiet) results.print();
  write_results(out, {{"methods", results.repeatable()}}, {"comparison.png"});
  return results.report_failures(line.program(), flags.run.quiet) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("compare_methods", compare_methods, argc, argv); }
