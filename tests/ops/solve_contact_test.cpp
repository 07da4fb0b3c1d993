#include "lcp/solve_contact.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <string>
#include <vector>

#include "lcp/add_equality.h"
#include "lcp/certify_contact.h"
#include "lcp/contact_dual.h"
#include "lcp/contact_parameters.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp {
namespace {

using testing::everywhere;
using testing::Inputs;
using testing::largest;
using torch::Tensor;

enum class Region { kNone, kSlide, kStick };

// The arguments A, v_free, J, v_hat, R, mu of a problem whose contacts are in chosen regions, and its solution.
struct ConstructedProblem {
  Inputs inputs;
  Tensor v, gamma;

  ContactResult solve(const ContactOptions& options = {}) const { return solve_these(inputs, options); }
  static ContactResult solve_these(const Inputs& x, const ContactOptions& options = {}) {
    return solve_contact(x[0], x[1], x[2], x[3], x[4], x[5], options);
  }
};

class SolveContactTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(2); }

  static ConstructedProblem make(const std::vector<Region>& regions, std::int64_t batch, std::int64_t n = 4) {
    const auto c = static_cast<std::int64_t>(regions.size());
    const auto random = [&](std::initializer_list<std::int64_t> shape) { return torch::randn(shape, torch::kDouble); };
    const Tensor B = random({batch, n, n}), v = random({batch, n}), J = random({batch, 3 * c, n});
    const Tensor A = torch::matmul(B, B.mT()) / n + torch::eye(n, torch::kDouble);
    const Tensor mu = 0.3 + 0.5 * torch::rand({batch, c}, torch::kDouble);
    std::vector<Tensor> R, y, gamma;
    for (std::int64_t k = 0; k < c; ++k) {
      const Tensor tangent = 0.02 + 0.05 * torch::rand({batch}, torch::kDouble);
      const Tensor normal = 0.02 + 0.05 * torch::rand({batch}, torch::kDouble);
      const Tensor turn = random({batch}), mu_k = mu.select(1, k), ratio = tangent / normal, zero = turn * 0;
      Tensor slip = mu_k * 0.3, height = zero + 2;
      if (regions[k] == Region::kSlide) slip = mu_k * 3, height = zero + 0.2;
      if (regions[k] == Region::kNone) height = -1 - mu_k * ratio * slip;
      const Tensor direction = torch::stack({turn.cos(), turn.sin()}, -1);
      const Tensor slides = (height + mu_k * ratio * slip) / (1 + mu_k * mu_k * ratio);
      Tensor force = regions[k] == Region::kSlide ? mu_k * slides : slip, normal_force = height;
      if (regions[k] == Region::kSlide) normal_force = slides;
      if (regions[k] == Region::kNone) force = normal_force = zero;
      R.push_back(torch::stack({tangent, tangent, normal}, -1));
      y.push_back(torch::cat({slip.unsqueeze(-1) * direction, height.unsqueeze(-1)}, -1));
      gamma.push_back(torch::cat({force.unsqueeze(-1) * direction, normal_force.unsqueeze(-1)}, -1));
    }
    const auto joined = [&](const std::vector<Tensor>& x) {
      return x.empty() ? torch::zeros({batch, 0}, torch::kDouble) : torch::cat(x, -1);
    };
    const auto times = [](const Tensor& M, const Tensor& x) { return torch::matmul(M, x.unsqueeze(-1)).squeeze(-1); };
    const Tensor v_hat = times(J, v) + joined(R) * joined(y);
    const Tensor v_free = v - torch::linalg_solve(A, times(J.mT(), joined(gamma)));
    return {{A, v_free, J, v_hat, joined(R), mu}, v, joined(gamma)};
  }
};

constexpr auto kAll = {Region::kNone, Region::kSlide, Region::kStick};

TEST_F(SolveContactTest, FindsTheSolution) {
  for (const auto& regions : {std::vector<Region>{}, {Region::kStick}, {kAll}}) {
    const ConstructedProblem made = make(regions, 50);
    const ContactResult result = made.solve();
    EXPECT_TRUE(everywhere(result.status == 0));
    EXPECT_LE(largest(result.v - made.v), 1e-9);
    EXPECT_TRUE(torch::allclose(result.gamma, made.gamma, 1e-8, 1e-8));
    EXPECT_EQ(result.gamma.sizes(), made.gamma.sizes());
    const auto certificate = certify_contact(made.inputs[0], made.inputs[1], made.inputs[2], made.inputs[3],
                                             made.inputs[4], made.inputs[5], result.v);
    EXPECT_LE(largest(certificate.residual), 1e-10);
    EXPECT_TRUE(everywhere(certificate.margin > 1e-3));
    EXPECT_TRUE(everywhere(certificate.condition >= 1));
  }
}

TEST_F(SolveContactTest, HasTheDerivativesOfDifferencesInEachRegion) {
  const auto value = [](const Inputs& x) {
    ContactOptions exact;
    exact.tolerance = 1e-15;
    const ContactResult result = ConstructedProblem::solve_these(x, exact);
    return torch::cat({result.v, result.gamma}, -1);
  };
  for (const auto& regions : {std::vector<Region>{}, {Region::kNone}, {Region::kSlide}, {Region::kStick}, {kAll}}) {
    const ConstructedProblem made = make(regions, 2, 3);
    EXPECT_LE(testing::gradient_error(value, made.inputs), 1e-6);
    EXPECT_LE(testing::second_gradient_error(value, made.inputs), 1e-5);
  }
}

TEST_F(SolveContactTest, BroadcastsSharedArguments) {
  const ConstructedProblem made = make(kAll, 5);
  Inputs shared;
  for (const Tensor& x : made.inputs) shared.push_back(x[0]);
  shared[1] = made.inputs[1];  // v_free
  Inputs copied;
  for (std::size_t k = 0; k < shared.size(); ++k) copied.push_back(shared[k].expand_as(made.inputs[k]).contiguous());
  const ContactResult one = ConstructedProblem::solve_these(shared), other = ConstructedProblem::solve_these(copied);
  EXPECT_TRUE(everywhere(one.v == other.v));
  EXPECT_TRUE(everywhere(one.iterations == other.iterations));
  for (Inputs* inputs : {&shared, &copied}) {
    for (Tensor& x : *inputs) x = x.clone().requires_grad_();
  }
  const auto gradients = [](const Inputs& x) {
    const ContactResult result = ConstructedProblem::solve_these(x);
    return torch::autograd::grad({result.v.square().sum() + result.gamma.square().sum()}, x);
  };
  const auto sums = gradients(shared), each = gradients(copied);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const Tensor expected = k == 1 ? each[k] : each[k].sum(0);
    EXPECT_LE(largest(sums[k] - expected), 1e-12 * largest(expected)) << k;
  }
}

TEST_F(SolveContactTest, SaysWhatItCannotDo) {
  const ConstructedProblem made = make(kAll, 3);
  ContactOptions few;
  few.max_iterations = 0;
  EXPECT_TRUE(everywhere(made.solve(few).status == static_cast<int>(Status::kPivotLimit)));
  Inputs bad = made.inputs;
  bad[0] = bad[0].clone();
  bad[0][1][0][0] = std::numeric_limits<double>::quiet_NaN();
  const ContactResult result = ConstructedProblem::solve_these(bad);
  EXPECT_EQ(result.status[1].item<int>(), static_cast<int>(Status::kBadInput));
  EXPECT_TRUE(everywhere(result.v[1].isnan() & result.gamma[1].isnan().all()));
  EXPECT_TRUE(everywhere(result.v[0] == made.solve().v[0]));
}

TEST_F(SolveContactTest, RefusesWhatDoesNotFit) {
  const ConstructedProblem made = make(kAll, 3);
  const auto error_with = [&](std::size_t k, const Tensor& x) {
    Inputs inputs = made.inputs;
    inputs[k] = x;
    return testing::error_of([&] { ConstructedProblem::solve_these(inputs); });
  };
  EXPECT_NE(error_with(5, torch::ones({4}, torch::kDouble)).find("mu must be [..., c] with J's c = 3"),
            std::string::npos);
  EXPECT_NE(error_with(2, torch::ones({9, 4})).find("J must have A's dtype"), std::string::npos);
}

TEST_F(SolveContactTest, TakesSpringsAndJoints) {
  // A unit mass on a spring, without friction, held to x = .1 t by a joint.
  const Tensor A = torch::eye(3, torch::kDouble), v_free = testing::numbers({0, 0, -0.1});
  const Tensor w = delassus_diagonal(A, A);
  EXPECT_EQ(w.item<double>(), 1);
  const auto [v_hat, R] =
      contact_parameters(testing::numbers({-1e-4}), testing::numbers({1e3}), testing::numbers({0}), w, 0.01);
  const auto [held_A, held_v] =
      add_equality(A, v_free, A.slice(0, 0, 1), testing::numbers({0.1}), testing::numbers({1e-7}));
  const ContactResult result = solve_contact(held_A, held_v, A, v_hat, R, testing::numbers({0}));
  EXPECT_EQ(result.status.item<int>(), 0);
  EXPECT_NEAR(result.v[0].item<double>(), 0.1, 1e-6);
  const Tensor joint = equality_impulses(A.slice(0, 0, 1), testing::numbers({0.1}), testing::numbers({1e-7}), result.v);
  EXPECT_NEAR(joint[0].item<double>(), (A[0][0] * (result.v[0] - v_free[0])).item<double>(), 1e-6);
  const auto [H, r] = contact_dual(held_A, held_v, A, v_hat, R);
  EXPECT_NEAR((H.matmul(result.gamma) + r)[2].item<double>(), 0, 1e-9);  // the contact carries an impulse
  const double v_n = result.v[2].item<double>();
  EXPECT_NEAR(result.gamma[2].item<double>(), 0.01 * 1e3 * (1e-4 - 0.01 * v_n), 1e-9);
}

}  // namespace
}  // namespace lcp
