#include "lcp/directional_derivative.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "lcp/solve.h"
#include "lcp/status.h"
#include "support/errors.h"

namespace lcp {
namespace {

using torch::Tensor;

Tensor definite_matrix(torch::Dtype dtype = torch::kDouble) { return torch::tensor({{2., 1.}, {1., 2.}}, dtype); }
Tensor vector(double a, double b, torch::Dtype dtype = torch::kDouble) { return torch::tensor({a, b}, dtype); }

// At q = (-2, -1) the second pair is tied.
TEST(DirectionalDerivativeTest, IsThatOfEachSideAtATieInBothPrecisions) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const Tensor M = definite_matrix(dtype), q = vector(-2, -1, dtype), z = solve(M, q).z;
    const auto along = [&](double a, double b) {
      return directional_derivative(M, q, z, torch::zeros_like(M), vector(a, b, dtype));
    };
    // The second variable enters: dz = -M^-1 dq. Or it stays out, and its w moves: dz_1 = -dq_1 / 2.
    const DirectionalDerivative enters = along(1, -1), stays = along(-1, 1);
    EXPECT_EQ(enters.dz.scalar_type(), dtype);
    EXPECT_TRUE(torch::allclose(enters.dz, vector(-1, 1, dtype)));
    EXPECT_TRUE(torch::allclose(enters.dw, vector(0, 0, dtype)));
    EXPECT_TRUE(torch::allclose(stays.dz, vector(0.5, 0, dtype)));
    EXPECT_TRUE(torch::allclose(stays.dw, vector(0, 1.5, dtype)));
    EXPECT_EQ(enters.status.item<int>(), 0);
  }
}

TEST(DirectionalDerivativeTest, IsTheLimitOfDifferences) {
  torch::manual_seed(3);
  const Tensor A = torch::randn({20, 4, 4}, torch::kDouble);
  const Tensor M = torch::matmul(A.mT(), A) + torch::eye(4, torch::kDouble), q = torch::randn({20, 4}, torch::kDouble);
  const Tensor dM = torch::randn({20, 4, 4}, torch::kDouble), dq = torch::randn({20, 4}, torch::kDouble);
  const SolveResult here = solve(M, q), there = solve(M + 1e-7 * dM, q + 1e-7 * dq);
  const DirectionalDerivative d = directional_derivative(M, q, here.z, dM, dq);
  EXPECT_TRUE(torch::allclose(d.dz, (there.z - here.z) / 1e-7, 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(d.dw, (there.w - here.w) / 1e-7, 1e-5, 1e-5));
}

TEST(DirectionalDerivativeTest, IsThatOfAutogradWithoutTies) {
  const Tensor M = definite_matrix().requires_grad_(), q = vector(-2, 3).requires_grad_(), z = solve(M, q).z;
  const auto gradients = torch::autograd::grad({z[0]}, {M, q});
  const Tensor dM = torch::tensor({{0.3, -1.}, {2., 0.7}}, torch::kDouble), dq = vector(0.4, -0.9);
  const DirectionalDerivative d = directional_derivative(M.detach(), q.detach(), z.detach(), dM, dq);
  const double expected = ((gradients[0] * dM).sum() + (gradients[1] * dq).sum()).item<double>();
  EXPECT_NEAR(d.dz[0].item<double>(), expected, 1e-14);
}

TEST(DirectionalDerivativeTest, BroadcastsAndSaysWhatBecameOfEachElement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor dq = torch::tensor({{1., -1.}, {nan, 0.}, {-1., 1.}}, torch::kDouble);
  const DirectionalDerivative d = directional_derivative(definite_matrix().expand({2, 1, 2, 2}), vector(-2, -1),
                                                         vector(1, 0), torch::zeros({2, 2}, torch::kDouble), dq);
  EXPECT_EQ(d.dz.sizes(), (std::vector<std::int64_t>{2, 3, 2}));
  EXPECT_EQ(d.dw.sizes(), (std::vector<std::int64_t>{2, 3, 2}));
  EXPECT_TRUE(torch::equal(d.status[0], torch::tensor({0, 4, 0}, torch::kChar)));
  EXPECT_TRUE(d.dz[1][1].isnan().all().item<bool>());
  // A tie of M = 0 whose w would have to fall below 0.
  const Tensor zero = torch::zeros({1, 1}, torch::kDouble), none = torch::zeros({1}, torch::kDouble);
  const DirectionalDerivative impossible = directional_derivative(zero, none, none, zero, none - 1);
  EXPECT_EQ(impossible.status.item<int>(), static_cast<int>(Status::kInfeasible));
  EXPECT_TRUE(impossible.dz.isnan().item<bool>() && impossible.dw.isnan().item<bool>());
}

TEST(DirectionalDerivativeTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor M = definite_matrix(), q = vector(-2, -1);
  const auto error = [](const auto&... arguments) {
    return testing::error_of([&] { directional_derivative(arguments...); });
  };
  EXPECT_EQ(error(q, q, q, M, q), "M must be [..., n, n]; got [2]");
  EXPECT_EQ(error(M, q, q, q, q), "dM must be [..., n, n] with M's n = 2; got [2]");
  EXPECT_EQ(error(M, q, q, torch::eye(3, torch::kDouble), q), "dM must be [..., n, n] with M's n = 2; got [3, 3]");
  EXPECT_EQ(error(M, q, q, M, q.slice(0, 0, 1)), "dq must be [..., n] with M's n = 2; got [1]");
  EXPECT_EQ(error(M, q, q.to(torch::kFloat), M, q), "z must have M's dtype, Double; got Float");
}

TEST(GradientRadiusTest, EndsWhereTheActiveSetChanges) {
  const Tensor M = definite_matrix(), q = vector(-2, 3), z = solve(M, q).z;
  EXPECT_NEAR(gradient_radius(M, q, z, vector(0, -1)).item<double>(), 4, 1e-14);
  EXPECT_TRUE(std::isinf(gradient_radius(M, q, z, vector(0, 1)).item<double>()));
  EXPECT_TRUE(std::isnan(gradient_radius(M, q, z * std::nan(""), vector(0, 1)).item<double>()));
  EXPECT_EQ(gradient_radius(M, q, z, torch::ones({5, 2}, torch::kDouble)).sizes(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(testing::error_of([&] { gradient_radius(M, q, z, M[0][0]); }),
            "dq must be [..., n] with M's n = 2; got []");
}

}  // namespace
}  // namespace lcp
