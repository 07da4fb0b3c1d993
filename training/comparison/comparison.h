// The runs of compare_methods, their data and their results.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run/command_line.h"
#include "run/files.h"
#include "run/interrupt.h"
#include "run/output_folder.h"
#include "sliding_block/samples.h"

namespace lcp::training {

enum class Start { kNone, kRandom, kAll };  // kAll: near, far and random

/// The method that is the best of a family of plain networks.
constexpr const char* kBlackBox = "black_box";

struct Method {
  const char* name;
  const char* program;  ///< nullptr: computed in this process
  const char* data;     ///< which of a seed's data files it reads
  const char* learns_from;
  Start start;
  nlohmann::json flags = nlohmann::json::object();
  const char* needs = nullptr;  ///< a library without which its program is not built
};

struct ComparisonFlags {
  RunFlags run;
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  SampleFlags samples{.known_forces = KnownForces::kContact, .samples = 500, .data = {}, .states = "mixed"};
  std::int64_t seeds = 5;
  std::int64_t black_box_iterations = 1000;
  double near_mu = 0;
  double far_mu = 0;
  std::vector<std::string> methods = {};
  bool resume = false;

  void add_to(CommandLine& line);

  /// To be called once the command line is parsed. Throws a UsageError where flags exclude each other.
  void validate(const CommandLine& line);

  /// The initial friction coefficient of "near" or "far" starts.
  double start_mu(const std::string& start) const;

  /// The path of a data file, relative to --out.
  static std::string data_file(std::int64_t seed, const std::string& name);
};

struct ComparisonRun {
  const Method& method;
  std::string start;  ///< none, random, near or far
  std::int64_t seed;
  std::string folder;    ///< in --out, with a "/" at the end
  nlohmann::json flags;  ///< of the program

  std::string title() const;
};

/// All runs, in the order in which they are performed.
std::vector<ComparisonRun> plan(const ComparisonFlags& flags);

/// The data files of a seed and their names in --out: the same steps with the forces of each formulation. Of each five
/// rows the first four are for training and the fifth is held out, as the programs divide the rows of a file. Warns
/// where the steps of --data are not those of the block of the flags.
std::vector<std::pair<std::string, Table>> files_of(const ComparisonFlags& flags, std::int64_t seed);

/// Runs the program of a run in a folder inside `out`, unless `resuming` and the run is complete. Returns its metrics
/// and the time that it took, s; or an object with "error" or "not_built".
///   interrupt: its signal is passed on to the program.
nlohmann::json perform(OutputFolder& out, const ComparisonRun& run, const ComparisonFlags& flags, bool resuming,
                       const Interrupt& interrupt);

/// The table of a comparison.
class Results {
 public:
  /// metrics: the result of `perform`.
  void add(const ComparisonRun& run, const nlohmann::json& metrics);

  /// Computes median, minimum and maximum of each metric over the seeds. To be called after all runs have been added.
  void summarise();

  /// A row for each method and start: method, start, learns_from, runs, and a summary of each metric.
  const std::vector<nlohmann::json>& rows() const { return rows_; }

  /// The same rows without times, which the same flags and seeds always reproduce.
  std::vector<nlohmann::json> repeatable() const;

  /// The content of table.md.
  std::string page(const ComparisonFlags& flags) const;

  /// Prints the main columns to stdout.
  void print() const;

  /// A line on stderr for each run that failed and, unless quiet, each method that is not built. Returns whether a run
  /// failed.
  bool report_failures(const std::string& program, bool quiet) const;

 private:
  nlohmann::json& row_of(const ComparisonRun& run);

  std::vector<nlohmann::json> rows_;
};

}  // namespace lcp::training
