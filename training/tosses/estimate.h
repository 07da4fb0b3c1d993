// Numbers with what is known of their errors.
#pragma once

#include <cstdint>

namespace lcp::training {

/// An estimate and its interval of 95 %.
struct Estimate {
  double value, low, high;
};

/// How many standard deviations an interval of 95 % reaches to each side, where these are estimated with so many
/// degrees of freedom: the quantile .975 of Student's distribution, infinity without any.
double student_95(std::int64_t degrees_of_freedom);

/// The same for the standard deviations of `parameters` least-squares estimates from the squared slopes of independent
/// groups of samples, whose squares are too small by the factor (n - p) / n where there are few groups.
double half_width_95(std::int64_t groups, std::int64_t parameters);

}  // namespace lcp::training
