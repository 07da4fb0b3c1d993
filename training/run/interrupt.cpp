#include "run/interrupt.h"

#include <csignal>

namespace lcp::training {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  old_int_ = std::signal(SIGINT, note);
  old_term_ = std::signal(SIGTERM, note);
  old_hup_ = std::signal(SIGHUP, SIG_IGN);
  if (old_hup_ != SIG_IGN) std::signal(SIGHUP, note);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, old_int_);
  std::signal(SIGTERM, old_term_);
  std::signal(SIGHUP, old_hup_);
}

int Interrupt::signal() const { return noted; }

}  // namespace lcp::training
