// The runs of compare_methods.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/command_line.h"
#include "run/physics_flags.h"
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

}  // namespace lcp::training
