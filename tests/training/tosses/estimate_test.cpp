#include "tosses/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace lcp::training::estimate_test {

// From the tables of Student's distribution.
TEST(EstimateTest, QuantilesOfStudent) {
  EXPECT_TRUE(std::isinf(student_95(0)));
  for (const auto& [freedom, quantile] : {std::pair(1, 12.706), {2, 4.303}, {7, 2.365}, {30, 2.042}, {1000, 1.962}}) {
    EXPECT_NEAR(student_95(freedom), quantile, 5e-4 * quantile) << freedom;
  }
}

TEST(EstimateTest, FewGroupsWidenAnInterval) {
  EXPECT_TRUE(std::isinf(half_width_95(5, 5)));
  EXPECT_NEAR(half_width_95(7, 5), student_95(2) * std::sqrt(7. / 2), 1e-12);
  EXPECT_NEAR(half_width_95(100000, 5), 1.96, 1e-3);
}

}  // namespace lcp::training::estimate_test
