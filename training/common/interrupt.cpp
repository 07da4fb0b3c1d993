#include "common/interrupt.h"

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
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int Interrupt::signal() const { return noted; }

}  // namespace lcp::training
