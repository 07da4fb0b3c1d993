// Repeats the experiments of [BT] and writes the results beside the published ones.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/files.h"
#include "run/output_folder.h"
#include "run/process.h"
#include "run/progress.h"
#include "run/results.h"
#include "run/text.h"

namespace {

using namespace lcp::training;
namespace fs = std::filesystem;
using nlohmann::json;

// The results that [BT] report for one particle, by the width of the noise, and for several, by their number.
struct ByNoise {
  double noise;
  const char *mu, *objective, *iterations;
};
constexpr ByNoise kByNoise[] = {{5e-5, "0.2", "2.03e-07", "301"},
                                {5e-4, "0.2", "1.61e-05", "443"},
                                {5e-3, "0.2", "0.001467", "19"},
                                {5e-2, "0.200022", "0.161", "149"},
                                {5e-1, "0.199873", "14.8", "96, infeasible"}};
struct ByCount {
  std::int64_t particles;
  const char *rmse, *objective, *iterations;
};
constexpr ByCount kByCount[] = {{2, "0", "0.00409", "334"},
                                {3, "0", "0.00495", "185"},
                                {5, "6e-06", "0.0105", "364"},
                                {10, "7.2e-06", "0.0166", "281"}};

constexpr const char* kNone = "not built";
constexpr std::size_t kContact = 16;  // the step in which the particle lands

// Runs programs, each with a folder of its own for its results.
class Runner {
 public:
  Runner(OutputFolder& out, const RunFlags& run, std::int64_t total)
      : out_(out), run_(run), progress_("run", 0, total, run.quiet) {}

  json operator()(const std::string& program, const std::string& flag, double value) {
    const std::string number = short_number(value);
    progress_.show(done_++, program + " --" + flag + " " + number);
    const fs::path path = program_folder() / program;
    if (!fs::exists(path)) return nullptr;
    const std::string name = "runs/" + program + "-" + flag + "-" + number + "/";
    out_.announce(name);
    std::vector<std::string> command = {path.string(), "--quiet", "--seed", std::to_string(run_.seed),
                                        "--" + flag,   number,    "--out",  (out_ / name).string()};
    if (run_.overwrite) command.emplace_back("--overwrite");
    const ProcessResult result = run_process(command, {"TORCHLCP_PYTHON="});  // without figures
    // Where Ipopt finds no solution the program fails, but writes its metrics.
    if (!has_written(out_ / name, "metrics.json")) {
      throw std::runtime_error(program + " ended with exit status " + std::to_string(result.status) + ": " +
                               result.last_error());
    }
    return read_json(out_ / (name + "metrics.json"));
  }

 private:
  OutputFolder& out_;
  const RunFlags& run_;
  std::int64_t done_ = 0;
  Progress progress_;
};

std::string cell(const json& metrics, const char* key, int digits = 3) {
  if (metrics.is_null()) return kNone;
  const json& value = metrics[key];
  return short_number((value.is_array() ? value[0] : value).get<double>(), digits);
}

double rmse(const json& errors) {
  double sum = 0;
  for (const double error : errors) sum += error * error;
  return std::sqrt(sum / static_cast<double>(errors.size()));
}

// The largest difference of the two estimates of mu; null where one is missing.
json largest_difference(const json& a, const json& b) {
  if (a.is_null() || b.is_null()) return nullptr;
  double most = 0;
  for (std::size_t k = 0; k < a["mu"].size(); ++k) {
    most = std::max(most, std::abs(a["mu"][k].get<double>() - b["mu"][k].get<double>()));
  }
  return most;
}

// The number of iterations, followed by the status where Ipopt did not solve the program.
std::string iterations_and_status(const json& mpec) {
  if (mpec.is_null()) return kNone;
  const std::string status = mpec["status"];
  return cell(mpec, "iterations") + (status == "solved" ? "" : ", " + status);
}

int reproduce_table(int argc, const char* const* argv) {
  CommandLine line(
      "reproduce_table",
      "Repeats the experiments of Berard and Trinkle (An MPEC formulation for parameter identification of\n"
      "complementarity systems, 2008) by identify_shooting, identify_mpec and track_particle_filter, and\n"
      "writes the results beside the published ones. --seed chooses the noise.");
  RunFlags run;
  run.add_to(line);
  line.footer("Example: reproduce_table --seed 3 --out runs/talk");
  if (const auto status = line.parse(argc, argv)) return *status;
  require_float64(run);

  for (const char* program : {"identify_shooting", "track_particle_filter"}) {  // identify_mpec needs Ipopt
    const fs::path path = program_folder() / program;
    if (!fs::exists(path)) throw UsageError(path.string() + " is missing, which this program runs");
  }
  constexpr std::size_t kRuns = 3 * std::size(kByNoise) + 2 * std::size(kByCount);
  OutputFolder out(line, run);
  Runner runs(out, run, static_cast<std::int64_t>(kRuns));
  json metrics = {{"by_noise", json::array()}, {"by_particles", json::array()}};
  std::string text = "One particle, mu and its start unknown, mu = 0.2\n\n" +
                     table_head({"noise, m", "talk: mu", "objective", "iterations", "shooting: mu",
                                 "standard deviation", "objective", "iterations", "MPEC: difference of mu", "objective",
                                 "iterations", "filter: mu", "distinct particles at contact", "in the end"});
  for (const ByNoise& talk : kByNoise) {
    const json shooting = runs("identify_shooting", "noise", talk.noise);
    const json mpec = runs("identify_mpec", "noise", talk.noise);
    const json filter = runs("track_particle_filter", "noise", talk.noise);
    const json apart = largest_difference(mpec, shooting);
    const json& distinct = filter["distinct_particles"];
    text += table_row({short_number(talk.noise), talk.mu, talk.objective, talk.iterations, cell(shooting, "mu", 8),
                       cell(shooting, "mu_std", 2), cell(shooting, "objective"), cell(shooting, "iterations"),
                       apart.is_null() ? kNone : short_number(apart, 1), cell(mpec, "program_objective"),
                       iterations_and_status(mpec), cell(filter, "mu"), short_number(distinct[kContact]),
                       short_number(distinct.back())});
    metrics["by_noise"].push_back({{"noise", talk.noise},
                                   {"mu", shooting["mu"][0]},
                                   {"mu_std", shooting["mu_std"][0]},
                                   {"objective", shooting["objective"]},
                                   {"mpec_difference", apart},
                                   {"filter_mu", filter["mu"][0]},
                                   {"distinct_particles", {distinct[kContact], distinct.back()}}});
  }
  text += "\nSeveral particles, noise 0.005 m\n\n" +
          table_head({"particles", "talk: rmse of mu", "objective", "iterations", "shooting: rmse of mu", "objective",
                      "iterations", "MPEC: largest difference of mu", "iterations"});
  for (const ByCount& talk : kByCount) {
    const json shooting = runs("identify_shooting", "particles", static_cast<double>(talk.particles));
    const json mpec = runs("identify_mpec", "particles", static_cast<double>(talk.particles));
    const json apart = largest_difference(mpec, shooting);
    const double error = rmse(shooting["mu_error"]);
    text += table_row({std::to_string(talk.particles), talk.rmse, talk.objective, talk.iterations,
                       short_number(error, 2), cell(shooting, "objective"), cell(shooting, "iterations"),
                       apart.is_null() ? kNone : short_number(apart, 1), iterations_and_status(mpec)});
    metrics["by_particles"].push_back({{"particles", talk.particles},
                                       {"mu_rmse", error},
                                       {"objective", shooting["objective"]},
                                       {"mpec_difference", apart}});
  }
  out.write("table.md", text);
  if (!run.quiet) std::cout << text << "\n";
  write_results(out, metrics, {"table.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("reproduce_table", [&] { return reproduce_table(argc, argv); });
}
