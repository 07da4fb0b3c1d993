// Lets a program finish its current step before a signal ends it.
#pragma once

namespace lcp::training {

/// While an Interrupt exists, SIGINT, SIGTERM and SIGHUP are recorded instead of ending the process; a second signal
/// ends it. SIGHUP stays ignored where it was ignored before, as under nohup.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that was received, or 0.
  int signal() const;

 private:
  void (*old_int_)(int);
  void (*old_term_)(int);
  void (*old_hup_)(int);
};

}  // namespace lcp::training
