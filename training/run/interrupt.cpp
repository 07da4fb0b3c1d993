#include "run/interrupt.h"

namespace lcp::training {
namespace {

volatile std::sig_atomic_t received = 0;

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction record {};
  record.sa_handler = [](int signal) { received = signal; };
  record.sa_flags = SA_RESTART | SA_RESETHAND;
  for (std::size_t k = 0; k < kSignals.size(); ++k) {
    sigaction(kSignals[k], nullptr, &old_[k]);
    if (old_[k].sa_handler != SIG_IGN) sigaction(kSignals[k], &record, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t k = 0; k < kSignals.size(); ++k) sigaction(kSignals[k], &old_[k], nullptr);
}

int Interrupt::signal() const { return received; }

}  // namespace lcp::training
