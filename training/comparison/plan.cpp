#include <algorithm>
#include <utility>

#include "comparison/comparison.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using nlohmann::json;

constexpr const char* kMotion = "motion";
constexpr const char* kContact = "contact forces";

Method of_contact(const char* name, const char* program, Start start, const char* needs = nullptr) {
  return {name, program, "traditional", kContact, start, json::object(), needs};
}

Method of_motion(const char* name, const char* program, const char* parameters) {
  return {name, program, "traditional", kMotion, Start::kAll, {{"parameters", parameters}}};
}

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = {
      {"affine", nullptr, "traditional", kMotion, Start::kNone},
      {kBlackBox, nullptr, "traditional", kMotion, Start::kRandom},
      {"network", "train_network", "traditional", kMotion, Start::kRandom, {{"black-box-iterations", 1}}},
      {"direct_motion", "train_direct", "traditional", kMotion, Start::kRandom, {{"forces", "none"}}},
      {"direct", "train_direct", "direct", "fictitious forces", Start::kRandom, {{"forces", "fictitious"}}},
      {"direct_physical", "train_direct", "physical", "physical forces", Start::kRandom, {{"forces", "physical"}}},
      {"slack", "train_slack", "direct", "slack of fictitious forces", Start::kRandom},
      of_contact("penalty", "train_penalty", Start::kRandom),
      of_contact("structured", "train_structured", Start::kRandom),
      of_contact("linear_program", "fit_linear_program", Start::kNone, "Clp"),
      of_motion("in_the_loop_mu", "train_in_the_loop", "mu"),
      of_motion("in_the_loop_rows", "train_in_the_loop", "rows"),
      of_motion("in_the_loop_structured", "train_in_the_loop", "structured"),
      of_motion("in_the_loop_networks", "train_in_the_loop", "networks"),
      of_motion("bilevel_mu", "train_bilevel", "mu"),
      of_motion("bilevel_rows", "train_bilevel", "rows"),
      of_motion("bilevel_structured", "train_bilevel", "structured"),
      of_motion("bilevel_networks", "train_bilevel", "networks")};
  return methods;
}

std::string some_methods(const std::vector<std::string>& chosen) {
  const std::vector<std::string> names = names_of(all_methods());
  const bool known = std::all_of(chosen.begin(), chosen.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  return known && !chosen.empty() ? "" : "some of " + listed(names);
}

std::vector<std::string> starts(const Method& method) {
  if (method.start == Start::kAll) return {"near", "far", "random"};
  return {method.start == Start::kNone ? "none" : "random"};
}

}  // namespace

void ComparisonFlags::add_to(CommandLine& line) {
  run.add_to(line);
  samples.add_to(line);
  block.add_to(line);
  methods = names_of(all_methods());
  line.add("seeds", seeds, "Number of seeds, from --seed on; each has simulated data of its own", at_least_one);
  line.add("near-mu", near_mu, "Friction coefficient of near starts; 0: 1.5 times --mu", nonnegative);
  line.add("far-mu", far_mu, "Friction coefficient of far starts; 0: 4 times --mu", nonnegative);
  line.add("black-box-iterations", black_box_iterations,
           "Iterations of Adam for each of the 36 plain networks of the black box", at_least_one);
  line.add("methods", methods, "Methods to compare", some_methods);
  line.add_switch("resume", resume, "Finish the comparison in --out without repeating complete runs", Role::kNoEffect);
  line.footer(
      "Example: compare_methods --methods direct in_the_loop_mu bilevel_mu --seeds 5 --out runs/comparison\n"
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus,gamma (m/s, N, m/s, N, N, m/s), as\n"
      "simulate --formulation traditional writes it, and optionally trajectory; every seed gets these rows. The\n"
      "physical forces of direct_physical are those of the file minus min(lambda_plus, lambda_minus). The fictitious\n"
      "forces of direct and slack are not in the file: they are those of the direct formulation for its v and u and\n"
      "the block of --mass, --dt, --mu and --gravity.");
}

void ComparisonFlags::validate(const CommandLine& line) {
  samples.validate(line);
  block.require_friction();
  if (const std::string must = seed_range(run.seed + seeds - 1); !must.empty()) {
    throw UsageError("--seed + --seeds - 1 must be " + must + "; got " + std::to_string(run.seed + seeds - 1));
  }
  if (samples.samples < kHeldOutOneIn - 1) {
    throw UsageError("--samples must be >= 4, for each four of which one more is held out; got " +
                     std::to_string(samples.samples));
  }
}

double ComparisonFlags::start_mu(const std::string& start) const {
  if (start == "near") return near_mu > 0 ? near_mu : 1.5 * block.mu;
  return far_mu > 0 ? far_mu : 4 * block.mu;
}

std::string ComparisonFlags::data_file(std::int64_t seed, const std::string& name) {
  return "data/" + std::to_string(seed) + "_" + name + ".csv";
}

std::string ComparisonRun::title() const {
  return method.name + (start == "none" ? "" : ", " + start + " start") + ", seed " + std::to_string(seed);
}

std::vector<ComparisonRun> plan(const ComparisonFlags& flags) {
  std::vector<ComparisonRun> runs;
  for (std::int64_t seed = flags.run.seed; seed < flags.run.seed + flags.seeds; ++seed) {
    for (const Method& method : all_methods()) {
      if (std::find(flags.methods.begin(), flags.methods.end(), method.name) == flags.methods.end()) continue;
      for (const std::string& start : starts(method)) {
        json program_flags = method.flags;
        program_flags.update({{"data", (flags.run.out / ComparisonFlags::data_file(seed, method.data)).string()},
                              {"seed", seed},
                              {"dtype", flags.run.dtype},
                              {"threads", flags.run.threads},
                              {"mass", flags.block.mass},
                              {"dt", flags.block.dt},
                              {"mu", flags.block.mu},
                              {"gravity", flags.block.gravity}});
        if (method.name == std::string("network")) program_flags.erase("mu");  // it knows nothing of friction
        if (method.start == Start::kAll) {
          if (start == "random") {
            program_flags["start"] = start;
          } else {
            program_flags["initial-mu"] = flags.start_mu(start);
          }
        }
        const std::string folder = "runs/" + (method.name + ("_" + start)) + "_" + std::to_string(seed) + "/";
        runs.push_back({method, start, seed, folder, std::move(program_flags)});
      }
    }
  }
  return runs;
}

}  // namespace lcp::training
