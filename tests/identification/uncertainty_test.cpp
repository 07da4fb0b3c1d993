#include "lcp/identification/uncertainty.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "lcp/learning/identifiability.h"
#include "support/tensors.h"

namespace lcp::identification {
namespace {

using testing::everywhere;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;

TEST(UncertaintyTest, IsTheInverseOfTheHessian) {
  torch::manual_seed(1);
  const Tensor J = torch::randn({5, 30, 3}, torch::kDouble) * numbers({1, 1e-4, 1e3});
  const Tensor noise = 0.1 + torch::rand({5}, torch::kDouble);
  const Uncertainty found = uncertainty(J, noise);
  const Tensor expected = noise.square().view({5, 1, 1}) * torch::matmul(J.mT(), J).inverse();
  EXPECT_LT(largest(found.covariance / expected - 1), 1e-6);
  EXPECT_LT(largest(found.std - torch::diagonal(expected, 0, -2, -1).sqrt()) / largest(found.std), 1e-9);
  EXPECT_TRUE(everywhere(found.rank == 3));
  EXPECT_EQ(largest(found.null_space), 0);
}

// The scatter of the estimates of a straight line agrees with the covariance.
TEST(UncertaintyTest, IsTheSpreadOfEstimates) {
  torch::manual_seed(2);
  const Tensor t = torch::linspace(-1, 2, 12, torch::kDouble);
  const Tensor J = torch::stack({torch::ones_like(t), t}, -1);
  const Tensor errors = 0.3 * torch::randn({20'000, 12, 1}, torch::kDouble);
  const Tensor estimates = torch::matmul(torch::matmul(torch::matmul(J.t(), J).inverse(), J.t()), errors).squeeze(-1);
  const Uncertainty found = uncertainty(J.unsqueeze(0), number(0.3));
  EXPECT_LT(largest(estimates.std(0) / found.std[0] - 1), 0.03);
}

TEST(UncertaintyTest, SaysWhatIsNotDetermined) {
  // The first and third parameters are seen by their sum alone, the fourth not at all.
  const Tensor J = numbers({1, 0, 1, 0, 0, 2, 0, 0, 1, 1, 1, 0}).view({1, 3, 4});
  const Uncertainty found = uncertainty(J, number(1));
  EXPECT_EQ(found.rank.item<std::int64_t>(), 2);
  EXPECT_TRUE(torch::equal(found.std[0].isinf(), torch::tensor({true, false, true, true})));
  EXPECT_NEAR(found.std[0][1].item<double>(), std::sqrt(2. / 9), 1e-14);
  const Tensor free = found.null_space[0].slice(0, 0, 2);
  EXPECT_LT(largest(torch::matmul(J[0], free.t())), 1e-14);
  EXPECT_LT(largest(torch::matmul(free, free.t()) - torch::eye(2, torch::kDouble)), 1e-14);
  EXPECT_EQ(largest(found.null_space[0].slice(0, 2)), 0);

  const Uncertainty few = uncertainty(numbers({1, 2}).view({1, 1, 2}), number(1));  // one residual
  EXPECT_EQ(few.rank.item<std::int64_t>(), 1);
  EXPECT_TRUE(everywhere(few.std.isinf()));
  const Uncertainty nothing = uncertainty(torch::zeros({1, 4, 2}, torch::kDouble), number(1));
  EXPECT_EQ(nothing.rank.item<std::int64_t>(), 0);
  EXPECT_TRUE(everywhere(nothing.std.isinf()));
}

// On both sides of the rank tolerance, with columns of other units.
TEST(UncertaintyTest, HasTheRankOfIdentifiability) {
  torch::manual_seed(3);
  for (const double independent : {1., 1e-8, 1e-9, 1e-11, 1e-12, 0.}) {
    Tensor J = torch::randn({30, 4}, torch::kDouble);
    J.select(1, 3).mul_(independent).add_(J.select(1, 0) - J.select(1, 1));
    J.mul_(numbers({1, 1e3, 1e-5, 1}));
    const learning::Identifiability expected = learning::identifiability(J);
    const Uncertainty found = uncertainty(J.unsqueeze(0), number(1));
    EXPECT_EQ(found.rank.item<std::int64_t>(), expected.rank) << independent;
    EXPECT_EQ(expected.rank, independent > 1e-10 ? 4 : 3);
  }
}

}  // namespace
}  // namespace lcp::identification
