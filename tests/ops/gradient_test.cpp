#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lcp/solve.h"
#include "support/finite_differences.h"

namespace lcp {
namespace {

using testing::gradient_error;
using testing::Inputs;
using testing::second_gradient_error;
using torch::Tensor;

constexpr double kTolerance = 1e-7;
constexpr double kSecondTolerance = 1e-5;

Tensor z_and_w(const Inputs& in) {
  const SolveResult result = solve(in[0], in[1]);
  return torch::cat({result.z, result.w}, -1);
}

Tensor vector(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); }

// The traditional sliding block with v = v* and mu m g = limit.
Tensor block_M() { return torch::tensor({{1., -1., 1.}, {-1., 1., 1.}, {-1., -1., 0.}}, torch::kDouble); }
Tensor block_q(double v, double limit) { return vector({v, -v, limit}); }

class GradientTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }

  // Nonsymmetric P-matrices and q without near-ties.
  static Inputs generic(std::vector<std::int64_t> batch, std::int64_t n) {
    auto shape = std::move(batch);
    shape.insert(shape.end(), {n, n});
    const Tensor A = torch::randn(shape, torch::kDouble);
    const Tensor skew = torch::randn(shape, torch::kDouble);
    const Tensor M = torch::matmul(A.mT(), A) + torch::eye(n, torch::kDouble) + (skew - skew.mT());
    shape.pop_back();
    Tensor q = torch::randn(shape, torch::kDouble);
    for (int tries = 0; tries < 1000; ++tries) {
      const SolveResult result = solve(M, q);
      const Tensor near = (torch::maximum(result.z, result.w).amin(-1) < 1e-2).unsqueeze(-1);
      if (!near.any().item<bool>()) break;
      q = torch::where(near, torch::randn(shape, torch::kDouble), q);
    }
    return {M, q};
  }
};

TEST_F(GradientTest, AgreesWithCentralDifferencesForEveryActiveSet) {
  const Inputs in = generic({60}, 3);
  const Tensor active = (solve(in[0], in[1]).z > 0).to(torch::kLong).matmul(torch::tensor({1, 2, 4}));
  EXPECT_EQ(std::get<0>(torch::_unique(active)).numel(), 8);  // all of them are there
  EXPECT_LT(gradient_error(z_and_w, in), kTolerance);
}

// While the block sticks, the two friction variables are tied and not unique. The motion is unique, as a function of
// the parameters of the block.
TEST_F(GradientTest, AgreesOnBothSidesOfStickAndSlide) {
  const auto motion = [](const Inputs& in) {
    const Tensor &v = in[0], &limit = in[1], &c = in[2];
    const Tensor one = torch::ones_like(c);
    const Tensor M =
        torch::stack({torch::stack({c, -c, one}), torch::stack({-c, c, one}), torch::stack({-one, -one, 0 * c})});
    const SolveResult result = solve(M, torch::stack({v, -v, limit}));
    const Tensor friction = result.z[0] - result.z[1];
    return torch::stack({v + c * friction, friction, result.z[2]});
  };
  for (const double v : {-0.8, -0.500001, -0.499999, -0.2, 0.2, 0.499999, 0.500001, 0.8}) {
    const Inputs in = {torch::tensor(v, torch::kDouble), torch::tensor(0.5, torch::kDouble),
                       torch::tensor(1., torch::kDouble)};
    EXPECT_LT(gradient_error(motion, in, 1e-7), 1e-6) << v;
  }
}

TEST_F(GradientTest, SlidesWithTheRightSign) {
  // v_next = v* - (mu m g): a solver that forgets the transpose gets the sign of d v_next / d mu wrong when sliding.
  for (const auto& [v, expected] : {std::pair<double, double>{0.8, -1}, {0.2, 0}, {-0.8, 1}}) {
    const Tensor q = block_q(v, 0.5).requires_grad_();
    const SolveResult result = solve(block_M(), q);
    const Tensor v_next = q[0] + result.z[0] - result.z[1];
    EXPECT_DOUBLE_EQ(torch::autograd::grad({v_next}, {q})[0][2].item<double>(), expected) << v;
  }
}

TEST_F(GradientTest, SumsOverBroadcastDimensions) {
  const Inputs in = generic({2, 3}, 3);
  const Tensor M = in[0][0][0];
  const Tensor& q = in[1];
  for (const Inputs& shapes : {Inputs{M, q}, Inputs{M.view({1, 1, 3, 3}), q}, Inputs{in[0], q[0][0]},
                               Inputs{in[0], q[0].unsqueeze(0)}, Inputs{in[0].slice(1, 0, 1), q.slice(0, 0, 1)}}) {
    EXPECT_LT(gradient_error(z_and_w, shapes), kTolerance);
    EXPECT_LT(second_gradient_error(z_and_w, shapes), kSecondTolerance);
  }
}

TEST_F(GradientTest, AgreesThroughViews) {
  const Inputs in = generic({4}, 3);
  const auto transposed = [](const Inputs& x) { return z_and_w({x[0].mT(), x[1]}); };
  EXPECT_LT(gradient_error(transposed, {in[0].mT().contiguous(), in[1]}), kTolerance);
  const auto narrowed = [](const Inputs& x) { return z_and_w({x[0].slice(-1, 1).slice(-2, 1), x[1].slice(-1, 1)}); };
  EXPECT_LT(gradient_error(narrowed, generic({3}, 4)), kTolerance);
  const auto expanded = [](const Inputs& x) { return z_and_w({x[0].expand({5, 3, 3}), x[1].expand({5, 3})}); };
  EXPECT_LT(gradient_error(expanded, {in[0][0], in[1][0]}), kTolerance);
}

TEST_F(GradientTest, DifferentiatesTwice) {
  EXPECT_LT(second_gradient_error(z_and_w, generic({8}, 3)), kSecondTolerance);
  EXPECT_LT(second_gradient_error(z_and_w, generic({}, 5)), kSecondTolerance);
}

TEST_F(GradientTest, DifferentiatesForward) {
  const Inputs in = generic({6}, 4);
  const Tensor dM = torch::randn_like(in[0]);
  const Tensor dq = torch::randn_like(in[1]);
  const std::uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  const SolveResult dual = solve(at::_make_dual(in[0], dM, 0), at::_make_dual(in[1], dq, 0));
  const Tensor dz = std::get<1>(at::_unpack_dual(dual.z, 0));
  const Tensor dw = std::get<1>(at::_unpack_dual(dual.w, 0));
  const double h = 1e-6;
  const SolveResult plus = solve(in[0] + h * dM, in[1] + h * dq);
  const SolveResult minus = solve(in[0] - h * dM, in[1] - h * dq);
  EXPECT_LT((dz - (plus.z - minus.z) / (2 * h)).abs().max().item<double>(), 1e-6);
  EXPECT_LT((dw - (plus.w - minus.w) / (2 * h)).abs().max().item<double>(), 1e-6);
  torch::autograd::ForwardADLevel::release_idx(level);
}

TEST_F(GradientTest, IsRightInSinglePrecision) {
  const Inputs in = generic({50}, 3);
  Inputs single;
  for (const auto& x : in) single.push_back(x.to(torch::kFloat).requires_grad_());
  Inputs exact;
  for (const auto& x : single) exact.push_back(x.detach().to(torch::kDouble).requires_grad_());
  const auto gradients = [](const Inputs& x) {
    const Tensor y = z_and_w(x);
    return torch::autograd::grad({(y * testing::weights_like(y)).sum()}, x);
  };
  const auto a = gradients(single);
  const auto b = gradients(exact);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(a[k].scalar_type(), torch::kFloat);
    EXPECT_TRUE(torch::allclose(a[k].to(torch::kDouble), b[k], 1e-4, 1e-4));
  }
}

TEST_F(GradientTest, TakesTiesAsInactive) {
  const Tensor M = torch::full({1, 1}, 2., torch::kDouble).requires_grad_();
  const Tensor q = torch::zeros({1}, torch::kDouble).requires_grad_();
  const SolveResult result = solve(M, q);
  EXPECT_EQ(torch::autograd::grad({result.z.sum()}, {q}, {}, true)[0].item<double>(), 0);
  EXPECT_EQ(torch::autograd::grad({result.w.sum()}, {q})[0].item<double>(), 1);
}

TEST_F(GradientTest, GivesAFailingElementZeroOrNaNAndItsNeighboursTheirOwn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor good = vector({-1, -2});
  for (const double bad : {-1.0, nan}) {  // no solution; bad input
    Tensor M = torch::eye(2, torch::kDouble).repeat({3, 1, 1});
    M[1] *= bad;
    M.requires_grad_();
    const Tensor q = good.repeat({3, 1}).requires_grad_();
    const SolveResult result = solve(M, q);
    ASSERT_NE(result.status[1].item<int>(), 0);
    const Tensor alone_M = torch::eye(2, torch::kDouble).requires_grad_();
    const Tensor alone_q = good.clone().requires_grad_();
    const auto alone = torch::autograd::grad({solve(alone_M, alone_q).z.sum()}, {alone_M, alone_q});

    const auto neighbours = torch::autograd::grad({result.z[0].sum() + result.z[2].sum()}, {M, q}, {}, true);
    for (const int k : {0, 2}) {
      EXPECT_TRUE(torch::equal(neighbours[0][k], alone[0]));
      EXPECT_TRUE(torch::equal(neighbours[1][k], alone[1]));
    }
    EXPECT_TRUE((neighbours[0][1] == 0).all().item<bool>());
    EXPECT_TRUE((neighbours[1][1] == 0).all().item<bool>());

    const auto all = torch::autograd::grad({result.w.sum()}, {M, q});
    EXPECT_TRUE(all[0][1].isnan().all().item<bool>());
    EXPECT_TRUE(all[1][1].isnan().all().item<bool>());
    EXPECT_FALSE(all[0][0].isnan().any().item<bool>());
  }
}

TEST_F(GradientTest, GivesTheSameBitsForEveryThreadCount) {
  const Tensor M = (generic({}, 3)[0]).requires_grad_();
  const Tensor q = torch::randn({70000, 3}, torch::kDouble).requires_grad_();
  const Tensor shared_q = torch::randn({3}, torch::kDouble).requires_grad_();
  const Tensor many = (M.detach() + torch::rand({70000, 1, 1}, torch::kDouble)).requires_grad_();
  std::vector<Tensor> expected;
  for (const int threads : {1, 2, 3}) {
    torch::set_num_threads(threads);
    auto gradients = torch::autograd::grad({solve(M, q).z.sum()}, {M, q});
    const auto shared = torch::autograd::grad({solve(many, shared_q).z.sum()}, {many, shared_q});
    gradients.insert(gradients.end(), shared.begin(), shared.end());
    if (expected.empty()) expected = gradients;
    for (std::size_t k = 0; k < gradients.size(); ++k) EXPECT_TRUE(torch::equal(gradients[k], expected[k]));
  }
  torch::set_num_threads(1);
}

TEST_F(GradientTest, UsesTheMinimumNormAdjointOfASingularActiveSet) {
  // Two copies of one contact share its force. At z = (1/2, 1/2) both are active and M_aa has rank one; the least-norm
  // change of their forces is an equal share.
  static const auto adjoint = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("lcp::_adjoint", "")
                                  .typed<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool,
                                                const std::optional<Tensor>&)>();
  const Tensor both_basic = torch::ones({2}, torch::kChar);
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const Tensor M = torch::ones({2, 2}, dtype);
    const Tensor half = torch::full({2}, 0.5, dtype);
    const Tensor zero = torch::zeros({2}, dtype);
    const Tensor t = adjoint.call(M, both_basic, torch::ones({2}, dtype), zero, false, std::nullopt);
    EXPECT_TRUE(torch::allclose(t, -half, 1e-6, 1e-6)) << t;
    const Tensor one_sided = adjoint.call(M, both_basic, torch::tensor({1., 0.}, dtype), zero, false, std::nullopt);
    EXPECT_TRUE(torch::allclose(one_sided, -half / 2, 1e-6, 1e-6)) << one_sided;
  }
}

TEST_F(GradientTest, TakesAnUnsolvedElementsZeroTangentAsZero) {
  const std::uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  Tensor M = torch::eye(2, torch::kDouble).repeat({2, 1, 1});
  M[0] *= -1;
  for (const bool moves : {false, true}) {
    const Tensor dM = moves ? torch::ones_like(M) : torch::zeros_like(M);
    const SolveResult dual = solve(at::_make_dual(M, dM, 0), -torch::ones({2, 2}, torch::kDouble));
    const Tensor dz = std::get<1>(at::_unpack_dual(dual.z, 0));
    EXPECT_EQ(dz[0].isnan().all().item<bool>(), moves);
    EXPECT_TRUE((dz[1] == (moves ? -2 : 0)).all().item<bool>());
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

TEST_F(GradientTest, RefusesInputsChangedInPlace) {
  Tensor M = torch::eye(2, torch::kDouble).requires_grad_();
  Tensor scaled = M * 1;
  const SolveResult result = solve(scaled, vector({-1, -1}));
  scaled.detach().mul_(2);
  EXPECT_THROW(result.z.sum().backward(), c10::Error);
}

TEST_F(GradientTest, LeavesTheStatusWithoutHistory) {
  const Tensor M = torch::eye(2, torch::kDouble).requires_grad_();
  EXPECT_FALSE(solve(M, vector({-1, -1})).status.requires_grad());
}

}  // namespace
}  // namespace lcp
