#include "contact/tensor_cone.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <random>
#include <tuple>

#include "contact/cone.h"

namespace lcp::contact {
namespace {

using Eigen::Vector3d;
using torch::Tensor;

template <int Columns>
Tensor tensor_of(const Eigen::Matrix<double, 3, Columns>& x) {
  Tensor result = torch::empty({3, Columns}, torch::kDouble);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < Columns; ++j) result[i][j] = x(i, j);
  }
  return result.squeeze(-1);
}

double relative_error(const Tensor& x, const Tensor& expected) {
  return ((x - expected).abs().max() / (expected.abs().max() + 1e-300)).item<double>();
}

// The kernel and these formulas are two implementations of one projection.
TEST(TensorConeTest, AgreesWithTheKernel) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1.5);
  std::array<int, 3> seen = {};
  for (int k = 0; k < 600; ++k) {
    const Law law{k % 10 == 0 ? 0 : uniform(random), std::pow(10, normal(random)), std::pow(10, normal(random))};
    Vector3d y(normal(random), normal(random), normal(random));
    if (k % 7 == 0) y.head<2>().setZero();
    const Vector3d g(normal(random), normal(random), normal(random));
    const Projection kernel = project(y, law);
    ++seen[static_cast<std::size_t>(kernel.region)];

    const auto number = [](double x) { return torch::tensor(x, torch::kDouble); };
    const TensorCone cone(tensor_of(y), number(law.tangent), number(law.normal), number(law.mu));
    EXPECT_EQ(cone.sliding.item<bool>(), kernel.region == Region::kSlide) << k;
    EXPECT_EQ(cone.sticking.item<bool>(), kernel.region == Region::kStick) << k;
    EXPECT_LT(relative_error(cone.gamma, tensor_of(kernel.gamma)), 1e-14) << k;
    EXPECT_LT(relative_error(cone.compliance(), tensor_of(projected_compliance(y, kernel, law))), 1e-13) << k;
    const auto [of_tangent, of_normal, of_mu] = cone.change_adjoint(tensor_of(g));
    const Tensor gradient = torch::stack({of_tangent, of_normal, of_mu});
    EXPECT_LT(relative_error(gradient, tensor_of(law_gradient(y, kernel, law, g))), 1e-11) << k;
    // `change` is the transpose: (change of the law)'gradient = g'(change of gamma).
    const Tensor d = tensor_of(Vector3d(normal(random), normal(random), normal(random)));
    const Tensor product = (cone.change(d[0], d[1], d[2]) * tensor_of(g)).sum();
    EXPECT_NEAR((d * gradient).sum().item<double>(), product.item<double>(),
                1e-12 * gradient.abs().sum().item<double>())
        << k;
  }
  for (const int count : seen) EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace lcp::contact
