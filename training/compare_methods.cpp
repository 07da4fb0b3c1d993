// Runs the learning methods on the same data from the same seeds, and compares what they come to.
#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <numeric>

#include "common/command_line.h"
#include "common/error.h"
#include "common/evaluation.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/samples.h"
#include "common/sliding_block_data.h"

namespace {

using namespace lcp::training;
namespace fs = std::filesystem;
using nlohmann::json;
using torch::Tensor;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kHeldOutOneIn = 5;  // programs hold out row k of a file where k % 5 == 4
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Start { kNone, kRandom, kNearAndFar };

struct Method {
  const char* name;
  const char* program;  // nullptr: in this process
  const char* data;     // which of a seed's files it gets
  const char* learns_from;
  Start start;
  json flags = json::object();
  const char* needs = nullptr;  // without which its program is not built
};

constexpr const char* kMotion = "motion";
constexpr const char* kContact = "contact forces";

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = {
      {"affine", nullptr, "traditional", kMotion, Start::kNone},
      {"direct", "train_direct", "direct", "fictitious forces", Start::kRandom, {{"forces", "fictitious"}}},
      {"direct_physical", "train_direct", "physical", "physical forces", Start::kRandom, {{"forces", "physical"}}},
      {"slack", "train_slack", "direct", "slack of fictitious forces", Start::kRandom},
      {"penalty", "train_penalty", "traditional", kContact, Start::kRandom},
      {"structured", "train_structured", "traditional", kContact, Start::kRandom},
      {"linear_program", "fit_linear_program", "traditional", kContact, Start::kNone, json::object(), "Clp"},
      {"in_the_loop_mu", "train_in_the_loop", "traditional", kMotion, Start::kNearAndFar, {{"parameters", "mu"}}},
      {"in_the_loop_rows", "train_in_the_loop", "traditional", kMotion, Start::kNearAndFar, {{"parameters", "rows"}}},
      {"in_the_loop_structured",
       "train_in_the_loop",
       "traditional",
       kMotion,
       Start::kNearAndFar,
       {{"parameters", "structured"}}},
      {"bilevel_mu", "train_bilevel", "traditional", kMotion, Start::kNearAndFar, {{"parameters", "mu"}}},
      {"bilevel_rows", "train_bilevel", "traditional", kMotion, Start::kNearAndFar, {{"parameters", "rows"}}},
      {"bilevel_structured",
       "train_bilevel",
       "traditional",
       kMotion,
       Start::kNearAndFar,
       {{"parameters", "structured"}}}};
  return methods;
}

struct Flags {
  RunFlags run;
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  SampleFlags samples{.known = Known::kContactForces, .samples = 500, .data = {}, .states = "mixed"};
  std::int64_t seeds = 3;
  double near_mu = 0;
  double far_mu = 0;
  std::vector<std::string> methods;
  bool resume = false;

  void add_to(CommandLine& line);
  void check() const;
  double start_mu(const std::string& start) const {
    if (start == "near") return near_mu > 0 ? near_mu : 1.5 * block.mu;
    return far_mu > 0 ? far_mu : 4 * block.mu;
  }
};

std::string some_methods(const std::vector<std::string>& chosen) {
  std::vector<std::string> names;
  std::string text;
  for (const Method& method : all_methods()) {
    names.push_back(method.name);
    text += (text.empty() ? "" : ", ") + names.back();
  }
  const bool known = std::all_of(chosen.begin(), chosen.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  return known && !chosen.empty() ? "" : "some of " + text;
}

void Flags::add_to(CommandLine& line) {
  run.add_to(line);
  samples.add_to(line);
  block.add_to(line);
  for (const Method& method : all_methods()) methods.push_back(method.name);
  line.add<std::int64_t>("seeds", seeds, "How many seeds, from --seed on; each has simulated data of its own",
                         at_least_one);
  line.add<double>("near-mu", near_mu, "Friction coefficient of near starts; 0: 1.5 times --mu", nonnegative);
  line.add<double>("far-mu", far_mu, "Friction coefficient of far starts; 0: 4 times --mu", nonnegative);
  line.add<std::vector<std::string>>("methods", methods, "Methods to compare", some_methods);
  line.add_switch("resume", resume, "Finish the comparison in --out: repeat no run that is complete", Role::kManner);
  line.footer(
      "Example: compare_methods --methods direct in_the_loop_mu bilevel_mu --seeds 5 --out runs/comparison\n"
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus,gamma (m/s, N, m/s, N, N, m/s), as\n"
      "simulate --formulation traditional writes it, and optionally trajectory; every seed gets these rows. The\n"
      "physical forces of direct_physical are the file's, less what lambda_plus and lambda_minus have in common. The\n"
      "fictitious forces of direct and slack are not in the file: they are those of the direct formulation for its v\n"
      "and u and the block of --mass, --dt, --mu and --gravity.");
}

void Flags::check() const {
  if (!(block.max_friction() > 0)) throw UsageError("--mu and --gravity must be > 0: mu m g is the unit of force");
  if (const std::string must = seed_range(run.seed + seeds - 1); !must.empty()) {
    throw UsageError("--seed + --seeds - 1 must be " + must + "; got " + std::to_string(run.seed + seeds - 1));
  }
  if (samples.samples < kHeldOutOneIn - 1) {
    throw UsageError("--samples must be >= 4, for each four of which one more is held out; got " +
                     std::to_string(samples.samples));
  }
}

// Data.

struct Steps {
  Samples samples;
  std::vector<double> trajectory;  // of each, where the user's file tells
};

// Four samples to learn from, one that is held out, and so on: as programs divide the rows of a file.
Samples interleaved(const Data& data) {
  const std::int64_t count = data.training.count(), heldout = count / (kHeldOutOneIn - 1);
  const Tensor row = at::arange(count + heldout), group = row.div(kHeldOutOneIn, "floor");
  const Tensor order = at::where(row.remainder(kHeldOutOneIn) == kHeldOutOneIn - 1, count + group, row - group);
  const auto all = [&](Tensor Samples::*member) { return at::cat({data.training.*member, data.heldout.*member}); };
  return Samples{all(&Samples::v), all(&Samples::u), all(&Samples::v_next), all(&Samples::lambda), all(&Samples::gamma)}
      .at(order);
}

Steps read_steps(const std::string& file) {
  const Table table = read_csv(file, {"v", "u", "v_next", "lambda_plus", "lambda_minus", "gamma"}, {"trajectory"});
  const auto column = [&](const char* name) { return at::tensor(table[name], at::kDouble); };
  return {{column("v"), column("u"), column("v_next"), at::stack({column("lambda_plus"), column("lambda_minus")}, -1),
           column("gamma")},
          table.has("trajectory") ? table["trajectory"] : std::vector<double>()};
}

Steps steps_of(const Flags& flags, std::int64_t seed) {
  RunFlags run = flags.run;
  run.seed = seed;
  const Data data = load_data(run, flags.block, flags.samples);  // of a file: whether its forces are contact forces
  return flags.samples.data.empty() ? Steps{interleaved(data), {}} : read_steps(flags.samples.data);
}

Tensor fictitious_forces(const Samples& samples, const lcp::physics::SlidingBlock& block) {
  const auto step =
      lcp::physics::step(samples.v, samples.u, block, lcp::physics::SlidingBlockFormulation::kDirect).step;
  return at::stack({step.lambda_plus, step.lambda_minus}, -1);
}

// Fictitious forces of another block than that of the file teach something else, and nothing else would tell.
void check_block(const Flags& flags, const Samples& samples) {
  const double error =
      rmse(lcp::physics::exact_step(samples.v, samples.u, sliding_block(flags.block)).v_next - samples.v_next);
  const double unit = flags.block.dt * flags.block.max_friction() / flags.block.mass;
  if (error < 0.1 * unit || flags.run.quiet) return;
  std::cerr << "warning: " << flags.samples.data << ": v_next is " << error
            << " m/s (rms) off the steps of a block of --mass, --dt, --mu and --gravity" << std::endl;
}

using Files = std::vector<std::pair<fs::path, Table>>;

// The same steps with the forces of each formulation.
Files files_of(const Flags& flags, std::int64_t seed) {
  const Steps steps = steps_of(flags, seed);
  const Samples& samples = steps.samples;
  if (!flags.samples.data.empty() && seed == flags.run.seed) check_block(flags, samples);
  const auto table = [&](const Tensor& lambda, const Tensor& gamma) {
    Table columns;
    const auto add = [&](const char* name, const Tensor& x) {
      const Tensor column = x.contiguous();
      columns.add(name, {column.const_data_ptr<double>(), column.const_data_ptr<double>() + column.numel()});
    };
    if (!steps.trajectory.empty()) columns.add("trajectory", steps.trajectory);
    add("v", samples.v);
    add("u", samples.u);
    add("v_next", samples.v_next);
    add("lambda_plus", lambda.select(-1, 0));
    add("lambda_minus", lambda.select(-1, 1));
    if (gamma.defined()) add("gamma", gamma);
    return columns;
  };
  const auto path = [&](const char* name) {
    return flags.run.out / "data" / (std::to_string(seed) + "_" + name + ".csv");
  };
  return {{path("traditional"), table(samples.lambda, samples.gamma)},
          {path("direct"), table(fictitious_forces(samples, sliding_block(flags.block)), {})},
          {path("physical"), table(samples.lambda - samples.lambda.amin(-1, true), {})}};
}

// Runs.

struct Run {
  const Method& method;
  std::string start;  // none, random, near or far
  std::int64_t seed;
  fs::path folder;
  json flags;  // of the program

  std::string title() const {
    return method.name + (start == "none" ? "" : ", " + start + " start") + ", seed " + std::to_string(seed);
  }
};

std::vector<std::string> starts(const Method& method) {
  if (method.start == Start::kNearAndFar) return {"near", "far"};
  return {method.start == Start::kNone ? "none" : "random"};
}

std::vector<Run> plan(const Flags& flags) {
  std::vector<Run> runs;
  for (std::int64_t seed = flags.run.seed; seed < flags.run.seed + flags.seeds; ++seed) {
    for (const Method& method : all_methods()) {
      if (std::find(flags.methods.begin(), flags.methods.end(), method.name) == flags.methods.end()) continue;
      const fs::path file = flags.run.out / "data" / (std::to_string(seed) + "_" + method.data + ".csv");
      for (const std::string& start : starts(method)) {
        json own = method.flags;
        own.update({{"data", file.string()},
                    {"seed", seed},
                    {"dtype", flags.run.dtype},
                    {"threads", flags.run.threads},
                    {"mass", flags.block.mass},
                    {"dt", flags.block.dt},
                    {"mu", flags.block.mu},
                    {"gravity", flags.block.gravity}});
        if (method.start == Start::kNearAndFar) own["initial-mu"] = flags.start_mu(start);
        const std::string folder = method.name + ("_" + start) + "_" + std::to_string(seed);
        runs.push_back({method, start, seed, flags.run.out / "runs" / folder, std::move(own)});
      }
    }
  }
  return runs;
}

// What the runs of a seed learn from, and a folder of runs that are all of this comparison.
void prepare(const CommandLine& line, const Flags& flags, const std::vector<Run>& runs, bool resuming) {
  std::vector<Files> all;
  for (std::int64_t k = 0; k < flags.seeds; ++k) all.push_back(files_of(flags, flags.run.seed + k));
  for (const Files& files : all) {
    for (const auto& [path, table] : files) {
      if (resuming && fs::exists(path) && read_csv(path, table.names).columns != table.columns) {
        throw UsageError(path.string() + ": is not the data that these flags lead to now");
      }
    }
  }
  std::error_code none;
  fs::remove(flags.run.out / "metrics.json", none);
  if (!resuming) {
    for (const Run& run : runs) {
      for (const char* file : {"metrics.json", "checkpoint.pt", "time.json"}) fs::remove(run.folder / file, none);
    }
  }
  for (const Files& files : all) {
    for (const auto& [path, table] : files) write_csv(path, table);
  }
  write_json(flags.run.out / "config.json", line.config());
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// v_next = c0 v + c1 u + c2 by least squares: what a method has to be better than.
json fit_affine(const Run& run, const Flags& flags) {
  const Clock::time_point start = Clock::now();
  SampleFlags file{.known = Known::kMotion, .samples = 0, .data = run.flags["data"], .states = {}};
  const Data data = load_data(flags.run, flags.block, file);
  const auto dtype = flags.run.scalar_type();
  const Samples training = data.training.to(dtype), heldout = data.heldout.to(dtype);
  const auto features = [](const Samples& x) { return at::stack({x.v, x.u, at::ones_like(x.v)}, -1); };
  const Tensor fit =
      std::get<0>(at::linalg_lstsq(features(training), training.v_next.unsqueeze(-1), {}, "gelsd")).squeeze(-1);
  const Tensor predicted = (features(heldout) * fit).sum(-1);
  const double close = 1e-3 * flags.block.dt * flags.block.max_friction() / flags.block.mass;
  json metrics = {{"heldout_rmse", rmse(predicted - heldout.v_next)},
                  {"sticking_exact_zero_fraction", sticking_fraction(predicted, heldout.v_next, 0)},
                  {"sticking_close_fraction", sticking_fraction(predicted, heldout.v_next, close)},
                  {"heldout_unsolved", 0}};
  Gauge gauge;
  gauge.add(features(data.training), {"v", "u", "1"});
  metrics.update(gauge.json());
  metrics["time"] = seconds_since(start);
  return metrics;
}

bool complete(const Run& run) {
  if (!fs::exists(run.folder / "metrics.json")) return false;
  const json config = read_json(run.folder / "config.json");
  return std::all_of(run.flags.items().begin(), run.flags.items().end(), [&](const auto& flag) {
    return flag.key() == "data" || (config.contains(flag.key()) && config[flag.key()] == flag.value());
  });
}

// Metrics, with the time that the whole program took, or an error.
json perform(const Run& run, const fs::path& program, bool resuming, const Interrupt& interrupt) {
  const fs::path time_file = run.folder / "time.json";
  double time = 0;
  if (resuming && fs::exists(time_file)) time = read_json(time_file)["seconds"];
  if (!resuming || !complete(run)) {
    std::vector<std::string> command = {program.string(), "--out", run.folder.string(), "--quiet"};
    for (const auto& [name, value] : run.flags.items()) {
      command.push_back("--" + name);
      command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (resuming && run.method.start != Start::kNone) command.push_back("--resume");
    const Clock::time_point start = Clock::now();
    const ProcessResult result = run_process(command, {"TORCHLCP_PYTHON="}, &interrupt);  // no figures of each
    time += seconds_since(start);
    if (fs::is_directory(run.folder)) write_json(time_file, {{"seconds", time}});
    if (result.status != 0) {
      const std::string reason = result.last_error();
      if (!reason.empty()) return {{"error", reason}};
      return {{"error", result.status < 0 ? "cannot run " + program.string()
                                          : std::string(run.method.program) + " ended with exit status " +
                                                std::to_string(result.status)}};
    }
  }
  json metrics = read_json(run.folder / "metrics.json");
  metrics["time"] = time;
  return metrics;
}

// Tables.

constexpr const char* kMetrics[] = {
    "heldout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction", "rollout_rmse", "parameter_error", "mu",
    "parameters",   "identifiable_parameters",      "heldout_unsolved",        "time"};

// Over the seeds; a metric that is no number, as an error where steps have no solution, counts as infinite.
json summary(const json& runs, const char* name) {
  std::vector<double> values;
  for (const json& run : runs) {
    if (run.contains("error")) continue;
    const double value = run[name].is_number() ? run[name].get<double>() : kInfinity;
    values.push_back(std::isfinite(value) ? value : kInfinity);
  }
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const double median = std::midpoint(values[(values.size() - 1) / 2], values[values.size() / 2]);
  return {{"median", median}, {"least", values.front()}, {"most", values.back()}};
}

struct Results {
  std::vector<json> rows;  // one a method and start

  // The row of a run.
  json& operator[](const Run& run) {
    for (json& row : rows) {
      if (row["method"] == run.method.name && row["start"] == run.start) return row;
    }
    rows.push_back({{"method", run.method.name},
                    {"start", run.start},
                    {"learns_from", run.method.learns_from},
                    {"runs", json::array()}});
    return rows.back();
  }

  void add(const Run& run, const json& metrics) {
    json record = {{"seed", run.seed}};
    if (metrics.contains("error")) {
      record["error"] = metrics["error"];
    } else {
      for (const char* name : kMetrics) record[name] = metrics.contains(name) ? metrics[name] : json();
    }
    (*this)[run]["runs"].push_back(std::move(record));
  }

  void summarise() {
    for (json& row : rows) {
      for (const char* name : kMetrics) row[name] = summary(row["runs"], name);
    }
  }

  std::int64_t failed() const {
    std::int64_t count = 0;
    for (const json& row : rows) count += failures(row);
    return count;
  }

  static std::int64_t failures(const json& row) {
    return std::count_if(row["runs"].begin(), row["runs"].end(), [](const json& run) { return run.contains("error"); });
  }
};

std::string number(const json& x) {
  if (!x.is_number() || !std::isfinite(x.get<double>())) return "none";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x.get<double>() + 0.);  // no -0
  return text;
}

std::string median(const json& row, const char* name) {
  return number(row[name].is_null() ? json() : row[name]["median"]);
}

std::string range(const json& row, const char* name) {
  const json& x = row[name];
  if (x.is_null()) return "none";
  const std::string least = number(x["least"]), most = number(x["most"]);
  return least == most ? least : number(x["median"]) + " (" + least + " to " + most + ")";
}

std::string outcome(const json& row, std::string (*text)(const json&, const char*)) {
  if (row.contains("not_built")) return "not built";
  const auto failed = Results::failures(row);
  const std::string note =
      failed == 0 ? "" : std::to_string(failed) + " of " + std::to_string(row["runs"].size()) + " failed";
  if (row["heldout_rmse"].is_null()) return note;
  return text(row, "heldout_rmse") + (note.empty() ? "" : "; " + note);
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string text = "|";
  for (const std::string& field : fields) text += " " + field + " |";
  return text + "\n";
}

std::string header(const std::vector<std::string>& fields) {
  return line_of(fields) + line_of(std::vector<std::string>(fields.size(), "---"));
}

std::string report(const Results& results, const Flags& flags) {
  const PhysicsFlags& block = flags.block;
  std::string page = "# Learning methods on one sliding block\n\n";
  page += "m = " + number(block.mass) + " kg, dt = " + number(block.dt) + " s, mu = " + number(block.mu) +
          ", g = " + number(block.gravity) + " m/s^2. " + std::to_string(flags.seeds) + " seeds from " +
          std::to_string(flags.run.seed) + "; ";
  page += flags.samples.data.empty()
              ? "each simulates " + std::to_string(flags.samples.samples) + " steps (" + flags.samples.states +
                    ") to learn from, with noise of " + number(flags.samples.velocity_noise) + " m/s on v_next, and " +
                    std::to_string(flags.samples.samples / (kHeldOutOneIn - 1)) + " to hold out, without noise. "
              : "each with the rows of " + flags.samples.data + ", of which one in five is held out. ";
  page += "Near starts have mu = " + number(flags.start_mu("near")) + ", far ones " + number(flags.start_mu("far")) +
          ". Numbers are medians over the seeds (least to most).\n\n";
  page += header({"method", "learns from", "start", "held-out rmse, m/s", "rollout rmse, m/s", "exact zeros, sticking",
                  "within .001 dt mu g", "parameter error", "mu", "identifiable", "unsolved", "time, s"});
  for (const json& row : results.rows) {
    std::vector<std::string> fields = {row["method"], row["learns_from"], row["start"], outcome(row, range)};
    for (const char* name :
         {"rollout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction", "parameter_error", "mu"}) {
      fields.push_back(range(row, name));
    }
    const std::string parameters = range(row, "parameters");
    fields.push_back(parameters == "none" ? "none" : range(row, "identifiable_parameters") + " of " + parameters);
    for (const char* name : {"heldout_unsolved", "time"}) fields.push_back(range(row, name));
    page += line_of(fields);
  }
  page +=
      "\n"
      "* Motion is v, u and v_next. Physical forces are >= 0; of the fictitious ones of the direct formulation one is\n"
      "  < 0. Contact forces are those of the traditional formulation, and gamma.\n"
      "* The rmse is none where a step has no solution; sticking counts held-out steps that end at rest.\n"
      "* A rollout is 50 steps under random forces, which lead beyond the velocities that were learned from.\n"
      "* The parameter error is the largest: for direct, direct_physical and slack that of f [m/s] and G [s/kg] over\n"
      "  the held-out steps; else that of a number of [M|W], with forces and velocities in units of mu m g and\n"
      "  dt mu g, or of m g and dt g where friction was learned, and rows scaled to fit best. What no motion shows of\n"
      "  W is left out; what else the data do not determine counts as error.\n"
      "* Identifiable is how many parameters the data determine at the solution.\n"
      "* The time is that of the whole program: start, training and evaluation, without figures.\n";
  if (results.failed() > 0) {
    page += "\n## Failed\n\n" + header({"method", "start", "seed", "error"});
    for (const json& row : results.rows) {
      for (const json& run : row["runs"]) {
        if (run.contains("error")) page += line_of({row["method"], row["start"], run["seed"].dump(), run["error"]});
      }
    }
  }
  page += "\n## Each run\n\n" + header({"method", "start", "seed", "held-out rmse, m/s", "exact zeros, sticking",
                                        "within .001 dt mu g", "rollout rmse, m/s", "parameter error", "time, s"});
  for (const json& row : results.rows) {
    for (const json& run : row["runs"]) {
      if (run.contains("error")) continue;
      std::vector<std::string> fields = {row["method"], row["start"], run["seed"].dump()};
      for (const char* name : {"heldout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction",
                               "rollout_rmse", "parameter_error", "time"}) {
        fields.push_back(number(run[name]));
      }
      page += line_of(fields);
    }
  }
  return page;
}

void print(const Results& results) {
  const auto cell = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size() + 1), ' ');
    std::cout << text;
  };
  const auto print_row = [&](const std::array<std::string, 6>& fields) {
    constexpr std::size_t kWidths[] = {24, 8, 33, 13, 21};
    for (std::size_t k = 0; k < std::size(kWidths); ++k) cell(fields[k], kWidths[k]);
    std::cout << fields.back() << "\n";
  };
  print_row({"method", "start", "held-out rmse, m/s", "exact zeros", "within .001 dt mu g", "time, s"});
  for (const json& row : results.rows) {
    print_row({row["method"], row["start"], outcome(row, range), median(row, "sticking_exact_zero_fraction"),
               median(row, "sticking_close_fraction"), median(row, "time")});
  }
}

// As metrics of the same flags and seeds are always the same.
json without_times(std::vector<json> rows) {
  for (json& row : rows) {
    row.erase("time");
    for (json& run : row["runs"]) run.erase("time");
  }
  return rows;
}

int compare_methods(int argc, const char* const* argv) {
  CommandLine line("compare_methods",
                   "Runs the learning methods one after another on the same data from the same seeds, as a user would\n"
                   "run their programs, and writes one table and one figure of what they came to.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  const fs::path& out = flags.run.out;
  std::error_code error;
  const bool exists = fs::exists(out / "config.json", error), resuming = flags.resume && exists;
  if (resuming) {
    const json config = read_json(out / "config.json");
    if (config.value("program", "") != line.program()) {
      throw UsageError((out / "config.json").string() + ": is of " + config.value("program", "another program") +
                       ", not of " + line.program());
    }
    line.agree_with(config, out / "config.json");
  }
  flags.samples.settle(line);
  flags.check();
  torch::set_num_threads(1);  // for the same bits with any --threads, which the programs get
  const torch::NoGradGuard no_grad;
  const std::vector<Run> runs = plan(flags);
  prepare(line, flags, runs, resuming);
  if (!flags.run.quiet && flags.resume && !exists) {
    std::cerr << "no comparison in " << out.string() << ": starting at the beginning" << std::endl;
  } else if (!flags.run.quiet && exists && !resuming) {
    std::cerr << "replacing the run in " << out.string() << "; --resume would have continued it" << std::endl;
  }

  Results results;
  {
    const Interrupt interrupt;
    Progress progress(0, static_cast<std::int64_t>(runs.size()), flags.run.quiet);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const Run& run = runs[k];
      progress.show(static_cast<std::int64_t>(k), "now " + run.title());
      const fs::path program = program_folder() / (run.method.program ? run.method.program : "");
      if (run.method.needs && !fs::exists(program)) {
        results[run]["not_built"] = run.method.needs;
        continue;
      }
      results.add(run, run.method.program ? perform(run, program, resuming, interrupt) : fit_affine(run, flags));
      if (const int signal = interrupt.signal(); signal != 0) {
        if (!flags.run.quiet) {
          std::cerr << "\nstopped at " << run.title() << "; to continue: " << line.program() << " --out "
                    << out.string() << " --resume" << std::endl;
        }
        return 128 + signal;
      }
    }
    progress.show(static_cast<std::int64_t>(runs.size()), "all runs are done");
  }
  results.summarise();

  write_json(out / "table.json", results.rows);
  write_file(out / "table.md", report(results, flags));
  if (!flags.run.quiet) print(results);
  conclude(line, flags.run, {{"methods", without_times(results.rows)}});
  for (const json& row : results.rows) {
    if (row.contains("not_built") && !flags.run.quiet) {
      std::cerr << row["method"].get<std::string>() << " is not built, since " << row["not_built"].get<std::string>()
                << " is not installed\n";
    }
    for (const json& run : row["runs"]) {
      if (!run.contains("error")) continue;
      std::cerr << line.program() << ": " << row["method"].get<std::string>() << ", " << row["start"].get<std::string>()
                << " start, seed " << run["seed"] << ": " << run["error"].get<std::string>() << "\n";
    }
  }
  return results.failed() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("compare_methods", [&] { return compare_methods(argc, argv); });
}
