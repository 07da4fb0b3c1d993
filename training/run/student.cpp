#include "run/student.h"

#include <unsupported/Eigen/SpecialFunctions>

namespace lcp::training {

// The probability of (-t, t) is the regularised incomplete beta function I_x(1 / 2, nu / 2) of x = t^2 / (nu + t^2).
//   [AS] Abramowitz, Stegun: Handbook of Mathematical Functions, 26.7.1 and 26.5.27.
double student_quantile(double degrees_of_freedom) {
  const double nu = degrees_of_freedom;
  double low = 1, high = 13;  // the quantiles of a normal distribution and of nu = 1, 1.96 and 12.71, are between
  for (double t = (low + high) / 2; low < t && t < high; t = (low + high) / 2) {
    (Eigen::numext::betainc(0.5, nu / 2, t * t / (nu + t * t)) < 0.95 ? low : high) = t;
  }
  return high;
}

}  // namespace lcp::training
