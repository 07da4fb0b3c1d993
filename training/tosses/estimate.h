// Numbers with what is known of their errors.
#pragma once

namespace lcp::training {

/// An estimate and its interval of 95 %.
struct Estimate {
  double value, low, high;
};

}  // namespace lcp::training
