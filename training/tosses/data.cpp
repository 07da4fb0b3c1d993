#include "tosses/data.h"

#include "tosses/simulated.h"

namespace lcp::training {

void TossData::add_to(CommandLine& line) {
  line.add<std::filesystem::path>("tosses", folder,
                                  "Folder of recorded tosses, .pt or .csv; without it tosses are simulated", nullptr,
                                  Role::kNoEffect);
  line.add<std::int64_t>("simulated", simulated, "Number of tosses that are simulated without --tosses", at_least_two);
  line.add<double>("length-unit", length, "Metres for a unit of length in the files", positive);
  line.add<double>("rate", rate, "Samples per second", positive);
}

std::vector<Toss> TossData::load(const Cube& cube, const CubeContact& contact, std::int64_t seed) const {
  return folder.empty() ? simulate_tosses(cube, contact, {.count = simulated, .rate = rate}, seed)
                        : read_tosses(folder, length);
}

}  // namespace lcp::training
