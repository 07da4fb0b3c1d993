#include "tosses/data.h"

#include <cmath>

#include "run/program.h"
#include "tosses/simulated.h"

namespace lcp::training {

void TossData::add_to(CommandLine& line) {
  line.add("tosses", folder, "Folder of recorded tosses, .pt or .csv; without it tosses are simulated", nullptr,
           Role::kFolder);
  line.add("simulated", simulated, "Number of tosses that are simulated without --tosses", at_least_two);
  line.add("length-unit", length, kLengthUnitHelp, nonnegative);
  line.add("rate", rate, "Samples per second", positive);
}

void TossData::exclude_unused(const CommandLine& line) const {
  if (folder.empty()) {
    line.exclude({"length-unit"}, "tosses that are simulated");
  } else {
    line.exclude({"simulated", "gravity", "drag"}, "--tosses");
  }
}

void TossData::check_units(double gravity) const {
  constexpr double kGravity = 9.81, kFarFromIt = 0.1;
  if (folder.empty() || std::abs(gravity / kGravity - 1) <= kFarFromIt) return;
  throw UsageError("the tosses of " + folder.string() + " fall with " + short_number(gravity) +
                   " m/s^2: --length-unit or --rate is wrong, or they are no motion under gravity");
}

std::vector<Toss> TossData::load(const Cube& cube, const CubeContact& contact, std::int64_t seed) const {
  return folder.empty() ? simulate_tosses(cube, contact, {.count = simulated, .rate = rate}, seed)
                        : read_tosses(folder, length);
}

}  // namespace lcp::training
