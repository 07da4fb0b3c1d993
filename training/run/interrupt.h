// Signals that end a program once it has finished its step.
#pragma once

namespace lcp::training {

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process; a second one ends it. SIGHUP
/// stays ignored where it was, as under nohup.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that came, or 0.
  int signal() const;

 private:
  void (*old_int_)(int);
  void (*old_term_)(int);
  void (*old_hup_)(int);
};

}  // namespace lcp::training
