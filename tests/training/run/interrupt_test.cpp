#include "run/interrupt.h"

#include <gtest/gtest.h>

namespace lcp::training::interrupt_test {

TEST(InterruptTest, RecordsASignalOnce) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, SIG_DFL);
    {
      const Interrupt interrupt;
      EXPECT_EQ(interrupt.signal(), 0);
      std::raise(signal);
      EXPECT_EQ(interrupt.signal(), signal);
      struct sigaction second {};
      sigaction(signal, nullptr, &second);
      EXPECT_EQ(second.sa_handler, SIG_DFL);  // a second one ends the process
    }
  }
}

TEST(InterruptTest, LeavesAnIgnoredSignalIgnored) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, SIG_IGN);
    {
      const Interrupt interrupt;
      std::raise(signal);
      EXPECT_EQ(interrupt.signal(), 0);
    }
    EXPECT_EQ(std::signal(signal, SIG_DFL), SIG_IGN);
  }
}

}  // namespace lcp::training::interrupt_test
