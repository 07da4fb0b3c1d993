#include "lcp/physics/rotation.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::rotation_test {

using testing::Inputs;
using testing::largest;
using testing::numbers;
using torch::Tensor;

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }
Tensor times(const Tensor& M, const Tensor& x) { return torch::matmul(M, x.unsqueeze(-1)).squeeze(-1); }

// A matrix of inertia that no axis of the body is an axis of.
Tensor inertia() { return torch::tensor({{2.0, 0.3, -0.1}, {0.3, 1.0, 0.2}, {-0.1, 0.2, 1.5}}, torch::kDouble); }

class RotationTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

TEST_F(RotationTest, MatricesAreRotationsWhateverTheLengthOfTheQuaternion) {
  const Tensor q = random({200, 4}), R = rotation_matrix(q);
  EXPECT_LE(largest(torch::matmul(R, R.mT()) - torch::eye(3, torch::kDouble)), 1e-14);
  EXPECT_LE(largest(torch::linalg_det(R) - 1), 1e-14);
  EXPECT_LE(largest(rotation_matrix(3 * q) - R), 1e-14);
}

TEST_F(RotationTest, IsTheExponentialOfTheCrossProduct) {
  for (const double angle : {0.0, 1e-9, 1e-3, 1.9, 2.1, 3.0, 7.0}) {
    const Tensor axis = random({3}), theta = angle * axis / axis.norm(), none = torch::zeros({}, torch::kDouble);
    const Tensor x = theta[0], y = theta[1], z = theta[2];
    const Tensor skew = torch::stack({none, -z, y, z, none, -x, -y, x, none}).view({3, 3});
    EXPECT_LE(largest(rotation_matrix(rotation_by(theta)) - torch::matrix_exp(skew)), 1e-14) << angle;
  }
}

TEST_F(RotationTest, TurnsInTheAxesOfTheBody) {
  const Tensor q = random({50, 4}), theta = random({50, 3});
  const Tensor expected = torch::matmul(rotation_matrix(q), rotation_matrix(rotation_by(theta)));
  EXPECT_LE(largest(rotation_matrix(turned(q, theta)) - expected), 1e-14);
  EXPECT_LE(largest(turned(q, theta).norm(2, {-1}) - 1), 1e-15);
}

TEST_F(RotationTest, IsSmoothOnBothSidesOfTheSeries) {
  const auto f = [](const Inputs& x) { return turned(x[0], x[1]); };
  for (const double angle : {0.0, 1e-8, 0.5, 1.999, 2.001, 4.0}) {
    const Inputs inputs = {random({4}), angle * numbers({0.6, 0, 0.8})};
    EXPECT_LE(testing::gradient_error(f, inputs), 1e-8) << angle;
    EXPECT_LE(testing::second_gradient_error(f, inputs, 1e-5), 1e-6) << angle;
  }
}

TEST_F(RotationTest, TheAngleBetweenOrientationsIsThatOfTheTurn) {
  const Tensor q = random({50, 4}), theta = random({50, 3});
  const Tensor there = turned(q / q.norm(2, 1, true), theta), angle = theta.norm(2, {1});
  EXPECT_LE(largest(angle_between(q, there) - at::minimum(angle, 2 * M_PI - angle)), 1e-14);
  EXPECT_LE(largest(angle_between(q, -there) - angle_between(there, q)), 1e-14);  // either sign, and either order
  EXPECT_LE(largest(angle_between(there, there)), 1e-15);
}

TEST_F(RotationTest, ABodyFreeOfTorqueKeepsItsEnergyAndItsMomentum) {
  Tensor omega = numbers({3, -5, 4}), q = numbers({1, 0, 0, 0});
  const auto energy = [&] { return (omega * times(inertia(), omega)).sum().item<double>(); };
  const auto momentum = [&] { return times(rotation_matrix(q), times(inertia(), omega)); };
  const double first_energy = energy();
  const Tensor first = momentum();
  double drift = 0;
  for (int k = 0; k < 1000; ++k) {
    omega = gyroscopic(omega, inertia(), 0.01);
    q = turned(q, 0.01 * omega);
    drift = std::max(drift, (momentum() - first).norm().item<double>());
  }
  EXPECT_NEAR(energy() / first_energy, 1, 1e-12);
  EXPECT_NEAR(momentum().norm().item<double>() / first.norm().item<double>(), 1, 1e-12);
  EXPECT_LE(drift / first.norm().item<double>(), 0.05);  // its direction is kept to the order of the step
}

TEST_F(RotationTest, ASymmetricTopPrecessesAsInClosedForm) {
  // In its axes omega turns about the axis of symmetry at (1 - I_3 / I_1) omega_3, here clockwise.
  const double I_1 = 2, I_3 = 1, omega_3 = 4, rate = (I_3 - I_1) / I_1 * omega_3;
  const Tensor I = torch::diag(numbers({I_1, I_1, I_3}));
  const auto error = [&](std::int64_t steps) {
    Tensor omega = numbers({1, 0, omega_3});
    for (std::int64_t k = 0; k < steps; ++k) omega = gyroscopic(omega, I, 1.0 / static_cast<double>(steps));
    return (omega - numbers({std::cos(rate), std::sin(rate), omega_3})).norm().item<double>();
  };
  EXPECT_LE(error(100), 1e-3);
  EXPECT_NEAR(error(100) / error(200), 4, 0.1);  // of second order
}

TEST_F(RotationTest, TheGyroscopicTermIsDifferentiable) {
  const auto f = [](const Inputs& x) { return gyroscopic(x[0], x[1], 0.1); };
  EXPECT_LE(testing::gradient_error(f, {3 * random({3}), inertia()}), 1e-7);
  EXPECT_LE(testing::second_gradient_error(f, {3 * random({3}), inertia()}, 1e-5), 1e-5);
}

}  // namespace lcp::physics::rotation_test
