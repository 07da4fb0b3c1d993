// Student's distribution.
#pragma once

namespace lcp::training {

/// The t for which (-t, t) holds 95 % of Student's distribution, to nine digits.
///   degrees_of_freedom: from 1 to 1e6.
double student_quantile(double degrees_of_freedom);

}  // namespace lcp::training
