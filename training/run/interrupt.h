// Lets a program finish its current step before a signal ends it.
#pragma once

#include <array>
#include <csignal>

namespace lcp::training {

/// While an Interrupt exists, SIGINT, SIGTERM and SIGHUP are recorded instead of ending the process; a second signal
/// ends it. One that was ignored before stays ignored, as SIGHUP is under nohup and SIGINT in a shell's background
/// jobs.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that was received, or 0.
  int signal() const;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> old_{};  // what each signal did before
};

}  // namespace lcp::training
