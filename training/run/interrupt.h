// Ctrl-C that a program can finish its step for.
#pragma once

namespace lcp::training {

/// While it lives, SIGINT and SIGTERM are noted instead of ending the process; a second one ends it.
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
};

}  // namespace lcp::training
