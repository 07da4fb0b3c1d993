#include "identification/system.h"

#include "run/program.h"

namespace lcp::training {
namespace {

constexpr struct {
  const char* name;
  std::unique_ptr<TrackSystem> (*make)();
} kKinds[] = {{"particle", make_particles}, {"tripod", make_tripods}};

}  // namespace

SystemFlag::SystemFlag(int argc, const char* const* argv) : name_(early_value(argc, argv, "system", kKinds[0].name)) {
  for (const auto& kind : kKinds) {
    if (kind.name == name_) system_ = kind.make();
  }
  if (!system_) throw UsageError("--system must be " + listed(names_of(kKinds)) + "; got \"" + name_ + "\"");
}

void SystemFlag::add_to(CommandLine& line) {
  line.add("system", name_,
           "What moves: " + listed(names_of(kKinds)) +
               " (particles that fall and slide, blocks that slide and turn on three supports). The "
               "other flags and their defaults depend on it");
}

}  // namespace lcp::training
