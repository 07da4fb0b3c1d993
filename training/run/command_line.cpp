#include "run/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "run/error.h"
#include "run/files.h"
#include "run/text.h"

namespace lcp::training {

namespace {

constexpr const char* kOverwrite = "overwrite";

struct WrongType : std::runtime_error {
  WrongType() : std::runtime_error("a flag's value is of another kind") {}
};

// Reads a value like get_to, but without conversions between integers and reals: 1.5 is not accepted as a count.
template <class T>
void read(const nlohmann::json& record, T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const bool fits = !record.is_number_unsigned() || record.get<T>() >= 0;
    if (!record.is_number_integer() || !fits) throw WrongType();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!record.is_number()) throw WrongType();
  }
  record.get_to(value);
}

// Whether the value is such a text, or has one among its entries.
template <class Predicate>
bool has_text(const nlohmann::json& value, const Predicate& predicate) {
  if (value.is_string()) return predicate(value.get_ref<const std::string&>());
  return value.is_array() &&
         std::any_of(value.begin(), value.end(), [&](const auto& x) { return has_text(x, predicate); });
}

bool is_empty_text(const nlohmann::json& value) {
  return has_text(value, [](const std::string& text) { return text.empty(); });
}

// The value as JSON, whose texts are UTF-8.
template <class T>
nlohmann::json as_json(const std::string& name, const T& value) {
  nlohmann::json record = value;
  try {
    static_cast<void>(record.dump());
  } catch (const nlohmann::json::type_error&) {
    throw UsageError("--" + name + " must be UTF-8 text");
  }
  return record;
}

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::to_string(value);  // JSON has no such numbers
  }
  return nlohmann::json(value).dump();
}

}  // namespace

bool names_file(const std::string& value) { return value.find_first_of("./") != std::string::npos; }

CommandLine::CommandLine(std::string program, std::string description)
    : program_(std::move(program)), app_(std::make_unique<CLI::App>(std::move(description), program_)) {
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app_->add_option(std::string("--") + kConfigFlag, config_file_,
                   "JSON file of flags, such as the config.json of a run; the command line overrides it");
}

CommandLine::~CommandLine() = default;

template <class T>
void CommandLine::bind(const std::string& name, CLI::Option* option, T& value,
                       const std::function<std::string(const T&)>& allowed, Role role) {
  flags_.push_back({name, role, option, false, [name, &value] { return as_json(name, value); },
                    [&value](const nlohmann::json& json) { read(json, value); },
                    [name, allowed, &value] {
                      as_json(name, value);
                      if (!allowed) return;
                      if (const std::string must = allowed(value); !must.empty()) {
                        throw UsageError("--" + name + " must be " + must + "; got " + shown(value));
                      }
                    }});
}

template <class T>
void CommandLine::add(const std::string& name, T& value, const std::string& help,
                      const std::type_identity_t<std::function<std::string(const T&)>>& allowed, Role role) {
  CLI::Option* option = app_->add_option("--" + name, value, help)->capture_default_str();
  bind(name, option, value, allowed, role);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define LCP_FLAGS_OF(T)                                                         \
  template void CommandLine::add<T>(const std::string&, T&, const std::string&, \
                                    const std::type_identity_t<std::function<std::string(const T&)>>&, Role)
// NOLINTEND(bugprone-macro-parentheses)
LCP_FLAGS_OF(double);
LCP_FLAGS_OF(std::int64_t);
LCP_FLAGS_OF(std::string);
LCP_FLAGS_OF(std::filesystem::path);
LCP_FLAGS_OF(std::vector<double>);
LCP_FLAGS_OF(std::vector<std::string>);
#undef LCP_FLAGS_OF

void CommandLine::footer(const std::string& text) { app_->footer(text); }

void CommandLine::add_switch(const std::string& name, bool& value, const std::string& help, Role role) {
  bind<bool>(name, app_->add_flag("--" + name, value, help), value, nullptr, role);
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  for (int k = 1; k < argc; ++k) {  // "--name=" would take the next argument as its value
    const std::string_view argument = argv[k];
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size()) {
      throw UsageError(std::string(argument.substr(0, argument.size() - 1)) + " must not be empty");
    }
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app_->help();
    return 0;
  } catch (const CLI::ExtrasError&) {
    const auto extra = app_->remaining();
    throw UsageError("unknown argument " + (extra.empty() ? "" : extra.front()) + "; " + program_ +
                     " --help lists the flags");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const CLI::Option* option : app_->get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") != values.end()) {
      throw UsageError(option->get_name() + " must not be empty");
    }
  }
  for (Flag& flag : flags_) flag.set = flag.option->count() > 0;
  if (!config_file_.empty()) read_config();
  check();
  for (const auto& [name, file] : input_files()) {
    std::error_code none;  // a pipe has no other path
    const std::filesystem::path absolute = std::filesystem::weakly_canonical(file, none);
    if (Flag* flag = find(name); flag && !none) flag->put(absolute.string());
  }
  return std::nullopt;
}

void CommandLine::read_config() {
  const nlohmann::json config = read_json(config_file_);
  for (const auto& [name, value] : config.items()) {
    if (name == kRunEntry || name == kFilesEntry || name == kInputsEntry) continue;
    if (name == kOverwrite) {
      throw UsageError("--config " + config_file_ + ": --overwrite must be given on the command line");
    }
    if (name == "program") {
      if (value != program_) {
        throw UsageError("--config " + config_file_ + ": is of " + value.dump() + ", not of " + program_);
      }
      continue;
    }
    Flag* flag = find(name);
    if (!flag) throw UsageError("--config " + config_file_ + ": unknown flag \"" + name + "\"");
    if (flag->set || value.is_null()) continue;
    take(*flag, value, "--config " + config_file_);
    flag->set = true;
  }
}

void CommandLine::take(Flag& flag, const nlohmann::json& value, const std::string& source) {
  try {
    // No path has a null character: the functions of the C library would cut it off there.
    const auto is_cut = [](const std::string& text) { return text.empty() || text.find('\0') != std::string::npos; };
    if (has_text(value, is_cut)) throw WrongType();
    flag.put(value);
    return;
  } catch (const nlohmann::json::exception&) {
  } catch (const WrongType&) {
  }
  throw UsageError(source + ": \"" + flag.name + "\" cannot be " + value.dump());
}

void CommandLine::agree_with(const nlohmann::json& config, const std::filesystem::path& file) {
  for (Flag& flag : flags_) {
    if (flag.role == Role::kNoEffect || !config.contains(flag.name)) continue;
    const nlohmann::json& value = config.at(flag.name);
    if (value.is_null()) continue;
    if (!flag.set) {
      take(flag, value, file.string());
    } else if (flag.role != Role::kFile && flag.role != Role::kFolder && flag.get() != value) {
      throw UsageError("--" + flag.name + " " + flag.get().dump() + " differs from the " + value.dump() + " of " +
                       file.string() + ", which --resume continues");
    }
  }
  check();
}

nlohmann::json CommandLine::config() const {
  nlohmann::json config = {{"program", program_}};
  for (const Flag& flag : flags_) {
    if (flag.role == Role::kNoEffect) continue;
    const nlohmann::json value = flag.get();
    config[flag.name] = is_empty_text(value) ? nlohmann::json() : value;
  }
  return config;
}

std::map<std::string, std::filesystem::path> CommandLine::input_files() const {
  std::map<std::string, std::filesystem::path> files;
  if (!config_file_.empty()) files[kConfigFlag] = config_file_;
  for (const Flag& flag : flags_) {
    if (flag.role != Role::kFile && flag.role != Role::kFileOrWord) continue;
    const nlohmann::json value = flag.get();
    if (is_empty_text(value)) continue;
    const std::string file = value.get<std::string>();
    if (flag.role == Role::kFile || names_file(file)) files[flag.name] = file;
  }
  return files;
}

bool CommandLine::given(const std::string& name) const {
  const auto is_it = [&](const Flag& flag) { return flag.name == name && flag.option->count() > 0; };
  return std::any_of(flags_.begin(), flags_.end(), is_it);
}

void CommandLine::exclude(const std::vector<std::string>& flags, const std::string& other) const {
  for (const std::string& flag : flags) {
    if (given(flag)) throw UsageError("--" + flag + " has no meaning with " + other);
  }
}

CommandLine::Flag* CommandLine::find(const std::string& name) {
  for (Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

void CommandLine::check() const {
  for (const Flag& flag : flags_) flag.check();
}

std::string early_value(int argc, const char* const* argv, const std::string& flag, const std::string& otherwise) {
  std::string config;
  for (int k = 1; k < argc; ++k) {
    const std::string_view word = argv[k];
    std::string next = k + 1 < argc ? argv[k + 1] : "";
    if (word == "--" + flag) return next;
    if (word.starts_with("--" + flag + "=")) return std::string(word.substr(flag.size() + 3));
    if (word == "--config") config = next;
    if (word.starts_with("--config=")) config = word.substr(9);
  }
  if (config.empty()) return otherwise;
  const nlohmann::json flags = read_json(config);
  const bool named = flags.contains(flag) && flags[flag].is_string();
  return named ? flags[flag].get<std::string>() : otherwise;
}

std::function<std::string(const std::vector<double>&)> each(std::string (*check)(const double&), const char* must,
                                                            std::size_t least, std::size_t most) {
  return [=](const std::vector<double>& x) {
    const bool fits = std::all_of(x.begin(), x.end(), [&](double y) { return check(y).empty(); });
    return fits && x.size() >= least && x.size() <= most ? "" : must;
  };
}

std::function<std::string(const std::vector<double>&)> finite_numbers(std::size_t count) {
  const char* const must = count == 2   ? "two finite numbers"
                           : count == 3 ? "three finite numbers"
                                        : "six finite numbers";
  return each(finite_number, must, count, count);
}

void RunFlags::add_to(CommandLine& line, Precision precision) {
  out = std::filesystem::path("runs") / line.program();
  line.add(
      "out", out, "Folder for all files that the run writes",
      [](const std::filesystem::path& path) { return path.empty() ? "a folder" : ""; }, Role::kNoEffect);
  line.add("seed", seed, "Seed of all random numbers; the same seed repeats the run", seed_range);
  if (precision == Precision::kAny) {
    line.add("dtype", dtype, "float32 or float64", one_of({"float32", "float64"}));
  } else {
    constexpr const char* kOnly = "float64, the only precision of this program";
    line.add("dtype", dtype, kOnly, [](const std::string& x) { return x == "float64" ? "" : kOnly; });
  }
  line.add("threads", threads, "Threads for tensor operations", thread_count);
  line.add_switch("quiet", quiet, "Print nothing but errors", Role::kNoEffect);
  line.add_switch(kOverwrite, overwrite,
                  "Write into --out even if it holds files that no run wrote, or that were changed since; files of the "
                  "same names are replaced",
                  Role::kNoEffect);
}

void PhysicsFlags::add_to(CommandLine& line) {
  line.add("mass", mass, "Mass, kg", positive);
  line.add("dt", dt, "Time step, s", positive);
  line.add("mu", mu, "Friction coefficient", nonnegative);
  line.add("gravity", gravity, "Gravity, m/s^2", nonnegative);
}

void PhysicsFlags::require_friction() const {
  if (!(max_friction() > 0)) throw UsageError("--mu and --gravity must be > 0: mu m g is the unit of force");
}

void add_resume_flag(CommandLine& line, bool& resume) {
  line.add_switch("resume", resume, "Continue the run in --out from its checkpoint", Role::kNoEffect);
}

void TrainingFlags::add_to(CommandLine& line) {
  line.add("iterations", iterations, "Minibatches to train on", at_least_one);
  line.add("learning-rate", learning_rate, "Adam's first step size; it falls to 0 along a cosine", positive);
  line.add("checkpoint-every", checkpoint_every, "Iterations between checkpoints; 0: only at the end", at_least_zero,
           Role::kNoEffect);
  add_resume_flag(line, resume);
}

}  // namespace lcp::training
