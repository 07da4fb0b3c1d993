#include "run/interrupt.h"

#include <csignal>

namespace lcp::training {
namespace {

volatile std::sig_atomic_t received = 0;

void record(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  old_int_ = std::signal(SIGINT, record);
  old_term_ = std::signal(SIGTERM, record);
  old_hup_ = std::signal(SIGHUP, SIG_IGN);
  if (old_hup_ != SIG_IGN) std::signal(SIGHUP, record);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, old_int_);
  std::signal(SIGTERM, old_term_);
  std::signal(SIGHUP, old_hup_);
}

int Interrupt::signal() const { return received; }

}  // namespace lcp::training
