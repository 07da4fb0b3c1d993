// Flags, from the command line, from a JSON file, or from the run that is resumed.
#pragma once

#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/error.h"

namespace lcp::training {

/// What a flag is: part of what a run computes, and so of config.json; a file whose content is that, wherever it lies;
/// or only how the run is run.
enum class Role { kResult, kFile, kManner };

/// A program's flags. Their values come, first wins, from the command line, --config FILE, the config.json of a run
/// that --resume continues, and the defaults. Every mistake throws a UsageError of one line that names the flag.
class CommandLine {
 public:
  CommandLine(std::string program, std::string description);

  /// A flag "--name VALUE", bound to `value`, whose value now is the default. `allowed` returns what the value must
  /// be, or "" where it is that.
  template <class T>
  void add(const std::string& name, T& value, const std::string& help,
           const std::function<std::string(const T&)>& allowed = nullptr, Role role = Role::kResult) {
    CLI::Option* option = app_.add_option("--" + name, value, help)->capture_default_str();
    bind(name, option, value, allowed, role);
  }

  /// A flag "--name" without a value.
  void add_switch(const std::string& name, bool& value, const std::string& help, Role role = Role::kResult);

  /// Text shown below the flags of --help.
  void footer(const std::string& text) { app_.footer(text); }

  /// Parses the command line, then --config. Returns an exit status where the program is done (--help).
  std::optional<int> parse(int argc, const char* const* argv);

  /// Takes the flags that were not given from `config`; a flag of Role::kResult that was given must agree with it, one
  /// of Role::kFile wins.
  void agree_with(const nlohmann::json& config, const std::filesystem::path& file);

  /// The flags of Role::kResult and Role::kFile.
  nlohmann::json config() const;

  /// Whether a flag stands on the command line.
  bool given(const std::string& name) const;
  const std::string& program() const { return program_; }

 private:
  struct Flag {
    std::string name;
    Role role;
    CLI::Option* option;
    bool set = false;  // by the command line or --config
    std::function<nlohmann::json()> get;
    std::function<void(const nlohmann::json&)> put;
    std::function<void()> check;
  };

  template <class T>
  void bind(const std::string& name, CLI::Option* option, T& value, const std::function<std::string(const T&)>& allowed,
            Role role) {
    flags_.push_back({name, role, option, false, [&value] { return nlohmann::json(value); },
                      [&value](const nlohmann::json& json) { read(json, value); },
                      [name, allowed, &value] {
                        if (!allowed) return;
                        if (const std::string must = allowed(value); !must.empty()) {
                          throw UsageError("--" + name + " must be " + must + "; got " + shown(value));
                        }
                      }});
  }

  // As get_to, but a number must be of the kind that is wanted: 1.5 is no count.
  template <class T>
  static void read(const nlohmann::json& json, T& value) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const bool fits = !json.is_number_unsigned() || json.get<T>() >= 0;
      if (!json.is_number_integer() || !fits) throw WrongType();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) throw WrongType();
    }
    json.get_to(value);
  }

  struct WrongType : std::runtime_error {
    WrongType() : std::runtime_error("a flag's value is of another kind") {}
  };

  template <class T>
  static std::string shown(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) return std::to_string(value);  // which JSON cannot say
    }
    return nlohmann::json(value).dump();
  }
  Flag* find(const std::string& name);
  void read_config();
  void check() const;

  std::string program_;
  CLI::App app_;
  std::string config_file_;
  std::vector<Flag> flags_;
};

/// What numbers may be.
std::string positive(const double& x);
std::string nonnegative(const double& x);
std::string at_least_one(const std::int64_t& x);
std::string at_least_zero(const std::int64_t& x);
std::string seed_range(const std::int64_t& x);
std::string thread_count(const std::int64_t& x);
std::string finite_number(const double& x);
std::function<std::string(const std::vector<double>&)> finite_numbers(std::size_t count);  ///< count: 2, 3 or 6

/// Flags of every program.
struct RunFlags {
  std::filesystem::path out;
  std::int64_t seed = 0;
  std::string dtype = "float64";
  std::int64_t threads = 1;
  bool quiet = false;

  void add_to(CommandLine& line);
  c10::ScalarType scalar_type() const { return dtype == "float32" ? c10::kFloat : c10::kDouble; }
};

/// Flags of every program that trains.
struct TrainingFlags {
  std::int64_t iterations;
  double learning_rate;
  std::int64_t checkpoint_every = 500;
  bool resume = false;

  void add_to(CommandLine& line);
};

}  // namespace lcp::training
