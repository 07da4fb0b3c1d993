#include "batch/batch_solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "batch/batch_derivative.h"
#include "batch/outer_products.h"
#include "support/claims.h"
#include "support/effort.h"
#include "support/problems.h"

namespace lcp::batch {
namespace {

using solver::ActiveSet;
using solver::Ladder;
using solver::Settings;
using testing::Problem;
using Random = std::mt19937_64;

Problem any_problem(Random& random, int n) {
  switch (random() % 5) {
    case 0:
      return testing::positive_definite(random, n);
    case 1:
      return testing::plant(random, testing::p_matrix(random, n), true).problem;
    case 2:
      return testing::plant(random, testing::low_rank(random, n, n / 2, true), true).problem;
    case 3:
      return testing::infeasible(random, n);
    default:
      return testing::hostile(random, n).problem;
  }
}

// A problem with one solution.
Problem definite_or_p(Random& random, int n) {
  return random() % 2 == 0 ? testing::positive_definite(random, n)
                           : testing::plant(random, testing::p_matrix(random, n), false).problem;
}

template <class T>
struct Answers {
  std::vector<T> z, w;
  std::vector<std::int8_t> status, states;
};

// Problems of one n, stored one behind another.
template <class T>
struct BatchOf {
  explicit BatchOf(int order) : n(order) {}

  int n;
  std::int64_t count = 0;
  std::vector<T> M, q;

  void add(const Problem& problem) {
    ++count;
    for (const double x : problem.M.reshaped<Eigen::RowMajor>()) M.push_back(static_cast<T>(x));
    for (const double x : problem.q) q.push_back(static_cast<T>(x));
  }
  Problem at(std::int64_t b) const {
    Problem problem{testing::RowMatrix(n, n), Eigen::VectorXd(n)};
    for (int k = 0; k < n * n; ++k) problem.M.data()[k] = M[b * n * n + k];
    for (int i = 0; i < n; ++i) problem.q[i] = q[b * n + i];
    return problem;
  }
  static Settings settings() {
    Settings settings;
    settings.tolerance = sizeof(T) == sizeof(double) ? 1e-9 : 1e-4;
    settings.single_precision = sizeof(T) == sizeof(float);
    return settings;
  }
  Answers<T> solve(std::int64_t first, std::int64_t size, BatchView<T> guess = {nullptr, false}) const {
    Answers<T> answers{std::vector<T>(size * n), std::vector<T>(size * n), std::vector<std::int8_t>(size),
                       std::vector<std::int8_t>(size * n)};
    BatchSolver<T> solver(n, settings());
    solver.solve(size, {M.data() + first * n * n, false}, {q.data() + first * n, false}, guess,
                 {answers.z.data(), answers.w.data(), answers.status.data(), answers.states.data()});
    return answers;
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, std::int64_t a_first, const std::vector<T>& b, std::int64_t b_first,
               std::int64_t count) {
  return std::memcmp(a.data() + a_first, b.data() + b_first, count * sizeof(T)) == 0;
}

template <class T>
class BatchSolverTest : public ::testing::Test {};
using Types = ::testing::Types<double, float>;
TYPED_TEST_SUITE(BatchSolverTest, Types);

TYPED_TEST(BatchSolverTest, AnswersCorrectlyAndSolvesWhatTheLadderSolves) {
  Random random(21);
  for (int n = 1; n <= 18; ++n) {
    BatchOf<TypeParam> batch(n);
    for (int k = 0; k < 203; ++k) batch.add(any_problem(random, n));
    const auto answers = batch.solve(0, batch.count);
    Ladder ladder(n, batch.settings());
    Eigen::VectorXd z(n), w(n);
    for (std::int64_t b = 0; b < batch.count; ++b) {
      const Problem problem = batch.at(b);
      testing::Answer answer{static_cast<Status>(answers.status[b]), Eigen::VectorXd(n), Eigen::VectorXd(n), {}, 0};
      for (int i = 0; i < n; ++i) {
        answer.z[i] = answers.z[b * n + i];
        answer.w[i] = answers.w[b * n + i];
      }
      const Status alone = ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
      if (answer.status == Status::kInfeasible) {
        answer.farkas = Eigen::Map<const Eigen::VectorXd>(ladder.farkas(), n);
      }
      EXPECT_EQ(testing::answer_error(problem, batch.settings(), answer), "") << testing::describe(problem, answer);
      EXPECT_TRUE(answer.status == alone || answer.status == Status::kSolved) << n << " " << b;
    }
  }
}

// The kernels find the states by the same template as PairStates does.
TYPED_TEST(BatchSolverTest, FindsTheStatesOfItsSolutions) {
  Random random(25);
  for (int n = 1; n <= 18; ++n) {
    BatchOf<TypeParam> batch(n);
    for (int k = 0; k < 203; ++k) batch.add(any_problem(random, n));
    for (int k = 0; k < 50; ++k) {  // degenerate: z of ones and zeros for q = -M z
      const testing::RowMatrix M = testing::p_matrix(random, n);
      Eigen::VectorXd z(n);
      for (double& x : z) x = static_cast<double>(random() % 2);
      batch.add({M, -(M * z)});
    }
    const auto answers = batch.solve(0, batch.count);
    solver::PairStates find(n, 0, sizeof(TypeParam) == sizeof(float));
    std::vector<std::int8_t> states(n);
    int ties = 0;
    for (std::int64_t b = 0; b < batch.count; ++b) {
      const Problem problem = batch.at(b);
      const std::vector<double> z(answers.z.begin() + b * n, answers.z.begin() + (b + 1) * n);
      const std::vector<double> w(answers.w.begin() + b * n, answers.w.begin() + (b + 1) * n);
      find.find(problem.M.data(), problem.q.data(), z.data(), w.data(), states.data());
      EXPECT_TRUE(same_bits(answers.states, b * n, states, 0, n)) << n << " " << b;
      ties += static_cast<int>(std::count(states.begin(), states.end(), solver::PairState::kTied));
    }
    EXPECT_GT(ties, 0) << n;
  }
}

// What the kernels do with vectors, solver/enumeration.h and solver/lemke.h do with one problem.
TYPED_TEST(BatchSolverTest, FindsTheBasesOfTheAlgorithmsForOneProblem) {
  Random random(26);
  for (int n = 1; n <= kLockstep; ++n) {
    const bool enumerates = n <= kEnumerated;
    BatchOf<TypeParam> batch(n);
    for (int k = 0; k < 203; ++k) batch.add(definite_or_p(random, n));
    const auto answers = batch.solve(0, batch.count);
    solver::Settings settings = batch.settings();
    settings.method = enumerates ? solver::Method::kEnumeration : solver::Method::kLemke;
    Ladder ladder(n, settings);
    solver::PairStates find(n, 0, settings.single_precision);
    std::vector<std::int8_t> states(n);
    std::vector<double> z(n), w(n);
    int compared = 0;
    for (std::int64_t b = 0; b < batch.count; ++b) {
      const Problem problem = batch.at(b);
      const double* const M = problem.M.data();
      const double* const q = problem.q.data();
      if (ladder.solve(M, q, nullptr, z.data(), w.data()) != Status::kSolved) continue;
      find.find(M, q, z.data(), w.data(), states.data());
      EXPECT_TRUE(same_bits(answers.states, b * n, states, 0, n)) << n << " " << b;
      ++compared;
    }
    EXPECT_GT(compared, 150) << n;
  }
}

TYPED_TEST(BatchSolverTest, GivesTheSameBitsAtAnyPlaceInAnyBatch) {
  Random random(22);
  for (const int n : {1, 2, 3, 4, 5, 8, 13, 17}) {
    BatchOf<TypeParam> batch(n);
    for (int k = 0; k < 75; ++k) batch.add(any_problem(random, n));
    const auto whole = batch.solve(0, batch.count);
    for (const auto& [first, size] : {std::pair{0, 1}, {1, 7}, {3, 64}, {5, 70}, {74, 1}}) {
      const auto part = batch.solve(first, size);
      EXPECT_TRUE(same_bits(whole.z, first * n, part.z, 0, size * n)) << n << " " << first;
      EXPECT_TRUE(same_bits(whole.w, first * n, part.w, 0, size * n)) << n << " " << first;
      EXPECT_TRUE(same_bits(whole.status, first, part.status, 0, size)) << n << " " << first;
      EXPECT_TRUE(same_bits(whole.states, first * n, part.states, 0, size * n)) << n << " " << first;
    }
  }
}

TYPED_TEST(BatchSolverTest, GivesTheSameBitsForASharedMatrixAsForCopiesOfIt) {
  Random random(23);
  for (const int n : {1, 2, 3, 4, 6, 17}) {
    const Problem first = testing::plant(random, testing::p_matrix(random, n)).problem;
    BatchOf<TypeParam> batch(n);
    for (int k = 0; k < 41; ++k) {
      batch.add({first.M, Eigen::VectorXd::NullaryExpr(n, [&] { return std::normal_distribution<>()(random); })});
    }
    const auto copies = batch.solve(0, batch.count);
    auto shared = copies;
    BatchSolver<TypeParam> solver(n, batch.settings());
    solver.solve(batch.count, {batch.M.data(), true}, {batch.q.data(), false}, {nullptr, true},
                 {shared.z.data(), shared.w.data(), shared.status.data(), shared.states.data()});
    EXPECT_EQ(copies.z, shared.z) << n;
    EXPECT_EQ(copies.w, shared.w) << n;
    EXPECT_EQ(copies.status, shared.status) << n;
    EXPECT_EQ(copies.states, shared.states) << n;
  }
}

// Arguments of the adjoint: problems, their answers, of which some are changed, and gradients of z and w.
template <class T>
struct Gradients {
  Gradients(Random& random, int n, int size) : batch(n) {
    for (int k = 0; k < size; ++k) batch.add(any_problem(random, n));
    answers = batch.solve(0, batch.count);
    for (auto* g : {&g_z, &g_w}) {
      for (int k = 0; k < size * n; ++k) g->push_back(static_cast<T>(std::normal_distribution<>()(random)));
    }
    // In the last third, ties and unsolved elements are put in by hand.
    for (int b = 2 * size / 3; b < size; ++b) {
      std::int8_t* const states = answers.states.data() + b * n;
      if (random() % 16 == 0) std::fill_n(states, n, solver::PairState::kUnsolved);
      if (states[0] == solver::PairState::kUnsolved) continue;
      for (int i = 0; i < n; ++i) {
        if (random() % 8 == 0) states[i] = solver::PairState::kTied;
        if (random() % 8 == 0) g_z[b * n + i] = g_w[b * n + i] = 0;
      }
    }
  }

  std::vector<T> adjoint(std::int64_t first, std::int64_t size, bool tied_active) const {
    const int n = batch.n;
    std::vector<T> t(size * n);
    BatchDerivative<T>(n, tied_active)
        .adjoint(size, {batch.M.data() + first * n * n, false}, answers.states.data() + first * n,
                 {g_z.data() + first * n, false}, {g_w.data() + first * n, false}, t.data());
    return t;
  }

  // The kernels must agree with ActiveSet.
  void expect_adjoint(bool tied_active) const {
    const int n = batch.n;
    const std::vector<T> t = adjoint(0, batch.count, tied_active);
    ActiveSet active_set(n, sizeof(T) == sizeof(float), tied_active);
    for (std::int64_t b = 0; b < batch.count; ++b) {
      const auto part = [&](const std::vector<T>& x, int size) {
        return std::vector<double>(x.begin() + b * size, x.begin() + (b + 1) * size);
      };
      const auto M = part(batch.M, n * n);
      const auto element_g_z = part(g_z, n);
      const auto element_g_w = part(g_w, n);
      std::vector<double> expected(n);
      active_set.set(M.data(), answers.states.data() + b * n);
      active_set.adjoint(element_g_z.data(), element_g_w.data(), expected.data());
      double size = 0;
      for (const double x : expected) size = std::max(size, std::abs(x));
      for (int i = 0; i < n; ++i) {
        const double got = t[b * n + i];
        const double rounded = static_cast<T>(expected[i]);
        if (!std::isfinite(rounded)) {
          EXPECT_TRUE(got == rounded || std::isnan(got)) << n << " " << b;
        } else {
          // The kernels only take bases with a condition below 1e6, in float 1e3.
          EXPECT_NEAR(got, expected[i], (sizeof(T) == sizeof(float) ? 1e-6 : 1e-9) * size) << n << " " << b;
        }
      }
    }
  }

  BatchOf<T> batch;
  Answers<T> answers;
  std::vector<T> g_z, g_w;
};

TYPED_TEST(BatchSolverTest, HasTheAdjointOfTheActiveSet) {
  Random random(24);
  for (int n = 1; n <= 17; ++n) {
    const Gradients<TypeParam> gradients(random, n, n <= 6 ? 501 : 253);
    for (const bool tied_active : {false, true}) gradients.expect_adjoint(tied_active);
  }
}

TYPED_TEST(BatchSolverTest, HasTheSameAdjointAtAnyPlaceInAnyBatch) {
  using T = TypeParam;
  Random random(26);
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17}) {
    const Gradients<T> gradients(random, n, 75);
    for (const bool tied_active : {false, true}) {
      const auto whole = gradients.adjoint(0, 75, tied_active);
      for (int size = 1; size <= 9; ++size) {
        for (int first = 0; first + size <= 75; first += 7) {
          const auto part = gradients.adjoint(first, size, tied_active);
          EXPECT_TRUE(same_bits(whole, first * n, part, 0, size * n)) << n << " " << first << " " << size;
        }
      }
    }
  }
}

TYPED_TEST(BatchSolverTest, HasTheSameAdjointForSharedArgumentsAsForCopiesOfThem) {
  using T = TypeParam;
  Random random(27);
  constexpr int count = 43;
  for (const int n : {1, 3, 4, 5, 6, 7, 8, 11, 16, 17}) {
    Gradients<T> gradients(random, n, count);
    const auto repeat = [](std::vector<T>& x, int size) {
      for (int k = size; k < count * size; ++k) x[k] = x[k - size];
    };
    repeat(gradients.batch.M, n * n);
    for (const bool zeros : {false, true}) {
      if (zeros) std::fill_n(gradients.g_w.begin(), n, T(0));
      repeat(gradients.g_z, n);
      repeat(gradients.g_w, n);
      const auto copies = gradients.adjoint(0, count, zeros);
      auto shared = copies;
      BatchDerivative<T>(n, zeros).adjoint(count, {gradients.batch.M.data(), true}, gradients.answers.states.data(),
                                           {gradients.g_z.data(), true}, {gradients.g_w.data(), true}, shared.data());
      EXPECT_TRUE(same_bits(copies, 0, shared, 0, count * n)) << n << " " << zeros;
    }
  }
}

TYPED_TEST(BatchSolverTest, HasOuterProductsAndTheirSums) {
  using T = TypeParam;
  Random random(28);
  for (int n = kSmall + 1; n <= kLockstep; ++n) {
    for (const int count : {1, 2, 3, 7, 20}) {
      std::vector<T> t(count * n), x(count * n);
      for (auto* values : {&t, &x}) {
        for (T& value : *values) value = static_cast<T>(std::normal_distribution<>()(random));
      }
      x[count * n / 2] = std::numeric_limits<T>::quiet_NaN();
      constexpr int kBehind = 32;  // numbers behind the result, which must not change
      std::vector<T> products(count * n * n + kBehind, T(7)), expected(products);
      std::vector<double> sum(n * n), expected_sum(n * n, 0.0);
      for (int b = 0; b < count; ++b) {
        for (int i = 0; i < n; ++i) {
          for (int j = 0; j < n; ++j) {
            const T factor = std::isnan(x[b * n + j]) ? T(0) : x[b * n + j];
            expected[(b * n + i) * n + j] = t[b * n + i] * factor;
            expected_sum[i * n + j] += static_cast<double>(t[b * n + i]) * static_cast<double>(factor);
          }
        }
      }
      outer_products(n, count, t.data(), x.data(), products.data());
      sum_outer_products(n, count, t.data(), x.data(), sum.data());
      EXPECT_EQ(products, expected) << n << " " << count;
      EXPECT_EQ(sum, expected_sum) << n << " " << count;
    }
  }
}

// M_aa is singular within its precision, but no pivot of an elimination with row pivoting is small.
TYPED_TEST(BatchSolverTest, HasTheAdjointOfTheActiveSetForTriangularMatrices) {
  using T = TypeParam;
  Random random(29);
  std::normal_distribution<> normal;
  for (const int n : {3, 4, 5, 8, 13, 16}) {
    Gradients<T> gradients(random, n, n <= 5 ? testing::effort(20'000) : 250);
    for (std::int64_t b = 0; b < gradients.batch.count; ++b) {
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          const double x = normal(random);
          gradients.batch.M[(b * n + i) * n + j] = static_cast<T>((i < j) == (b % 2 == 0) || i == j ? x : 0.0);
        }
      }
    }
    auto& states = gradients.answers.states;
    std::fill(states.begin(), states.end(), solver::PairState::kBasic);
    gradients.expect_adjoint(false);
  }
}

TEST(BatchSolver, ClaimsNoSolutionThatOverflowsFloat) {
  for (const int n : {2, 4, 5, 6, 12, 17}) {
    Problem problem{testing::RowMatrix::Identity(n, n), Eigen::VectorXd::Ones(n)};
    problem.M(n - 1, 0) = 1e7;
    problem.q[0] = -1e32;  // so z_0 = 1e32, and the last w is 1e39
    BatchOf<float> batch(n);
    for (int k = 0; k < 9; ++k) batch.add(problem);
    for (const std::int8_t status : batch.solve(0, batch.count).status) {
      EXPECT_EQ(status, static_cast<std::int8_t>(Status::kNotFound)) << n;
    }
  }
}

// M = [1 2; 2 1], q = -1 has the solutions (1, 0), (0, 1) and (1/3, 1/3).
TYPED_TEST(BatchSolverTest, TakesTheSolutionThatAGuessProposes) {
  using T = TypeParam;
  const std::vector<std::vector<T>> solutions = {{1, 0}, {0, 1}, {T(1) / 3, T(1) / 3}};
  BatchOf<T> batch(2);
  std::vector<T> guess, expected;
  for (int k = 0; k < 57; ++k) {
    Problem problem{testing::RowMatrix(2, 2), Eigen::VectorXd::Constant(2, -1)};
    problem.M << 1, 2, 2, 1;
    batch.add(problem);
    for (int i = 0; i < 2; ++i) {
      expected.push_back(solutions[k % 3][i]);
      guess.push_back(expected.back() > 0 ? T(k + 1) : T(-k));
    }
  }
  const auto answers = batch.solve(0, batch.count, {guess.data(), false});
  for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(answers.z[k], expected[k], 1e-6) << k;
  for (const auto& solution : solutions) {
    const auto all_alike = batch.solve(0, batch.count, {solution.data(), true});
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(all_alike.z[k], solution[k % 2], 1e-6) << k;
  }
}

// M = [1 -1; -1 1], q = 0 but for its first row: the solutions with both z positive are a line.
TYPED_TEST(BatchSolverTest, TakesFromTheGuessWhatASingularBasisLeavesOpen) {
  using T = TypeParam;
  for (const int n : {2, 3, 5, 6}) {
    Problem problem{testing::RowMatrix::Identity(n, n), Eigen::VectorXd::Zero(n)};
    problem.M.topLeftCorner(2, 2) << 1, -1, -1, 1;
    problem.q.head(2) << -1, 1;
    BatchOf<T> batch(n);
    std::vector<T> guess;
    for (int k = 0; k < 11; ++k) {
      batch.add(problem);
      for (int i = 0; i < n; ++i) guess.push_back(i == 0 ? T(k + 2) : i == 1 ? T(k + 1) : T(0));
    }
    const auto answers = batch.solve(0, batch.count, {guess.data(), false});
    for (std::size_t k = 0; k < guess.size(); ++k) EXPECT_NEAR(answers.z[k], guess[k], 1e-5) << n << " " << k;
  }
}

// The first two unknowns are those of TakesTheSolutionThatAGuessProposes.
TYPED_TEST(BatchSolverTest, CountsANaNInAGuessAsZero) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (int n = 2; n <= 7; ++n) {
    Problem problem{testing::RowMatrix::Identity(n, n), Eigen::VectorXd::Ones(n)};
    problem.M.topLeftCorner(2, 2) << 1, 2, 2, 1;
    problem.q.head(2).setConstant(-1);
    BatchOf<T> batch(n);
    batch.add(problem);
    for (const T undefined : {nan, -nan}) {
      std::vector<T> guess(n, undefined);
      guess[1] = 1;
      const auto answers = batch.solve(0, 1, {guess.data(), false});
      for (int i = 0; i < n; ++i) EXPECT_NEAR(answers.z[i], i == 1 ? 1 : 0, 1e-6) << n;
    }
  }
}

TYPED_TEST(BatchSolverTest, IsNotLedAstrayByAWrongGuess) {
  using T = TypeParam;
  Random random(26);
  for (int n = 1; n <= 7; ++n) {
    BatchOf<T> batch(n);
    for (int k = 0; k < 301; ++k) {
      batch.add({testing::p_matrix(random, n),
                 Eigen::VectorXd::NullaryExpr(n, [&] { return std::normal_distribution<>()(random); })});
    }
    std::vector<T> guess(batch.count * n);
    for (T& x : guess) x = static_cast<T>(std::normal_distribution<>()(random));
    const auto expected = batch.solve(0, batch.count);
    const auto answers = batch.solve(0, batch.count, {guess.data(), false});
    EXPECT_EQ(answers.status, expected.status) << n;
    for (std::size_t k = 0; k < guess.size(); ++k) {
      EXPECT_NEAR(answers.z[k], expected.z[k], (sizeof(T) == sizeof(float) ? 1e-3 : 1e-9) * (1 + expected.z[k])) << n;
    }
  }
}

// Elements that the first kernel of floats leaves unsolved are collected for a second one. The bits must not depend on
// it.
TEST(BatchSolver, GivesFloatsTheSameBitsAtAnyPlace) {
  Random random(27);
  for (int n = 2; n <= 4; ++n) {
    BatchOf<float> batch(n);
    for (int k = 0; k < 1000; ++k) {
      batch.add({testing::p_matrix(random, n),
                 Eigen::VectorXd::NullaryExpr(n, [&] { return std::normal_distribution<>()(random); })});
    }
    const auto whole = batch.solve(0, batch.count);
    for (std::int64_t b = 0; b < batch.count; ++b) {
      const auto alone = batch.solve(b, 1);
      EXPECT_TRUE(same_bits(whole.z, b * n, alone.z, 0, n) && same_bits(whole.w, b * n, alone.w, 0, n))
          << n << " " << b;
      EXPECT_EQ(whole.status[b], 0);
    }
  }
}

TEST(BatchSolver, TakesSharedArgumentsAndGuesses) {
  Random random(25);
  const Problem problem = testing::friction_block(random, 1, 2);
  const int n = problem.n();
  const Eigen::VectorXd guess = testing::solve(problem).z;
  std::vector<double> z(3 * n), w(3 * n);
  std::vector<std::int8_t> status(3);
  BatchSolver<double> solver(n, {});
  solver.solve(3, {problem.M.data(), true}, {problem.q.data(), true}, {guess.data(), true},
               {z.data(), w.data(), status.data(), nullptr});
  for (int b = 0; b < 3; ++b) {
    EXPECT_EQ(status[b], 0);
    for (int i = 0; i < n; ++i) EXPECT_NEAR(z[b * n + i], guess[i], 1e-12);
  }
}

}  // namespace
}  // namespace lcp::batch
