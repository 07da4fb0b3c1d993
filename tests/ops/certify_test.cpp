#include "lcp/certify.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "lcp/solve.h"
#include "support/errors.h"

namespace lcp {
namespace {

using torch::Tensor;

Tensor matrix(torch::Dtype dtype = torch::kDouble) { return torch::tensor({{2., 1.}, {1., 2.}}, dtype); }
Tensor vectors(torch::Dtype dtype = torch::kDouble) { return torch::tensor({{-2., -1.}, {-1., -1.}, {1., 3.}}, dtype); }

// The solutions of matrix() and vectors() are (1, 0) with a tie, (1/3, 1/3) and (0, 0).
TEST(CertifyTest, MeasuresSolutionsInBothPrecisions) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const double near = dtype == torch::kDouble ? 1e-14 : 1e-6;
    const Tensor M = matrix(dtype), q = vectors(dtype);
    const Certificate certificate = certify(M, q, solve(M, q).z);
    for (const Tensor& x : {certificate.residual, certificate.margin, certificate.condition}) {
      EXPECT_EQ(x.scalar_type(), dtype);
      EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{3}));
    }
    EXPECT_LT(certificate.residual.max().item<double>(), near);
    // No tie, (1/3, 1/3): each z_j is 2/3 of the 2 = |q_i| + sum_j |M_ij z_j|. (0, 0): each w_i is all of s_i.
    EXPECT_TRUE(torch::allclose(certificate.margin, torch::tensor({0., 1. / 3, 1.}, dtype), 0, near));
    EXPECT_TRUE(torch::allclose(certificate.condition, torch::tensor({1., 3., 1.}, dtype), near));
    EXPECT_TRUE(torch::equal(certificate.rank, torch::tensor({1, 2, 0})));
    EXPECT_TRUE(torch::equal(certificate.ties, torch::tensor({{false, true}, {false, false}, {false, false}})));
  }
}

TEST(CertifyTest, MeasuresWhatIsNoSolution) {
  // w = M z + q = (-1, 0), so that min(z, w) is -1 at most.
  const Certificate certificate = certify(torch::eye(2, torch::kDouble), torch::tensor({-2., -1.}, torch::kDouble),
                                          torch::ones({2}, torch::kDouble));
  EXPECT_EQ(certificate.residual.item<double>(), 1);
  EXPECT_EQ(certificate.rank.item<int>(), 2);
}

TEST(CertifyTest, SeesAMatrixThatIsSingularOnTheActiveSet) {
  const Tensor M = torch::ones({2, 2}, torch::kDouble);
  const Certificate certificate = certify(M, -torch::ones({2}, torch::kDouble), torch::full({2}, 0.5, torch::kDouble));
  EXPECT_EQ(certificate.residual.item<double>(), 0);
  EXPECT_EQ(certificate.rank.item<int>(), 1);
  EXPECT_TRUE(std::isinf(certificate.condition.item<double>()));
}

TEST(CertifyTest, TreatsPairsWithinTheToleranceAsTies) {
  const Tensor M = matrix(), q = torch::tensor({-2., -1. + 1e-6}, torch::kDouble);
  const Tensor z = solve(M, q).z;
  EXPECT_FALSE(certify(M, q, z).ties.any().item<bool>());
  EXPECT_TRUE(torch::equal(certify(M, q, z, 1e-3).ties, torch::tensor({false, true})));
}

TEST(CertifyTest, BroadcastsAndTakesEmptyProblems) {
  const Tensor M = matrix().expand({4, 1, 2, 2}), q = vectors();
  const Certificate certificate = certify(M, q, solve(matrix(), q).z);
  EXPECT_EQ(certificate.residual.sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(certificate.ties.sizes(), (std::vector<std::int64_t>{4, 3, 2}));
  const Tensor none = torch::zeros({5, 0}, torch::kDouble);
  const Certificate empty = certify(torch::zeros({0, 0}, torch::kDouble), none, none);
  EXPECT_TRUE(torch::equal(empty.residual, torch::zeros({5}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(empty.condition, torch::ones({5}, torch::kDouble)));
  EXPECT_TRUE(empty.margin.isinf().all().item<bool>());
}

TEST(CertifyTest, IsNaNWhereAnInputIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor z = solve(matrix(), vectors()).z.clone();
  z[1][0] = nan;
  const Certificate certificate = certify(matrix(), vectors(), z);
  for (const Tensor& x : {certificate.residual, certificate.margin, certificate.condition}) {
    EXPECT_TRUE(torch::equal(x.isnan(), torch::tensor({false, true, false})));
  }
  EXPECT_TRUE(torch::equal(certificate.rank, torch::tensor({1, 0, 0})));
  EXPECT_FALSE(certificate.ties[1].any().item<bool>());
}

TEST(CertifyTest, IsNotDifferentiable) {
  const Tensor M = matrix().requires_grad_();
  EXPECT_FALSE(certify(M, vectors(), solve(matrix(), vectors()).z).condition.requires_grad());
}

TEST(CertifyTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor M = matrix(), q = vectors();
  const auto error = [](const auto&... arguments) { return testing::error_of([&] { certify(arguments...); }); };
  EXPECT_EQ(error(q, q, q), "M must be [..., n, n]; got [3, 2]");
  EXPECT_EQ(error(M, q.slice(1, 0, 1), q), "q must be [..., n] with M's n = 2; got [3, 1]");
  EXPECT_EQ(error(M, q, q.slice(1, 0, 1)), "z must be [..., n] with M's n = 2; got [3, 1]");
  EXPECT_EQ(error(M, q, q.to(torch::kFloat)), "z must have M's dtype, Double; got Float");
  EXPECT_EQ(error(M.to(torch::kLong), q, q), "M must be float32 or float64; got Long");
  EXPECT_EQ(error(M, q, q.slice(0, 0, 2)).substr(0, 20), "the batch dimensions");
  EXPECT_EQ(error(M, q, q, -1.0), "tolerance must be finite and > 0; got -1");
}

}  // namespace
}  // namespace lcp
