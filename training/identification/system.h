// The bodies that the identification programs follow, chosen by --system.
#pragma once

#include <memory>
#include <string>

#include "identification/track_model.h"
#include "run/command_line.h"

namespace lcp::training {

/// The flag --system of a program whose other flags depend on it.
class SystemFlag {
 public:
  /// Reads it from a command line that has not been parsed yet. Throws a UsageError for an unknown name.
  SystemFlag(int argc, const char* const* argv);
  void add_to(CommandLine& line);
  TrackSystem& system() { return *system_; }

 private:
  std::string name_;
  std::unique_ptr<TrackSystem> system_;
};

}  // namespace lcp::training
