// Misprints of the notes on the sliding block, each beside the correct form.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 2.1 to 2.6.1.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lcp/physics/sliding_block.h"
#include "lcp/solve.h"
#include "lcp/solve_mixed.h"
#include "lcp/status.h"
#include "support/tensors.h"

namespace lcp::physics::sliding_block_errata_test {

using testing::everywhere;
using testing::largest;
using testing::number;
using testing::numbers;
using Formulation = SlidingBlockFormulation;
using torch::Tensor;

constexpr double kGravity = 9.81;

Tensor matrix(const std::vector<double>& entries) {
  const auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(entries.size())));
  return numbers(entries).view({n, n});
}

Tensor columns(const std::vector<Tensor>& entries) { return torch::stack(torch::broadcast_tensors(entries), -1); }

double fraction(const Tensor& x) { return x.to(torch::kDouble).mean().item<double>(); }

Tensor soft(const Tensor& x, double limit) { return x.sign() * (x.abs() - limit).clamp_min(0); }

// The determinant of the rows and columns of that set.
double minor_of(const Tensor& M, const std::vector<std::int64_t>& set) {
  const Tensor rows = torch::tensor(set);
  return torch::linalg_det(M.index_select(0, rows).index_select(1, rows)).item<double>();
}

std::vector<std::vector<std::int64_t>> subsets_of_three() {
  return {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
}

// The solutions of LCP(q, M), q: [N, 3], at all complementary bases with a regular M_aa. Where the solutions are a
// polyhedron, these are its vertices.
struct Vertices {
  Tensor z;      // [8, N, 3]
  Tensor w;      // [8, N, 3]
  Tensor holds;  // [8, N], bool: z is a solution

  Tensor velocity() const { return (w.select(-1, 0) - w.select(-1, 1)) / 2; }

  // [N], how many values the solutions give x, [8, N].
  Tensor distinct(const Tensor& x) const {
    Tensor number = torch::zeros(x.size(1), torch::kLong);
    for (int i = 0; i < 8; ++i) {
      Tensor fresh = holds[i];
      for (int j = 0; j < i; ++j) fresh = fresh & ~(holds[j] & ((x[i] - x[j]).abs() < 1e-9));
      number += fresh;
    }
    return number;
  }

  // [N], whether a solution has x, [8, N], of that value, [N].
  Tensor reach(const Tensor& x, const Tensor& value) const { return (holds & ((x - value).abs() < 1e-9)).any(0); }
};

Vertices vertices(const Tensor& M, const Tensor& q) {
  std::vector<Tensor> z, w, holds;
  for (const auto& active : subsets_of_three()) {
    Tensor candidate = torch::zeros_like(q);
    const bool regular = active.empty() || std::abs(minor_of(M, active)) > 1e-12;
    if (!active.empty() && regular) {
      const Tensor a = torch::tensor(active);
      const Tensor M_aa = M.index_select(0, a).index_select(1, a);
      candidate.index_copy_(1, a, torch::linalg_solve(M_aa, -q.index_select(1, a).t()).t());
    }
    z.push_back(candidate);
    w.push_back(candidate.matmul(M.t()) + q);
    holds.push_back(((candidate >= -1e-9) & (w.back() >= -1e-9)).all(-1) & regular);
  }
  return {torch::stack(z), torch::stack(w), torch::stack(holds)};
}

// A first row r v + B (lambda_plus, lambda_minus, gamma) + p = 0 before w = (gamma + v, gamma - v, F - lambda_plus -
// lambda_minus), as the LCP that is left without v.
struct FirstRow {
  double r;
  Tensor B;  // [3]
  Tensor p;  // [N]

  Problem reduced(double limit) const {
    const Tensor C = numbers({1, -1, 0});
    const Tensor M = matrix({0, 0, 1, 0, 0, 1, -1, -1, 0}) - torch::outer(C, B / r);
    return {M, columns({-p / r, p / r, number(limit)})};
  }

  MixedResult solution(double limit) const {
    return solve_mixed(torch::full({1, 1}, r, torch::kDouble), B.unsqueeze(0), numbers({1, -1, 0}).unsqueeze(1),
                       matrix({0, 0, 1, 0, 0, 1, -1, -1, 0}), p.unsqueeze(-1), numbers({0, 0, limit}));
  }
};

class SlidingBlockErrata : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(7);
    v_ = torch::randn(2000, torch::kDouble);
    u_ = torch::randn(2000, torch::kDouble);
  }

  // As the notes have it: mass 1, step 1; F = 0.8 N.
  static constexpr double kLimit = 0.8;
  const SlidingBlock unit_ = SlidingBlock::of(1, 1, 0.1, 8);
  Tensor v_, u_;
};

// [Notes, 2.1, remark 1]
TEST_F(SlidingBlockErrata, ForwardFrictionIsZeroWhereNothingMovesOrPushes) {
  const auto rest = step(number(0), number(0), unit_, Formulation::kForward).step;
  EXPECT_EQ(rest.v_next.item<double>(), 0);
  EXPECT_EQ(rest.lambda_minus.item<double>(), 0);
  const auto any = step(v_.abs(), u_.abs(), unit_, Formulation::kForward).step;
  EXPECT_GE(any.lambda_minus.min().item<double>(), 0);
}

TEST_F(SlidingBlockErrata, AStationaryBlockMayUseAllOfItsFriction) {
  const SlidingBlock block = SlidingBlock::of(1, 0.5, 0.5, 8);
  const auto edge = step(number(0), number(4), block, Formulation::kForward).step;
  EXPECT_EQ(edge.v_next.item<double>(), 0);
  EXPECT_EQ(edge.lambda_minus.item<double>(), 4);
}

TEST_F(SlidingBlockErrata, ForwardFrictionIsNegativeWhereAndOnlyWhereTheBlockWouldGoBack) {
  const auto any = step(v_.abs(), 3 * u_, unit_, Formulation::kForward).step;
  const Tensor back = v_.abs() + 3 * u_ < 0;
  EXPECT_GT(fraction(back), 0.2);
  EXPECT_TRUE(torch::equal(any.lambda_minus < 0, back));
  EXPECT_EQ(largest(any.v_next.masked_select(back)), 0);
  EXPECT_LE(largest((any.lambda_minus - v_.abs() - 3 * u_).masked_select(back)), 1e-14);
}

// [Notes, 2.2] prints lambda' for every row.
TEST_F(SlidingBlockErrata, TheTwoSlackForcesAreOneOnlyWhereNoForceIsNeededToStop) {
  const Tensor v = torch::cat({v_, numbers({1, 0})}), u = torch::cat({u_, numbers({-1, 0})});
  const auto direct = step(v, u, unit_, Formulation::kDirect).step;
  EXPECT_TRUE(torch::equal(direct.lambda_plus == direct.lambda_minus, v + u == 0));
  EXPECT_EQ(direct_problem(v, u, unit_).M.sizes(), (std::vector<std::int64_t>{2, 2}));
}

TEST_F(SlidingBlockErrata, TheSlackForceOfEachRowOpposesTheVelocityOfThatRow) {
  const auto [step, z, residual, status] = physics::step(v_, u_, unit_, Formulation::kDirect);
  const Tensor right = step.v_next > 0, left = step.v_next < 0;
  EXPECT_GT(fraction(right) * fraction(left), 0.05);
  EXPECT_LE(largest((step.lambda_minus - kLimit).masked_select(right)), 1e-14);
  EXPECT_LE(largest((step.lambda_plus - kLimit).masked_select(left)), 1e-14);
  // With the names of the rows exchanged, friction would accelerate every sliding block.
  const Tensor &minus_exchanged = step.lambda_plus, &plus_exchanged = step.lambda_minus;
  EXPECT_LT(minus_exchanged.masked_select(right).max().item<double>(), 0);
  EXPECT_LT(plus_exchanged.masked_select(left).max().item<double>(), 0);
}

// [Notes, 2.3.1, lemma 2.1]
TEST_F(SlidingBlockErrata, TheVelocitiesComplementEachOtherWhateverTheStepBeganWith) {
  for (const double dt : {1.0, 0.1}) {
    const SlidingBlock block = SlidingBlock::of(1, dt, 0.1, 8);
    const Tensor plus = torch::rand(2000, torch::kDouble) * 3, minus = torch::rand(2000, torch::kDouble) * 3;
    const Tensor q = columns({minus / dt - plus / dt - u_ + kLimit, plus / dt - minus / dt + u_ + kLimit});
    const SolveResult result = solve(torch::eye(2, torch::kDouble) / dt, q);
    EXPECT_TRUE(everywhere(result.status == 0));
    EXPECT_EQ(largest(result.z.prod(-1)), 0);
    EXPECT_LE(largest(q - direct_problem(plus - minus, u_, block).q), 1e-13);
  }
}

TEST_F(SlidingBlockErrata, NegativeFrictionBreaksTheLemma) {
  const Problem problem = direct_problem(number(0), number(0), SlidingBlock::of(1, 1, 0.1, kGravity));
  // At rest q is proportional to mu, so that -q is that of -mu: both speeds are positive, though nothing pushes.
  EXPECT_LE(largest(lcp::solve(problem.M, -problem.q).z - 0.981), 1e-15);
}

// [Notes, 2.3.2]
TEST_F(SlidingBlockErrata, TheFreeSlackForceOfACoastingBlockIsOneOnlyForAUnitStep) {
  for (const auto& [dt, slack] : std::vector<std::pair<double, double>>{{1, 1}, {0.1, 10}, {0.01, 100}}) {
    const auto coast = step(number(1), number(0), SlidingBlock::of(1, dt, 0, kGravity), Formulation::kDirect).step;
    EXPECT_DOUBLE_EQ(coast.v_next.item<double>(), 1);
    EXPECT_DOUBLE_EQ(coast.lambda_plus.item<double>(), -slack);
    EXPECT_EQ(coast.lambda_minus.item<double>(), 0);
  }
}

// [Notes, 2.5]: its derivation has lambda_plus = -v_next- / dt - A, lambda_minus = -v_next+ / dt + A; what it prints
// below has v_next+ in both rows.
TEST_F(SlidingBlockErrata, TheSecondDirectFormNeedsBothVelocities) {
  const double dt = 0.5;
  const Tensor plus = v_.abs(), minus = u_.abs(), A = torch::randn(2000, torch::kDouble);
  const Tensor derived = columns({-minus / dt - A, -plus / dt + A});
  const Tensor M = matrix({0, -1 / dt, -1 / dt, 0}), q = columns({-A, A});
  const Tensor printed = columns({plus, plus}).matmul(M) + q;
  const Tensor corrected = columns({plus, minus}).matmul(M) + q;
  EXPECT_LE(largest(corrected - derived), 1e-14);
  EXPECT_LE(largest((printed - derived).select(-1, 1)), 1e-14);
  EXPECT_TRUE(everywhere((printed - derived).select(-1, 0).abs() > 1e-9));
}

TEST_F(SlidingBlockErrata, TheSecondDirectFormFailsForWantOfAFeasiblePointNotOfDefiniteness) {
  const double dt = 0.5;
  const Tensor A = v_ / dt + u_;
  const SolveResult two = solve(matrix({0, -1 / dt, -1 / dt, 0}), columns({-A, A}));
  EXPECT_TRUE(everywhere(two.status == static_cast<int>(Status::kInfeasible)));
}

// [Notes, 2.6]
TEST_F(SlidingBlockErrata, TheTraditionalMatrixIsPositiveSemidefiniteButNoPMatrix) {
  for (const auto& [mass, dt] : std::vector<std::pair<double, double>>{{1, 1}, {1, 0.1}, {2.5, 0.01}}) {
    const double c = dt / mass;
    const Tensor M = traditional_problem(number(0), number(0), SlidingBlock::of(mass, dt, 0.1, 8)).M;
    const std::vector<double> minors = {1, c, c, 0, 0, 1, 1, 4 * c};
    const auto subsets = subsets_of_three();
    for (std::size_t i = 1; i < subsets.size(); ++i) EXPECT_NEAR(minor_of(M, subsets[i]), minors[i], 1e-14);
    const Tensor symmetric = (M + M.t()) / 2;
    EXPECT_LE(largest(torch::linalg_eigvalsh(symmetric) - numbers({0, 0, 2 * c})), 1e-13);
    const Tensor z = torch::randn({1000, 3}, torch::kDouble);
    const Tensor form = (z.matmul(M) * z).sum(-1);
    EXPECT_LE(largest(form - c * (z.select(-1, 0) - z.select(-1, 1)).square()), 1e-14);
  }
}

// [Notes, 2.6, note 1] on P- and Q-matrices.
TEST_F(SlidingBlockErrata, TheTraditionalMatrixIsNoQMatrix) {
  const Problem problem = traditional_problem(v_, u_, unit_);
  EXPECT_TRUE(everywhere(solve(problem.M, problem.q).status == 0));
  const Tensor negative_limit = problem.q * numbers({1, 1, -1});
  EXPECT_TRUE(everywhere(solve(problem.M, negative_limit).status == static_cast<std::int8_t>(Status::kInfeasible)));
}

TEST_F(SlidingBlockErrata, TheTraditionalFormHasOneVelocityButManySplitsOfStickingFriction) {
  const Problem problem = traditional_problem(v_, u_, unit_);
  const Vertices all = vertices(problem.M, problem.q);
  const Tensor exact = exact_step(v_, u_, unit_).v_next, sticks = exact == 0;
  EXPECT_GT(fraction(sticks), 0.3);
  EXPECT_GT(fraction(~sticks), 0.3);
  EXPECT_TRUE(everywhere(all.distinct(all.velocity()) == 1));
  EXPECT_TRUE(everywhere(all.reach(all.velocity(), exact)));
  EXPECT_TRUE(everywhere(all.distinct(all.z.select(-1, 2)) == 1));
  EXPECT_TRUE(everywhere(all.distinct(all.z.select(-1, 0) - all.z.select(-1, 1)) == 1));
  const Tensor total = all.z.select(-1, 0) + all.z.select(-1, 1);
  EXPECT_TRUE(torch::equal(all.distinct(total), torch::where(sticks, 2, 1)));
  // Its extremes: no more than the friction, and all that the cone has.
  EXPECT_TRUE(everywhere(all.reach(total, (exact - v_ - u_).abs())));
  EXPECT_TRUE(everywhere(all.reach(total, torch::full_like(v_, kLimit))));
}

TEST_F(SlidingBlockErrata, TheTraditionalFormIsAlwaysSolvedDownToNoFrictionWhereGammaIsNotUnique) {
  for (const std::string method : {"auto", "lemke"}) {
    SolveOptions options;
    options.method = method;
    for (const double mu : {0.0, 1e-6, 0.1, 10.0}) {
      const Problem problem = traditional_problem(v_, u_, SlidingBlock::of(2.5, 0.1, mu, 8));
      EXPECT_TRUE(everywhere(solve(problem.M, problem.q, options).status == 0));
    }
  }
  const Problem frictionless = traditional_problem(v_, u_, SlidingBlock::of(1, 1, 0, 8));
  for (const double excess : {0.0, 1.0, 100.0}) {
    const Tensor gamma = (v_ + u_).abs() + excess;
    const Tensor z = columns({number(0), number(0), gamma});
    const Tensor w = z.matmul(frictionless.M.t()) + frictionless.q;
    EXPECT_LE(largest(torch::minimum(z, w)), 1e-13);
  }
}

// [Notes, 2.6] has neither step nor mass.
TEST_F(SlidingBlockErrata, ThePrintedTraditionalFormHoldsForUnitMassAndStepAlone) {
  const Tensor M = matrix({1, -1, 1, -1, 1, 1, -1, -1, 0});
  for (const auto& [mass, dt] : std::vector<std::pair<double, double>>{{1, 1}, {1, 0.1}, {2.5, 1}, {2.5, 0.01}}) {
    const SlidingBlock block = SlidingBlock::of(mass, dt, 0.1, 8);
    const double limit = 0.1 * mass * 8;
    const SolveResult printed = solve(M, columns({v_ + u_, -v_ - u_, number(limit)}));
    const Tensor v_printed = (printed.w.select(-1, 0) - printed.w.select(-1, 1)) / 2;
    EXPECT_LE(largest(v_printed - soft(v_ + u_, limit)), 1e-14);
    const Tensor exact = exact_step(v_, u_, block).v_next;
    const Tensor wrong = (v_printed - exact).abs() > 1e-9;
    const Tensor slides = (exact != 0) | (v_printed.abs() > 1e-9);
    EXPECT_TRUE(torch::equal(wrong, mass == 1 && dt == 1 ? torch::zeros_like(slides) : slides)) << mass << " " << dt;
    EXPECT_LE(largest(step(v_, u_, block, Formulation::kTraditional).step.v_next - exact), 1e-14);
  }
}

// [Notes, 2.6.1], where friction of either sign acts along the motion.
TEST_F(SlidingBlockErrata, ThePrintedMixedFormPropelsTheBlock) {
  const Tensor free = v_ + u_;
  const FirstRow printed{1, numbers({1, -1, 0}), free};
  const MixedResult result = printed.solution(kLimit);
  const Tensor v_next = result.x.select(-1, 0), slides = free.abs() > kLimit;
  EXPECT_NEAR(fraction(slides), 0.58, 0.04);
  EXPECT_TRUE(everywhere(result.status == 0));
  EXPECT_LE(largest((v_next + free.sign() * (free.abs() + kLimit)).masked_select(slides)), 1e-14);
  const Tensor net = result.z.select(-1, 0) - result.z.select(-1, 1);
  EXPECT_LE(largest(v_next + free + net), 1e-14);
}

TEST_F(SlidingBlockErrata, ThePrintedMixedFormHasThreeVelocitiesWhereTheBlockSticks) {
  const Tensor free = v_ + u_, sticks = free.abs() < kLimit;
  const Problem reduced = FirstRow{1, numbers({1, -1, 0}), free}.reduced(kLimit);
  EXPECT_TRUE(torch::equal(reduced.M, matrix({-1, 1, 1, 1, -1, 1, -1, -1, 0})));
  const Vertices all = vertices(reduced.M, reduced.q);
  EXPECT_NEAR(fraction(sticks), 0.42, 0.04);
  EXPECT_TRUE(torch::equal(all.distinct(all.velocity()), torch::where(sticks, 3, 1)));
  for (const Tensor& v : {torch::zeros_like(free), kLimit - free, -kLimit - free}) {
    EXPECT_TRUE(everywhere(all.reach(all.velocity(), v) | ~sticks));
  }
  EXPECT_TRUE(torch::equal(all.reach(all.velocity(), soft(free, kLimit)), sticks));
}

TEST_F(SlidingBlockErrata, ThePrintedMixedFormIsInNoClassOfLemkesMethod) {
  const Problem reduced = FirstRow{1, numbers({1, -1, 0}), v_ + u_}.reduced(kLimit);
  EXPECT_EQ(minor_of(reduced.M, {0}), -1);
  const Tensor e = numbers({1, 0, 0});
  EXPECT_EQ(e.dot(reduced.M.matmul(e)).item<double>(), -1);
  SolveOptions lemke;
  lemke.method = "lemke";
  EXPECT_TRUE(everywhere(solve(reduced.M, reduced.q, lemke).status == static_cast<int>(Status::kNotFound)));
}

TEST_F(SlidingBlockErrata, ThePrintedMixedFormIsStillWrongWithTheSignOfItsConstantCorrected) {
  const Tensor free = v_ + u_, sticks = free.abs() < kLimit;
  const Problem reduced = FirstRow{1, numbers({1, -1, 0}), -free}.reduced(kLimit);
  const Vertices all = vertices(reduced.M, reduced.q);
  EXPECT_TRUE(torch::equal(all.reach(all.velocity(), soft(free, kLimit)), sticks));
  EXPECT_TRUE(torch::equal(all.distinct(all.velocity()), torch::where(sticks, 3, 1)));
  const Tensor propelled = free.sign() * (free.abs() + kLimit);
  EXPECT_TRUE(everywhere(all.reach(all.velocity(), propelled)));
}

TEST_F(SlidingBlockErrata, ThePrintedMixedFormIsStillWrongWithTheSignsOfItsForcesCorrected) {
  const Tensor free = v_ + u_, sticks = free.abs() < kLimit;
  const Problem reduced = FirstRow{1, numbers({-1, 1, 0}), free}.reduced(kLimit);
  const Vertices all = vertices(reduced.M, reduced.q);
  EXPECT_TRUE(everywhere(all.distinct(all.velocity()) == 1));
  EXPECT_TRUE(everywhere(all.reach(all.velocity(), -soft(free, kLimit))));
  EXPECT_TRUE(torch::equal(all.reach(all.velocity(), soft(free, kLimit)), sticks));
}

TEST_F(SlidingBlockErrata, TheCorrectedMixedFormAndItsNegatedRowAreRight) {
  const Tensor free = v_ + u_, exact = exact_step(v_, u_, unit_).v_next;
  const MixedProblem mixed = mixed_problem(v_, u_, unit_);
  const Problem traditional = traditional_problem(v_, u_, unit_);
  for (const FirstRow& row : {FirstRow{1, numbers({-1, 1, 0}), -free}, FirstRow{-1, numbers({1, -1, 0}), free}}) {
    const Problem reduced = row.reduced(kLimit);
    EXPECT_TRUE(torch::equal(reduced.M, traditional.M));
    EXPECT_LE(largest(reduced.q - traditional.q), 1e-15);
    const Vertices all = vertices(reduced.M, reduced.q);
    EXPECT_TRUE(everywhere(all.distinct(all.velocity()) == 1));
    EXPECT_TRUE(everywhere(all.reach(all.velocity(), exact)));
    const MixedResult result = row.solution(kLimit);
    EXPECT_TRUE(everywhere(result.status == 0));
    EXPECT_LE(largest(result.x.select(-1, 0) - exact), 1e-14);
    EXPECT_TRUE(torch::equal(row.r * mixed.A, torch::full({1, 1}, row.r, torch::kDouble)));
    EXPECT_TRUE(torch::equal(row.r * mixed.B[0], row.B));
    EXPECT_TRUE(torch::equal(row.r * mixed.p.select(-1, 0), row.p));
  }
}

// The whole matrix of the corrected form is diag(1, 0, 0, 0) and a skew-symmetric one.
TEST_F(SlidingBlockErrata, OnlyTheCorrectedMixedMatrixIsPositiveSemidefinite) {
  const auto smallest_eigenvalue = [](const std::vector<double>& first_row) {
    std::vector<double> entries = first_row;
    entries.insert(entries.end(), {1, 0, 0, 1, -1, 0, 0, 1, 0, -1, -1, 0});
    const Tensor H = matrix(entries);
    return torch::linalg_eigvalsh((H + H.t()) / 2).min().item<double>();
  };
  EXPECT_NEAR(smallest_eigenvalue({1, -1, 1, 0}), 0, 1e-13);
  EXPECT_LT(smallest_eigenvalue({1, 1, -1, 0}), -0.5);
  EXPECT_LT(smallest_eigenvalue({-1, 1, -1, 0}), -0.5);
}

}  // namespace lcp::physics::sliding_block_errata_test
