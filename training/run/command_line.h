// The flags of a program, from the command line, from a JSON file or from the run that is resumed.
#pragma once

#include <c10/core/ScalarType.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lcp::training {

/// Entries of config.json beside the flags, by which OutputFolder recognises a run of this project and its files.
constexpr const char* kRunEntry = "torchlcp_run";
constexpr const char* kFilesEntry = "files";
constexpr const char* kInputsEntry = "input_files";

/// The flag that names a JSON file of flags.
constexpr const char* kConfigFlag = "config";

/// How a flag affects the results of a run.
enum class Role {
  kResult,  ///< The results depend on its value: it is part of config.json, and a resumed run must have the same.
  kFile,  ///< A file on whose content the results depend: part of config.json, but a resumed run may find it elsewhere.
  kFolder,  ///< A folder of such files, which a resumed run may find elsewhere, too; its program compares the content.
  kFileOrWord,  ///< A file, or a word without "." and "/" that has a meaning of its own; a resumed run must have the
                ///< same.
  kNoEffect     ///< The results do not depend on it.
};

/// Whether the value of a flag of Role::kFileOrWord names a file.
bool names_file(const std::string& value);

/// A program's flags. A flag takes its value from the first of these that has one: the command line, --config FILE, the
/// run that --resume continues, its default. Only the command line can set --overwrite, since FILE may be somebody
/// else's. Every mistake throws a UsageError of one line that names the flag.
class CommandLine {
 public:
  CommandLine(std::string program, std::string description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// A flag "--name VALUE", bound to `value`, whose present value is the default. `allowed` returns "" for an allowed
  /// value, and otherwise what the value must be. T: double, std::int64_t, std::string, std::filesystem::path, and
  /// vectors of double and of std::string.
  template <class T>
  void add(const std::string& name, T& value, const std::string& help,
           const std::type_identity_t<std::function<std::string(const T&)>>& allowed = nullptr,
           Role role = Role::kResult);

  /// A flag "--name" without a value.
  void add_switch(const std::string& name, bool& value, const std::string& help, Role role = Role::kResult);

  /// Text shown below the flags of --help.
  void footer(const std::string& text);

  /// Parses the command line, then --config, and makes the paths of input files absolute. Returns an exit status where
  /// the program must end at once, as after --help.
  std::optional<int> parse(int argc, const char* const* argv);

  /// Takes the flags that were not given from `config`, which `file` holds. Throws a UsageError where a given flag of
  /// Role::kResult differs from it.
  void agree_with(const nlohmann::json& config, const std::filesystem::path& file);

  /// All flags but those of Role::kNoEffect; null where a text is not given. Throws a UsageError where a text is
  /// not UTF-8, which `parse` does as well.
  nlohmann::json config() const;

  /// The files that the program reads, by their flags: those of Role::kFile and Role::kFileOrWord, and --config.
  std::map<std::string, std::filesystem::path> input_files() const;

  /// Throws a UsageError where one of the flags was given on the command line, since it has no meaning with `other`,
  /// such as "--data".
  void exclude(const std::vector<std::string>& flags, const std::string& other) const;

  /// Whether a flag was given on the command line.
  bool given(const std::string& name) const;
  const std::string& program() const { return program_; }

 private:
  struct Flag {
    std::string name;
    Role role;
    CLI::Option* option;
    bool set = false;  // by the command line or by --config
    std::function<nlohmann::json()> get;
    std::function<void(const nlohmann::json&)> put;
    std::function<void()> check;
  };

  template <class T>
  void bind(const std::string& name, CLI::Option* option, T& value, const std::function<std::string(const T&)>& allowed,
            Role role);
  Flag* find(const std::string& name);
  static void take(Flag& flag, const nlohmann::json& value, const std::string& source);
  void read_config();
  void check() const;

  std::string program_;
  std::unique_ptr<CLI::App> app_;
  std::string config_file_;
  std::vector<Flag> flags_;
};

/// The value of a flag that is needed before the others are known: from the command line, from --config, or
/// `otherwise`.
std::string early_value(int argc, const char* const* argv, const std::string& flag, const std::string& otherwise);

/// Counts are at most this large, so that the product of two of them is an std::int64_t.
constexpr std::int64_t kLargestCount = 1'000'000'000;

/// Checks for CommandLine::add: each returns "" where the value is allowed, else what it must be.
inline std::string finite_number(const double& x) { return std::isfinite(x) ? "" : "finite"; }
inline std::string positive(const double& x) { return std::isfinite(x) && x > 0 ? "" : "finite and > 0"; }
inline std::string nonnegative(const double& x) { return std::isfinite(x) && x >= 0 ? "" : "finite and >= 0"; }
inline std::string from_zero_to_one(const double& x) { return x >= 0 && x <= 1 ? "" : "from 0 to 1"; }
inline std::string at_least_zero(const std::int64_t& x) {
  return x < 0 ? ">= 0" : x > kLargestCount ? "<= " + std::to_string(kLargestCount) : "";
}
inline std::string at_least_one(const std::int64_t& x) { return x >= 1 ? at_least_zero(x) : ">= 1"; }
inline std::string at_least_two(const std::int64_t& x) { return x >= 2 ? at_least_zero(x) : ">= 2"; }
inline std::string thread_count(const std::int64_t& x) { return x >= 1 && x <= 256 ? "" : "from 1 to 256"; }
inline std::string seed_range(const std::int64_t& x) {
  return x >= 0 && x < std::int64_t{1} << 32 ? "" : "a whole number from 0 to 4294967295";
}

/// The check of a list of numbers, from `least` to `most` of them, each of which `check` allows. must: what they must
/// be.
std::function<std::string(const std::vector<double>&)> each(std::string (*check)(const double&), const char* must,
                                                            std::size_t least = 1, std::size_t most = SIZE_MAX);
std::function<std::string(const std::vector<double>&)> finite_numbers(std::size_t count);  ///< count: 2, 3 or 6

/// Which values of --dtype a program takes.
enum class Precision { kAny, kFloat64 };

/// Flags of every program.
struct RunFlags {
  std::filesystem::path out;
  std::int64_t seed = 0;
  std::string dtype = "float64";
  std::int64_t threads = 1;
  bool quiet = false;
  bool overwrite = false;

  void add_to(CommandLine& line, Precision precision = Precision::kAny);
  c10::ScalarType scalar_type() const { return dtype == "float32" ? c10::kFloat : c10::kDouble; }
};

/// The parameters that every system has, as flags.
struct PhysicsFlags {
  double mass = 1;  // kg
  double dt = 0.1;  // s
  double mu = 0.3;
  double gravity = 9.81;  // m/s^2

  void add_to(CommandLine& line);
  double max_friction() const { return mu * mass * gravity; }  ///< N, on level ground
  void require_friction() const;  ///< throws a UsageError where there is none, and mu m g is no unit of force
};

/// The flag --resume.
void add_resume_flag(CommandLine& line, bool& resume);

/// Flags of every program that trains.
struct TrainingFlags {
  std::int64_t iterations;
  double learning_rate;
  std::int64_t checkpoint_every = 500;
  bool resume = false;

  void add_to(CommandLine& line);
};

}  // namespace lcp::training
