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
  Interrupt() {
    received_ = 0;
    struct sigaction record {};
    record.sa_handler = [](int signal) { received_ = signal; };
    record.sa_flags = SA_RESTART | SA_RESETHAND;
    for (std::size_t k = 0; k < kSignals.size(); ++k) {
      sigaction(kSignals[k], nullptr, &old_[k]);
      if (old_[k].sa_handler != SIG_IGN) sigaction(kSignals[k], &record, nullptr);
    }
  }
  ~Interrupt() {
    for (std::size_t k = 0; k < kSignals.size(); ++k) sigaction(kSignals[k], &old_[k], nullptr);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that was received, or 0.
  int signal() const { return received_; }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  inline static volatile std::sig_atomic_t received_ = 0;

  std::array<struct sigaction, kSignals.size()> old_{};  // what each signal did before
};

}  // namespace lcp::training
