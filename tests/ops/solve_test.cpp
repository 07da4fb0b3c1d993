#include "lcp/solve.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "support/errors.h"
#include "support/problems.h"

namespace lcp {
namespace {

using torch::Tensor;

class SolveTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }

  // Positive definite, [batch..., n, n].
  static Tensor matrices(std::vector<std::int64_t> batch, std::int64_t n, torch::Dtype dtype = torch::kDouble) {
    batch.insert(batch.end(), {n, n});
    const Tensor A = torch::randn(batch, dtype);
    return torch::matmul(A.mT(), A) + torch::eye(n, dtype);
  }

  static void expect_solved(const Tensor& M, const Tensor& q, const SolveResult& result, double tolerance) {
    EXPECT_TRUE((result.status == 0).all().item<bool>());
    const Tensor w = torch::matmul(M, result.z.unsqueeze(-1)).squeeze(-1) + q;
    EXPECT_LE(torch::minimum(result.z, w).abs().max().item<double>(), tolerance * q.abs().max().item<double>());
    EXPECT_LE((w - result.w).abs().max().item<double>(), tolerance * q.abs().max().item<double>());
    EXPECT_TRUE((result.z >= 0).all().item<bool>() && (result.w >= 0).all().item<bool>());
    EXPECT_TRUE((result.z * result.w == 0).all().item<bool>());
  }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && ((a == b) | (a.isnan() & b.isnan())).all().item<bool>();
}

TEST_F(SolveTest, SolvesABatchInBothPrecisions) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const Tensor M = matrices({100}, 5, dtype);
    const Tensor q = torch::randn({100, 5}, dtype);
    const SolveResult result = solve(M, q);
    EXPECT_EQ(result.z.scalar_type(), dtype);
    EXPECT_EQ(result.status.scalar_type(), torch::kChar);
    expect_solved(M, q, result, dtype == torch::kDouble ? 1e-9 : 1e-4);
  }
}

TEST_F(SolveTest, BroadcastsBothArguments) {
  struct Case {
    std::vector<std::int64_t> M, q, result;
  };
  for (const Case& c : {Case{{}, {}, {}}, Case{{4}, {}, {4}}, Case{{}, {4}, {4}}, Case{{2, 1}, {3}, {2, 3}},
                        Case{{1, 3}, {2, 1}, {2, 3}}, Case{{5, 1, 2}, {4, 1}, {5, 4, 2}}}) {
    const Tensor M = matrices(c.M, 3);
    auto shape = c.q;
    shape.push_back(3);
    const Tensor q = torch::randn(shape, torch::kDouble);
    const SolveResult result = solve(M, q);
    EXPECT_EQ(result.status.sizes(), c.result);
    auto vector = c.result;
    vector.push_back(3);
    auto matrix = vector;
    matrix.push_back(3);
    const SolveResult expanded = solve(M.expand(matrix).contiguous(), q.expand(vector).contiguous());
    EXPECT_TRUE(same_bits(result.z, expanded.z) && same_bits(result.w, expanded.w));
  }
}

TEST_F(SolveTest, ReadsAnyStrides) {
  const Tensor M = matrices({6, 2}, 4);
  const Tensor q = torch::randn({6, 2, 4}, torch::kDouble);
  const SolveResult expected = solve(M, q);
  const auto spaced = [](const Tensor& x) {  // each second element of a tensor whose others are NaN
    auto shape = x.sizes().vec();
    shape.back() *= 2;
    Tensor wide = torch::full(shape, std::numeric_limits<double>::quiet_NaN(), x.options());
    Tensor view = wide.slice(-1, 0, shape.back(), 2);
    view.copy_(x);
    return view;
  };
  const auto permuted = [](const Tensor& x) { return x.transpose(0, 1).contiguous().transpose(0, 1); };
  const auto transposed = [](const Tensor& x) { return x.mT().contiguous().mT(); };
  EXPECT_TRUE(same_bits(solve(spaced(M), spaced(q)).z, expected.z));
  EXPECT_TRUE(same_bits(solve(permuted(M), permuted(q)).z, expected.z));
  EXPECT_TRUE(same_bits(solve(transposed(M), q).z, expected.z));
}

TEST_F(SolveTest, TakesEmptyProblemsAndEmptyBatches) {
  const auto zeros = [](const std::vector<std::int64_t>& shape) { return torch::zeros(shape, torch::kDouble); };
  EXPECT_EQ(solve(zeros({0, 3, 3}), zeros({0, 3})).z.sizes(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(solve(zeros({3, 3}), zeros({2, 0, 3})).status.sizes(), (std::vector<std::int64_t>{2, 0}));
  const SolveResult empty = solve(zeros({4, 0, 0}), zeros({0}));
  EXPECT_EQ(empty.z.sizes(), (std::vector<std::int64_t>{4, 0}));
  EXPECT_TRUE((empty.status == 0).all().item<bool>());
}

TEST_F(SolveTest, GivesEachElementItsOwnStatus) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor M = torch::tensor({1., -1., 1., nan, 1.}, torch::kDouble).view({5, 1, 1});
  const Tensor q = torch::tensor({-1., -1., 2., -1., nan}, torch::kDouble).view({5, 1});
  const SolveResult result = solve(M, q);
  EXPECT_TRUE(torch::equal(result.status, torch::tensor({0, 2, 0, 4, 4}, torch::kChar)));
  EXPECT_TRUE(same_bits(result.z.view(-1), torch::tensor({1., nan, 0., nan, nan}, torch::kDouble)));
  EXPECT_TRUE(same_bits(result.w.view(-1), torch::tensor({0., nan, 2., nan, nan}, torch::kDouble)));

  SolveOptions options;
  options.max_pivots = 0;
  EXPECT_TRUE(
      torch::equal(solve(M.slice(0, 0, 3), q.slice(0, 0, 3), options).status, torch::tensor({3, 3, 0}, torch::kChar)));
}

TEST_F(SolveTest, ChecksTheSolutionAgainstTheTolerance) {
  SolveOptions impossible;
  impossible.tolerance = 1e-300;
  const Tensor M = torch::full({1, 1}, 3., torch::kDouble);
  const Tensor q = torch::full({1}, -0.7, torch::kDouble);
  EXPECT_EQ(solve(M, q).status.item<int>(), 0);
  EXPECT_EQ(solve(M, q, impossible).status.item<int>(), 1);
}

TEST_F(SolveTest, KeepsElementsApart) {
  const Tensor M = matrices({40}, 4);
  Tensor q = torch::randn({40, 4}, torch::kDouble);
  const SolveResult alone = solve(M, q);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Tensor broken = q.clone();
    broken.slice(0, 0, 40, 2) = bad;
    const SolveResult result = solve(M, broken);
    EXPECT_TRUE(same_bits(result.z.slice(0, 1, 40, 2), alone.z.slice(0, 1, 40, 2)));
    EXPECT_TRUE((result.status.slice(0, 0, 40, 2) == 4).all().item<bool>());
  }
}

TEST_F(SolveTest, GivesTheSameBitsForEveryThreadCountSplitAndOrder) {
  const Tensor M = matrices({3000}, 3);
  const Tensor q = torch::randn({3000, 3}, torch::kDouble);
  torch::set_num_threads(1);
  const SolveResult expected = solve(M, q);
  for (const int threads : {2, 3, 4}) {
    torch::set_num_threads(threads);
    const SolveResult result = solve(M, q);
    EXPECT_TRUE(same_bits(result.z, expected.z) && same_bits(result.w, expected.w));
  }
  torch::set_num_threads(1);
  const Tensor order = torch::randperm(3000);
  EXPECT_TRUE(same_bits(solve(M.index({order}), q.index({order})).z, expected.z.index({order})));
  for (const std::int64_t k : {0, 1, 2999}) EXPECT_TRUE(same_bits(solve(M[k], q[k]).z, expected.z[k]));
}

TEST_F(SolveTest, SolvesFrictionProblems) {
  std::mt19937_64 random(11);
  for (int k = 0; k < 200; ++k) {
    const auto problem = testing::friction_block(random);
    const auto n = problem.n();
    const Tensor M =
        torch::tensor(at::ArrayRef<double>(problem.M.data(), problem.M.size()), torch::kDouble).view({n, n});
    const Tensor q = torch::tensor(at::ArrayRef<double>(problem.q.data(), problem.q.size()), torch::kDouble);
    expect_solved(M, q, solve(M, q), 1e-9);
    const SolveResult single = solve(M.to(torch::kFloat), q.to(torch::kFloat));
    expect_solved(M.to(torch::kFloat).to(torch::kDouble), q.to(torch::kFloat).to(torch::kDouble),
                  {single.z.to(torch::kDouble), single.w.to(torch::kDouble), single.status}, 1e-4);
  }
}

TEST_F(SolveTest, TakesEnumeratorsAndTheirNames) {
  const Tensor M = torch::eye(3, torch::kDouble).requires_grad_();
  const Tensor q = torch::tensor({-1., 0., 1.}, torch::kDouble);  // the second pair is a tie
  const auto gradient = [&](const SolveOptions& options) {
    return torch::autograd::grad({solve(M, q, options).z.sum()}, {M})[0];
  };
  for (const Method method :
       {Method::kAuto, Method::kLemke, Method::kEnumeration, Method::kNewtonMin, Method::kCentralPath}) {
    for (const Ties ties : {Ties::kInactive, Ties::kActive, Ties::kMidpoint}) {
      SolveOptions by_enumerator, by_name;
      by_enumerator.method = method;
      by_enumerator.ties = ties;
      by_name.method = method_name(method);
      by_name.ties = std::string(ties_name(ties));
      EXPECT_TRUE(torch::equal(gradient(by_enumerator), gradient(by_name))) << method_name(method) << ties_name(ties);
      // d z_2 / d M_21 = -z_1 where the tied pair is active.
      const double expected = ties == Ties::kInactive ? 0 : ties == Ties::kActive ? -1 : -0.5;
      EXPECT_EQ(gradient(by_enumerator)[1][0].item<double>(), expected);
    }
  }
}

TEST(StatusTest, HasANameForEachValue) {
  EXPECT_STREQ(status_name(Status::kSolved), "solved");
  EXPECT_STREQ(status_name(Status::kNotFound), "not found");
  EXPECT_STREQ(status_name(Status::kInfeasible), "infeasible");
  EXPECT_STREQ(status_name(Status::kPivotLimit), "pivot limit");
  EXPECT_STREQ(status_name(Status::kBadInput), "bad input");
}

TEST_F(SolveTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor M = torch::eye(3, torch::kDouble);
  const Tensor q = torch::ones({3}, torch::kDouble);
  const auto expect = [&](const std::function<void()>& call, const std::string& message) {
    EXPECT_EQ(testing::error_of(call).substr(0, message.size()), message);
  };
  expect([&] { solve(q, q); }, "M must be [..., n, n]; got [3]");
  expect([&] { solve(M.slice(0, 0, 2), q); }, "M must be [..., n, n]; got [2, 3]");
  expect([&] { solve(M.to_sparse(), q); }, "M must be a dense tensor; got layout Sparse");
  expect([&] { solve(M, q.slice(0, 0, 2)); }, "q must be [..., n] with M's n = 3; got [2]");
  expect([&] { solve(M, q[0]); }, "q must be [..., n] with M's n = 3; got []");
  expect([&] { solve(M.to(torch::kLong), q); }, "M must be float32 or float64; got Long");
  expect([&] { solve(M, q.to(torch::kFloat)); }, "q must have M's dtype, Double; got Float");
  expect([&] { solve(M, q.to(torch::kMeta)); }, "q must be on M's device, cpu; got meta");
  expect(
      [&] {
        solve(M.expand({2, 3, 3}), q.expand({5, 3}));
      },
      "the batch dimensions of M [2, 3, 3] and q [5, 3] must broadcast; got [2] and [5]");
  const auto with = [&](const std::function<void(SolveOptions&)>& change) {
    return [&, change] {
      SolveOptions options;
      change(options);
      solve(M, q, options);
    };
  };
  expect(with([](auto& o) { o.method = "simplex"; }),
         R"(method must be "auto", "lemke", "enumeration", "newton_min" or "central_path"; got "simplex")");
  expect(with([](auto& o) { o.ties = "both"; }), R"(ties must be "inactive", "active" or "midpoint"; got "both")");
  expect(with([](auto& o) { o.kappa = -0.1; }), "kappa must be finite and >= 0; got -0.1");
  expect(with([](auto& o) { o.kappa = 0.1, o.ties = "active"; }), "ties must be \"inactive\" where kappa > 0");
  expect(with([&](auto& o) { o.guess = q.to_sparse(); }), "guess must be a dense tensor; got layout Sparse");
  expect(with([&](auto& o) { o.guess = q.to(torch::kFloat); }), "guess must have M's dtype, Double; got Float");
  expect(with([](auto& o) { o.tolerance = 0.0; }), "tolerance must be finite and > 0; got 0");
  expect(with([](auto& o) { o.tolerance = std::nan(""); }), "tolerance must be finite and > 0; got nan");
  expect(with([](auto& o) { o.max_pivots = -1; }), "max_pivots must be >= 0; got -1");
}

TEST_F(SolveTest, KnowsItsShapesWithoutData) {
  const SolveResult result = solve(torch::empty({2, 1, 3, 3}, torch::kMeta), torch::empty({5, 3}, torch::kMeta));
  EXPECT_TRUE(result.z.is_meta());
  EXPECT_EQ(result.z.sizes(), (std::vector<std::int64_t>{2, 5, 3}));
  EXPECT_EQ(result.status.sizes(), (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(testing::error_of([] {
              solve(torch::empty({3, 2}, torch::kMeta), torch::empty({3}, torch::kMeta));
            }),
            "M must be [..., n, n]; got [3, 2]");
}

TEST_F(SolveTest, HasTheGradientThatTiesChoose) {
  for (const auto& [ties, slope] :
       {std::pair<const char*, double>{"inactive", 0.0}, {"active", -0.5}, {"midpoint", -0.25}}) {
    SolveOptions options;
    options.ties = ties;
    const Tensor q = torch::tensor({0.}, torch::kDouble).requires_grad_();
    solve(torch::full({1, 1}, 2.0, torch::kDouble), q, options).z.sum().backward();
    EXPECT_EQ(q.grad().item<double>(), slope);
  }
}

TEST_F(SolveTest, SmoothsTheGradientAloneByKappa) {
  SolveOptions options;
  options.kappa = 0.1;
  for (const double value : {-1.0, 0.0, 0.3}) {
    const Tensor q = torch::tensor({value}, torch::kDouble).requires_grad_();
    const Tensor z = solve(torch::full({1, 1}, 2.0, torch::kDouble), q, options).z;
    EXPECT_EQ(z.item<double>(), std::max(0.0, -value / 2));
    z.sum().backward();
    EXPECT_NEAR(q.grad().item<double>(), (-1 + value / std::sqrt(value * value + 0.8)) / 4, 1e-14);
  }
}

TEST_F(SolveTest, VerifiesAGuess) {
  const Tensor M = torch::ones({2, 2}, torch::kDouble);  // of rank one: a segment of solutions
  SolveOptions options;
  for (const auto& guess : {std::vector<double>{1, 0}, {0, 1}, {1, 1}, {0, 0}, {std::nan(""), 1}}) {
    options.guess = torch::tensor(guess, torch::kDouble);
    const SolveResult result = solve(M, -torch::ones({2}, torch::kDouble), options);
    EXPECT_EQ(result.status.item<int>(), 0);
    EXPECT_NEAR(result.z.sum().item<double>(), 1, 1e-14);
  }
}

}  // namespace
}  // namespace lcp
