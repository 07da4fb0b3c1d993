#include "run/student.h"

#include <gtest/gtest.h>

namespace lcp::training::student_test {

TEST(StudentTest, HasTheQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(1), 12.706204736432095, 1e-8);
  EXPECT_NEAR(student_quantile(2), 4.302652729696142, 1e-9);
  EXPECT_NEAR(student_quantile(5), 2.5705818366147395, 1e-9);
  EXPECT_NEAR(student_quantile(30), 2.0422724563012373, 1e-9);
}

TEST(StudentTest, HasThatOfANormalDistributionInTheLimit) {
  EXPECT_NEAR(student_quantile(1e5), 1.959963984540054 + 2.3722e-5, 1e-8);
}

}  // namespace lcp::training::student_test
