// Converts recorded motion into tosses, and checks what its numbers mean.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "run/program.h"
#include "tosses/capture_checks.h"
#include "tosses/motion_capture.h"
#include "tosses/tosses.h"

namespace {

using namespace lcp::training;

// The value of a unit that is named or a number; NaN for anything else.
double unit_of(const std::string& text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (text == unit.name) return unit.value;
  }
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ptr == text.data() + text.size() && std::isfinite(value) && value > 0 ? value : std::nan("");
}

std::function<std::string(const std::string&)> unit_among(std::span<const Unit> units) {
  return [units](const std::string& text) {
    std::vector<std::string> names = names_of(units);
    names.emplace_back("a number > 0");
    return std::isfinite(unit_of(text, units)) ? "" : listed(names);
  };
}

std::function<std::string(const std::vector<std::string>&)> names_or_none(std::size_t count) {
  return [count](const std::vector<std::string>& names) {
    const bool none = names.size() == 1 && names.front() == "none";
    return names.size() == count || none ? "" : std::to_string(count) + " names of columns, or none";
  };
}

std::function<std::string(const std::vector<std::string>&)> names(std::size_t count) {
  return [count](const std::vector<std::string>& x) {
    return x.size() == count ? "" : std::to_string(count) + " names of columns";
  };
}

// What the first files tell, and then all that contradicts the flags or is odd.
void print(const CaptureChecks& checks, const std::vector<Capture>& captures) {
  constexpr std::size_t kMost = 20;
  constexpr const char* kShown[][2] = {{"samples", "samples"},
                                       {"in flight", "flight_samples"},
                                       {"gravity m/s^2", "gravity"},
                                       {"+- m/s^2", "gravity_standard_error"},
                                       {"lowest centre m", "lowest_centre"},
                                       {"rotation rad/s", "turning"},
                                       {"off rad/s", "angular_velocity_residual"},
                                       {"at best", "angular_velocity_least_residual"}};
  const auto row = [&](const std::string& name, const auto& field) {
    std::string text = padded(name, 20);
    for (const auto& [title, column] : kShown) text += padded(field(title, column), std::string(title).size() + 2);
    std::cout << text << "\n";
  };
  row("file", [](const char* title, const char*) { return std::string(title); });
  for (std::size_t n = 0; n < std::min(captures.size(), kMost); ++n) {
    row(captures[n].name, [&](const char*, const char* column) {
      const double x = checks.files.has(column) ? checks.files[column][n] : std::nan("");
      return std::isnan(x) ? "-" : short_number(x);
    });
  }
  if (captures.size() > kMost) std::cout << "and " << captures.size() - kMost << " more, see checks.csv\n";
  for (const std::string& text : checks.contradictions) std::cout << "wrong: " << text << "\n";
  for (const std::string& text : checks.notes) std::cout << "note: " << text << "\n";
  std::cout << std::flush;
}

int convert_tosses(int argc, const char* const* argv) {
  CommandLine line("convert_tosses",
                   "Converts recorded motion of a tossed body, such as motion capture writes, into the files that\n"
                   "evaluate_tosses reads: a CSV file for each toss, in m, s and rad, z upward from the ground. It\n"
                   "checks the flags that say what the numbers mean: in free flight the body must fall with gravity,\n"
                   "and its angular velocity must be the derivative of its quaternions. Where the data contradict a\n"
                   "flag, it says which one would be right, and converts nothing unless --force is given.");
  RunFlags run;
  std::filesystem::path data;
  CaptureColumns columns;
  Conventions conventions;
  std::string length = "m", time = "s", reading[kReadingBits];
  std::vector<double> center = {0, 0, 0};
  double rate = 0, gravity = 9.81;
  bool force = false;
  run.add_to(line, Precision::kFloat64);
  line.add("data", data, "CSV file of a toss, or a folder of them", nullptr, Role::kFile);
  line.add("time", columns.time, "Column of the times");
  line.add("position", columns.position, "Columns of the tracked point", names(3));
  line.add("quaternion", columns.quaternion, "Columns of the orientation", names(4));
  line.add("velocity", columns.velocity, "Columns of the tracked point's velocity, or none", names_or_none(3));
  line.add("angular-velocity", columns.angular_velocity, "Columns of the angular velocity, or none", names_or_none(3));
  line.add("rate", rate, "Samples per second; 0: from the column of times, which is not read else", nonnegative);
  line.add("time-unit", time, "s, ms, us, or s in a unit of time", unit_among(kTimeUnits));
  line.add("length-unit", length, "m, cm, mm, or m in a unit of length, also of velocities", unit_among(kLengthUnits));
  for (std::size_t bit = 0; bit < kReadingBits; ++bit) {
    const auto& [name, values, help] = kReadingFlags[bit];
    reading[bit] = values[0];
    line.add(name, reading[bit], std::string(help) + ": " + listed({values[0], values[1]}),
             one_of({values[0], values[1]}));
  }
  line.add("up", conventions.up, "The axis that points upward: x, y, z, or --up=-z and so on",
           one_of({kUpAxes.begin(), kUpAxes.end()}));
  line.add("ground-height", conventions.ground, "Height of the ground along that axis, in units of length",
           finite_number);
  line.add("center", center, "From the tracked point to the body's centre, in the body's axes and units of length",
           finite_numbers(3));
  line.add("gravity", gravity, "What free flight must show, m/s^2", positive);
  line.add_switch("force", force, "Convert even where the data contradict the flags");
  line.footer(
      "Example: a file throw.csv of a motion capture system that has mm, y upward, and xyzw,\n"
      "  Frame,Time,X,Y,Z,qx,qy,qz,qw\n"
      "  0,0.000000,12.1,310.4,-40.2,0.1,0.2,0.3,0.927\n"
      "is converted, and then compared with a cube, by\n"
      "  convert_tosses --data throw.csv --time Time --position X Y Z --quaternion qx qy qz qw\n"
      "    --quaternion-order xyzw --length-unit mm --up y --out runs/mine\n"
      "  evaluate_tosses --tosses runs/mine/tosses --length-unit 1 --rate 240\n"
      "Velocities that the file does not have are differences of the neighbouring samples, each component then "
      "replaced\n"
      "by its median over 5 samples (at the ends 3, 1). Samples are not resampled: missing ones are an error.\n"
      "checks.csv has what each file tells, metrics.json what all do: gravity, and how far the angular velocities are\n"
      "from the derivative of the quaternions in each order, direction, frame and unit.");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (data.empty()) throw UsageError("--data is missing: the CSV file of a toss, or a folder of them");
  conventions.length = unit_of(length, kLengthUnits);
  conventions.time = rate > 0 ? 1 : unit_of(time, kTimeUnits);
  conventions.center = {center[0], center[1], center[2]};
  for (std::size_t bit = 0; bit < kReadingBits; ++bit) {
    conventions.reading[bit] = reading[bit] == kReadingFlags[bit].values[1];
  }

  std::vector<Capture> captures;
  std::vector<Table> tosses;
  const bool folder = std::filesystem::is_directory(data);
  for (const auto& path : folder ? files_of_tosses(data, {".csv"}) : std::vector{data}) {
    captures.push_back(read_capture(path, columns, rate));
    const double first = captures.front().rate, other = captures.back().rate;
    if (std::abs(other / first - 1) > 0.01) {
      throw UsageError(path.string() + ": has " + short_number(other / conventions.time, 4) +
                       " samples per second, and the first file " + short_number(first / conventions.time, 4));
    }
    tosses.push_back(converted(captures.back(), conventions));
  }
  CaptureChecks checks = check_captures(captures, tosses, conventions, gravity, rate == 0);
  if (!run.quiet) print(checks, captures);
  if (!checks.contradictions.empty() && !force) {
    std::string text;
    for (const std::string& one : checks.contradictions) text += (text.empty() ? "" : "; ") + one;
    throw UsageError(text + "; --force converts all the same");
  }

  OutputFolder out(line, run);
  for (std::size_t n = 0; n < captures.size(); ++n) out.write_csv("tosses/" + captures[n].name + ".csv", tosses[n]);
  out.write_csv("checks.csv", checks.files);
  checks.metrics["names"] = names_of(captures);
  checks.metrics["velocity_filter"] = "median of 5 differences of neighbouring samples, where the files have none";
  write_results(out, checks.metrics, {"checks.png"});
  if (!run.quiet) {
    std::cout << shell_command({"evaluate_tosses", "--tosses", (out / "tosses").string(), "--length-unit", "1",
                                "--rate", short_number(checks.metrics["rate"], 6)})
              << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { lcp::training::run_program("convert_tosses", convert_tosses, argc, argv); }
