// Repeats the experiments of [BT] and writes the results beside the published ones.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "identification/track_model.h"
#include "run/program.h"

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
  const char *variables, *rmse, *objective, *iterations;
};
constexpr ByCount kByCount[] = {{2, "2006", "0", "0.00409", "334"},
                                {3, "3009", "0", "0.00495", "185"},
                                {5, "5015", "6e-06", "0.0105", "364"},
                                {10, "10030", "7.2e-06", "0.0166", "281"}};

// The programs that are compared in trajectory and velocity, of tracks with and without process noise.
struct Estimator {
  const char* name;
  const char *particles, *tripods;  // programs
  std::vector<std::string> flags;
};
const std::vector<Estimator>& estimators() {
  static const std::vector<Estimator> all = {
      {"shooting", "identify_shooting", "identify_tripod", {}},
      {"MPEC", "identify_mpec", "identify_mpec", {}},
      {"filter", "track_particle_filter", "track_particle_filter", {}},
      {"filter, roughened", "track_particle_filter", "track_particle_filter", {"--roughening", "0.2"}},
      {"filter, extended Kalman", "track_particle_filter", "track_particle_filter", {"--filter", "extended"}},
      {"filter, unscented Kalman", "track_particle_filter", "track_particle_filter", {"--filter", "unscented"}},
      {"moving horizon", "track_moving_horizon", "track_moving_horizon", {}}};
  return all;
}
struct Compared {
  const char* system;
  const char* process_noise;  // N
};
constexpr Compared kCompared[] = {{"particle", "0"}, {"particle", "1"}, {"tripod", "0"}, {"tripod", "0.3"}};

constexpr const char* kNone = "not built";
constexpr std::size_t kContact = 16;  // the step in which the particle lands

// Runs programs, each with a folder of its own for its results.
class Runner {
 public:
  Runner(OutputFolder& out, const RunFlags& run, std::int64_t total)
      : out_(out), run_(run), progress_("run", 0, total, run.quiet) {}

  json operator()(const std::string& program, const std::string& flag, double value) {
    return (*this)(program, {"--" + flag, short_number(value)});
  }

  /// The metrics of a run, with its seconds of real time; null where the program is not built.
  json operator()(const std::string& program, const std::vector<std::string>& flags) {
    std::string words = program;
    for (const std::string& flag : flags) words += " " + flag;
    progress_.show(done_++, words);
    const fs::path path = program_folder() / program;
    if (!fs::exists(path)) return nullptr;
    const std::string name = folder_of(program, flags);
    out_.announce(name);
    std::vector<std::string> command = {path.string(),         "--quiet", "--seed", std::to_string(run_.seed), "--out",
                                        (out_ / name).string()};
    command.insert(command.end(), flags.begin(), flags.end());
    if (run_.overwrite) command.emplace_back("--overwrite");
    const auto began = std::chrono::steady_clock::now();
    const ProcessResult result = run_process(command, {"TORCHLCP_PYTHON="});  // without figures
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    // Where Ipopt finds no solution the program fails, but writes its metrics.
    if (!has_written(out_ / name, "metrics.json")) {
      throw std::runtime_error(program + " ended with exit status " + std::to_string(result.status) + ": " +
                               result.last_error());
    }
    json metrics = read_json(out_ / (name + "metrics.json"));
    metrics["seconds"] = took.count();
    return metrics;
  }

  /// Of a run: runs/identify_mpec-system-tripod/.
  static std::string folder_of(const std::string& program, const std::vector<std::string>& flags) {
    std::string name = "runs/" + program;
    for (const std::string& flag : flags) name += "-" + flag.substr(flag.starts_with("--") ? 2 : 0);
    return name + "/";
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

// The largest difference of the two estimates of mu; null where one is missing, or Ipopt did not solve the program.
json largest_difference(const json& a, const json& b) {
  if (a.is_null() || b.is_null() || a["mu"].is_null()) return nullptr;
  double most = 0;
  for (std::size_t k = 0; k < a["mu"].size(); ++k) {
    most = std::max(most, std::abs(a["mu"][k].get<double>() - b["mu"][k].get<double>()));
  }
  return most;
}

std::string difference(const json& apart, const json& mpec) {
  return !apart.is_null() ? short_number(apart, 1) : mpec.is_null() ? kNone : "none";
}

// The number of iterations, followed by the status where Ipopt did not solve the program.
std::string iterations_and_status(const json& mpec) {
  if (mpec.is_null()) return kNone;
  const std::string status = mpec["status"];
  return cell(mpec, "iterations") + (status == "solved" ? "" : ", " + status);
}

// Runs all estimators on the same tracks; returns a table for people, and puts a row for each into `rows`.
std::string compare(Runner& runs, json& rows) {
  std::string text = table_head({"system", "process noise, N", "estimate", "mu", "error of mu", "position rmse, mm",
                                 "velocity rmse, mm/s", "time, s"});
  const auto row = [&](const Compared& tracks, const std::string& name, const json& mu, const json& error,
                       const json& position, const json& velocity, const json& seconds) {
    const auto shown = [](const json& x, double factor, int digits) {
      return x.is_null() ? "none" : short_number(factor * x.get<double>(), digits);
    };
    text += table_row({tracks.system, tracks.process_noise, name, shown(mu, 1, 5), shown(error, 1, 2),
                       shown(position, 1e3, 3), shown(velocity, 1e3, 3), shown(seconds, 1, 2)});
  };
  for (const Compared& tracks : kCompared) {
    const bool tripod = std::string(tracks.system) == "tripod";
    for (const Estimator& estimator : estimators()) {
      const std::string program = tripod ? estimator.tripods : estimator.particles;
      std::vector<std::string> flags = estimator.flags;
      flags.insert(flags.end(), {"--process-noise", tracks.process_noise});
      if (program.starts_with("identify")) flags.insert(flags.end(), {"--estimate", "mu,q0"});
      if (program != "identify_shooting" && program != "identify_tripod") {
        flags.insert(flags.end(), {"--system", tracks.system});
      }
      const json found = runs(program, flags);
      if (&estimator == &estimators().front()) {
        row(tracks, "observations", nullptr, nullptr, found["observed_position_rmse"], found["observed_velocity_rmse"],
            nullptr);
      }
      if (found.is_null() || found["mu"].is_null()) {
        row(tracks, estimator.name, nullptr, nullptr, nullptr, nullptr, nullptr);
        continue;
      }
      const std::string note = found["unexplained"].empty() ? "" : ", does not explain the track";
      row(tracks, estimator.name + note, found["mu"][0], found["mu_error"][0], found["position_rmse"],
          found["velocity_rmse"], found["seconds"]);
      rows.push_back({{"system", tracks.system},
                      {"process_noise", tracks.process_noise},
                      {"estimator", estimator.name},
                      {"status", found["status"]},
                      {"folder", Runner::folder_of(program, flags)},
                      {"mu", found["mu"][0]},
                      {"mu_std", found["mu_std"][0]},
                      {"mu_error", found["mu_error"][0]},
                      {"position_rmse", found["position_rmse"]},
                      {"velocity_rmse", found["velocity_rmse"]},
                      {"observed_position_rmse", found["observed_position_rmse"]},
                      {"observed_velocity_rmse", found["observed_velocity_rmse"]}});
    }
  }
  return text;
}

int reproduce_table(int argc, const char* const* argv) {
  CommandLine line(
      "reproduce_table",
      "Repeats the experiments of Berard and Trinkle (An MPEC formulation for parameter identification of\n"
      "complementarity systems, 2008) by identify_shooting, identify_mpec and track_particle_filter, and\n"
      "writes the results beside the published ones. Then compares these programs, identify_tripod and\n"
      "track_moving_horizon in trajectory and velocity, with and without process noise. --seed chooses the noise.");
  RunFlags run;
  run.add_to(line, Precision::kFloat64);
  line.footer("Example: reproduce_table --seed 3 --out runs/talk");
  if (const auto status = line.parse(argc, argv)) return *status;

  for (const char* program : {"identify_shooting", "identify_tripod", "track_particle_filter",
                              "track_moving_horizon"}) {  // identify_mpec needs Ipopt
    const fs::path path = program_folder() / program;
    if (!fs::exists(path)) throw UsageError(path.string() + " is missing, which this program runs");
  }
  const std::size_t count_of_runs =
      3 * std::size(kByNoise) + 2 * std::size(kByCount) + std::size(kCompared) * estimators().size();
  OutputFolder out(line, run);
  Runner runs(out, run, static_cast<std::int64_t>(count_of_runs));
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
                       difference(apart, mpec), cell(mpec, "program_objective"), iterations_and_status(mpec),
                       cell(filter, "mu"), short_number(distinct[kContact]), short_number(distinct.back())});
    metrics["by_noise"].push_back({{"noise", talk.noise},
                                   {"mu", shooting["mu"][0]},
                                   {"mu_std", shooting["mu_std"][0]},
                                   {"objective", shooting["objective"]},
                                   {"mpec_difference", apart},
                                   {"filter_mu", filter["mu"][0]},
                                   {"distinct_particles", {distinct[kContact], distinct.back()}}});
  }
  text += "\nSeveral particles, noise 0.005 m\n\n" +
          table_head({"particles", "talk: variables", "rmse of mu", "objective", "iterations", "shooting: rmse of mu",
                      "objective", "iterations", "MPEC: variables", "largest difference of mu", "iterations"});
  for (const ByCount& talk : kByCount) {
    const json shooting = runs("identify_shooting", "particles", static_cast<double>(talk.particles));
    const json mpec = runs("identify_mpec", "particles", static_cast<double>(talk.particles));
    const json apart = largest_difference(mpec, shooting);
    const double error = rmse(shooting["mu_error"]);
    text += table_row({std::to_string(talk.particles), talk.variables, talk.rmse, talk.objective, talk.iterations,
                       short_number(error, 2), cell(shooting, "objective"), cell(shooting, "iterations"),
                       cell(mpec, "program_unknowns", 6), difference(apart, mpec), iterations_and_status(mpec)});
    metrics["by_particles"].push_back({{"particles", talk.particles},
                                       {"mu_rmse", error},
                                       {"objective", shooting["objective"]},
                                       {"mpec_difference", apart}});
  }
  metrics["estimators"] = json::array();
  text += "\nAll estimators of the same tracks, mu and the start unknown\n\n" + compare(runs, metrics["estimators"]);
  out.write("table.md", text);
  if (!run.quiet) std::cout << text << "\n";
  write_results(out, metrics, {"table.png", "estimators.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("reproduce_table", reproduce_table, argc, argv); }
