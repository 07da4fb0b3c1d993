// Identifies the friction, the initial pose and the initial velocity of blocks that slide and turn on three supports
// from noisy tracks.
#include <iostream>

#include "identification/estimate.h"
#include "identification/shooting.h"
#include "identification/tripod.h"
#include "run/program.h"

namespace {

using namespace lcp::training;

// Their LCPs of about 30 unknowns take longer than the calls of tensor operations already with these few.
constexpr std::int64_t kTracksOfATask = 16;

struct Flags {
  RunFlags run;
  Tripods tripod;
  ShootingFlags shooting;
  bool study = false;

  void add_to(CommandLine& line) {
    run.add_to(line, Precision::kFloat64);
    tripod.add_bodies_to(line);
    tripod.tracks.add_estimate_to(line);
    shooting.add_to(line);
    line.add_switch("study", study,
                    "Also identify with models of 4 to 32 directions and of other heights of the centre of mass");
    line.footer(
        "Examples: identify_tripod --noise 0.002 --out runs/noisy\n"
        "          identify_tripod --true-directions 128 --study --out runs/mismatch\n"
        "Data of your own: CSV with columns time,x,y,theta (s, m, m, rad; theta may jump by full turns), of equal\n"
        "steps, and optionally track; without it a track ends where time falls. --mass, --inertia and --supports\n"
        "say what slides; of --mass and --inertia only the ratio matters unless there is a --force.");
  }
};

struct Variant {
  std::int64_t directions;
  double com_height;
};

// The friction that models with other directions and other heights of the centre of mass identify from the same tracks.
Table study(const Flags& flags, const TrackProblem& problem) {
  const TripodFlags& block = flags.tripod.block;
  std::vector<Variant> variants;
  for (const std::int64_t n : {4, 8, 16, 32}) variants.push_back({n, block.com_height});
  for (const double h : {0., 0.01, 0.02, 0.03}) variants.push_back({block.directions, h});
  Table table{{"directions", "com_height", "track", "mu", "mu_std", "objective"}, {}};
  for (const Variant& variant : variants) {
    Tripods other = flags.tripod;
    other.block.directions = variant.directions;
    other.block.com_height = variant.com_height;
    const auto fit = fit_by_shooting(flags.run, other.tracks, flags.shooting, TrackModel(other, problem)).fit;
    const Confidence accuracy = confidence(problem, fit);
    const torch::Tensor std = where_explained(accuracy, accuracy.std);
    for (std::int64_t b = 0; b < fit.theta.size(0); ++b) {
      table.add_row({static_cast<double>(variant.directions), variant.com_height, static_cast<double>(b),
                     fit.theta[b][0].item<double>(), std[b][0].item<double>(), fit.objective[b].item<double>()});
    }
  }
  return table;
}

void print_table(const Table& table) {
  std::cout << table_head({"directions", "height of the centre of mass, m", "track", "mu", "objective, m^2"});
  for (std::size_t k = 0; k < table.rows(); ++k) {
    std::cout << table_row({short_number(table["directions"][k]), short_number(table["com_height"][k]),
                            short_number(table["track"][k]), short_number(table["mu"][k], 6),
                            short_number(table["objective"][k])});
  }
}

int identify_tripod(int argc, const char* const* argv) {
  CommandLine line(
      "identify_tripod",
      "Finds the friction, the initial pose and the initial velocity of blocks that slide and turn on three supports,\n"
      "from noisy tracks. Minimises the squared distances of simulated and observed poses by Levenberg-Marquardt with\n"
      "the exact derivative of the simulation, and reports the uncertainty of the result and what the tracks do not\n"
      "determine.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  return identify_by_shooting(line, flags.run, flags.tripod, flags.shooting, kTracksOfATask,
                              [&](OutputFolder& out, const TrackProblem& problem) -> std::vector<std::string> {
                                if (!flags.study) return {};
                                const Table table = study(flags, problem);
                                out.write_csv("study.csv", table);
                                if (!flags.run.quiet) print_table(table);
                                return {"study.png"};
                              });
}

}  // namespace

int main(int argc, char** argv) { run_program("identify_tripod", identify_tripod, argc, argv, Processes::kDivided); }
