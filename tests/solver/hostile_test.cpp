// Problems constructed to break the solver. All its answers must be correct; how many problems it solves does not
// matter. The first tests are of the checks themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "solver/ladder.h"
#include "support/claims.h"
#include "support/effort.h"

namespace lcp::testing::hostile_test {

using solver::Method;
using solver::Settings;

TEST(ClaimsTest, DetectsEveryWrongAnswer) {
  Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 3)};
  const Answer truth{Status::kSolved, Eigen::Vector2d(1, 0), Eigen::Vector2d(0, 3), {}, 7};
  const Eigen::Vector2d nan = Eigen::Vector2d::Constant(NAN);
  const auto broken = [&](Status status, const Eigen::Vector2d& z, const Eigen::Vector2d& w,
                          const Eigen::VectorXd& farkas = {}) {
    return answer_error(problem, {}, {status, z, w, farkas, 7});
  };
  EXPECT_EQ(answer_error(problem, {}, truth), "");
  EXPECT_EQ(broken(Status::kNotFound, nan, nan), "");
  EXPECT_NE(broken(Status::kNotFound, {1, 0}, nan), "");
  EXPECT_NE(broken(Status::kNotFound, nan, {NAN, 0}), "");
  EXPECT_NE(broken(Status::kSolved, nan, nan), "");
  EXPECT_NE(broken(Status::kSolved, {1 + 1e-8, 0}, {0, 3}), "");  // M z + q is not w = 0
  EXPECT_NE(broken(Status::kSolved, {1, 0}, {0, 3 + 1e-7}), "");  // nor w_2
  EXPECT_NE(broken(Status::kSolved, {1, 1e-300}, {0, 3}), "");    // not complementary, though the product underflows
  EXPECT_NE(broken(Status::kSolved, {1, -1e-12}, {0, 3}), "");    // z < 0
  EXPECT_NE(broken(Status::kSolved, {0, 0}, {0, 3}), "");         // w_1 should be -1
  EXPECT_NE(broken(Status::kInfeasible, nan, nan, Eigen::Vector2d(1, 0)), "");
  EXPECT_NE(broken(Status::kBadInput, nan, nan), "");
  EXPECT_NE(broken(Status::kPivotLimit, nan, nan), "");
  Settings settings;
  settings.max_pivots = 6;
  EXPECT_NE(answer_error(problem, settings, truth), "");
  EXPECT_EQ(answer_error(problem, settings, {Status::kPivotLimit, nan, nan, {}, 6}), "");
  settings = {};
  settings.single_precision = true;
  EXPECT_EQ(answer_error(problem, settings, truth), "");
  EXPECT_NE(
      answer_error(problem, settings, {Status::kSolved, Eigen::Vector2d(1, 0), Eigen::Vector2d(0, 3 + 1e-9), {}, 7}),
      "");  // no float
  problem.M(0, 0) = -1;
  EXPECT_EQ(broken(Status::kInfeasible, nan, nan, Eigen::Vector2d(1, 0)), "");
  EXPECT_NE(broken(Status::kInfeasible, nan, nan, Eigen::Vector2d(0, 0)), "");
  EXPECT_NE(broken(Status::kInfeasible, nan, nan, Eigen::Vector2d(1, 1e-300)), "");
  problem.M(0, 0) = NAN;
  EXPECT_EQ(broken(Status::kBadInput, nan, nan), "");
  EXPECT_NE(broken(Status::kNotFound, nan, nan), "");
}

TEST(ClaimsTest, LosesNothingToCancellation) {
  // z_1 = z_2 = 2^200 cancel and leave q_1 = -1.
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << 1.1, -1.1, 1.1, -1.1;
  const Eigen::Vector2d z = Eigen::Vector2d::Constant(0x1p200);
  EXPECT_NE(answer_error(problem, {}, {Status::kSolved, z, Eigen::Vector2d::Zero(), {}, 0}), "");
}

class HostileTest : public ::testing::Test {
 protected:
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

  void expect_true_answer(const Problem& problem, const Settings& settings = {}, const Eigen::VectorXd& guess = {}) {
    const Answer answer = solve(problem, settings, guess);
    EXPECT_EQ(answer_error(problem, settings, answer), "")
        << "method " << static_cast<int>(settings.method) << ", tolerance " << settings.tolerance << ", "
        << describe(problem, answer);
  }

  void expect_true_answers(int count, int smallest, int largest) {
    for (int k = 0; k < effort(count) && !HasFailure(); ++k) {
      expect_true_answer(hostile(random_, integer(smallest, largest)).problem);
    }
  }

  std::mt19937_64 random_{20};
};

TEST_F(HostileTest, AnswersAreTrueForUpToThreeUnknowns) { expect_true_answers(600000, 1, 3); }

TEST_F(HostileTest, AnswersAreTrueForUpToSixUnknowns) { expect_true_answers(250000, 4, 6); }

TEST_F(HostileTest, AnswersAreTrueForUpToTenUnknowns) { expect_true_answers(20000, 7, 10); }

TEST_F(HostileTest, AnswersAreTrueForUpToFortyUnknowns) { expect_true_answers(500, 11, 40); }

TEST_F(HostileTest, AnswersAreTrueForEveryMethod) {
  for (int k = 0; k < effort(200000) && !HasFailure(); ++k) {
    Settings settings;
    settings.method = static_cast<Method>(integer(1, 4));
    const int largest = settings.method == Method::kEnumeration ? 6 : k % 100 == 0 ? 40 : 8;
    expect_true_answer(hostile(random_, integer(1, largest)).problem, settings);
  }
}

TEST_F(HostileTest, AnswersAreTrueForEveryToleranceAndInSinglePrecision) {
  for (int k = 0; k < effort(200000) && !HasFailure(); ++k) {
    Settings settings;
    settings.tolerance = k % 10 == 0 ? 0 : std::pow(10, uniform(-16, -1));
    settings.single_precision = k % 2 == 0;
    expect_true_answer(hostile(random_, integer(1, 6)).problem, settings);
  }
}

TEST_F(HostileTest, AnswersAreTrueForEveryBudget) {
  for (int k = 0; k < effort(200000) && !HasFailure(); ++k) {
    Settings settings;
    settings.method = static_cast<Method>(integer(0, 4));
    settings.max_pivots = integer(0, 50);
    expect_true_answer(hostile(random_, integer(1, k % 100 == 0 ? 40 : 8)).problem, settings);
  }
}

TEST_F(HostileTest, AnswersAreTrueForEveryGuess) {
  for (int k = 0; k < effort(200000) && !HasFailure(); ++k) {
    const int n = integer(1, 8);
    const Planted planted = hostile(random_, n);
    constexpr double kGuess[] = {0, -0.0, 1, -1, 1e-300, 1e300, NAN, INFINITY, -INFINITY};
    Eigen::VectorXd guess = Eigen::VectorXd::NullaryExpr(n, [&] { return kGuess[integer(0, k % 2 == 0 ? 8 : 3)]; });
    if (planted.z.size() > 0 && k % 3 == 0) guess = planted.z;
    Settings settings;
    settings.method = static_cast<Method>(integer(0, 4));
    expect_true_answer(planted.problem, settings, guess);
  }
}

}  // namespace lcp::testing::hostile_test
