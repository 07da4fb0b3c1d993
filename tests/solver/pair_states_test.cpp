#include "solver/pair_states.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lcp::solver::pair_states_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using States = std::vector<std::int8_t>;

States find(const std::vector<double>& M, const std::vector<double>& q, const std::vector<double>& z,
            const std::vector<double>& w, int num_equations = 0, bool single_precision = false) {
  States states(q.size());
  PairStates(static_cast<int>(q.size()), num_equations, single_precision)
      .find(M.data(), q.data(), z.data(), w.data(), states.data());
  return states;
}

TEST(PairStatesTest, TellsBasicNonbasicAndTiedPairs) {
  EXPECT_EQ(find({2, 0, 0, 0, 1, 0, 0, 0, 1}, {-2, 3, 0}, {1, 0, 0}, {0, 3, 0}),
            (States{PairState::kBasic, PairState::kNonbasic, PairState::kTied}));
}

TEST(PairStatesTest, TakesTheRoundOffOfADegenerateVariableForATie) {
  // z = (0, 1) is degenerate in its first pair, whose z a solver may leave at 1e-17.
  EXPECT_EQ(find({2, 1, 1, 1}, {-1, -1}, {1e-17, 1}, {0, 0}), (States{PairState::kTied, PairState::kBasic}));
}

TEST(PairStatesTest, KeepsASmallVariableThatBalancesAnotherInARowWithoutQ) {
  // The second row balances z_0 = 1e-17 against z_1; the first hardly sees z_0.
  EXPECT_EQ(find({1, 1, 0, -1, 1e-17, 1, 0, 1, 1}, {-1, 0, -1}, {1e-17, 1, 0}, {0, 0, 0})[0], PairState::kBasic);
}

TEST(PairStatesTest, TakesRoundOffForATieWhereNothingElseIsInARowWithoutQ) {
  // The cone of an open contact, mu z_0 - z_1 >= 0 with q = 0, whose forces a solver may leave at 1e-31: nothing in
  // that row could tell their size, the first row can.
  EXPECT_EQ(find({2, 1, 1, 0.5, -1, 0, 0, 0, 1}, {3, 0, -1}, {0, 1e-31, 1}, {3, 0, 0})[1], PairState::kTied);
}

TEST(PairStatesTest, TreatsQWithinTheRoundingOfItsRowAsZero) {
  // The problem of KeepsASmallVariableThatBalancesAnotherInARowWithoutQ, with the rounding error of a cancellation as
  // q_1.
  EXPECT_EQ(find({1, 1, 0, -1, 1e-17, 1, 0, 1, 1}, {-1, 1e-33, -1}, {1e-17, 1, 0}, {0, 0, 0})[0], PairState::kBasic);
}

TEST(PairStatesTest, TellsTiesFromSmallValuesByThePrecisionOfTheEntries) {
  for (const double w : {0.0, 1e-15, 1e-10, 1e-6, 1e-3}) {
    for (const bool single_precision : {false, true}) {
      const States states = find({1, 0, 0.5, 1}, {-1, w - 0.5}, {1, 0}, {0, w}, 0, single_precision);
      EXPECT_EQ(states[0], PairState::kBasic);
      EXPECT_EQ(states[1] == PairState::kTied, w < (single_precision ? 1e-5 : 1e-14)) << w;
    }
  }
}

TEST(PairStatesTest, TakesEquationsForBasicWhateverTheirUnknowns) {
  for (const double x : {-3.0, 0.0, 1e-30, 5.0}) {
    EXPECT_EQ(find({1, 0, 0, 0, 1, 0, 0, 0, 1}, {-x, x, 1}, {x, -x, 0}, {0, 0, 1}, 2),
              (States{PairState::kBasic, PairState::kBasic, PairState::kNonbasic}));
  }
}

TEST(PairStatesTest, RefinesAZThatIsTooInaccurateToTell) {
  // z = (1, 1) and w_3 = 0 exactly, of which the solver is 10^-12 away.
  const std::vector<double> M = {2, 1, 0, 1, 2, 0, 1, -1, 1};
  EXPECT_EQ(find(M, {-3, -3, 0.5}, {1 + 1e-12, 1 - 2e-12, 0}, {0, 0, 0.5 + 3e-12})[2], PairState::kNonbasic);
  EXPECT_EQ(find({2, 1, 0, 1, 2, 0, 1, 0, 1}, {-3, -3, -1}, {1 + 1e-12, 1 - 2e-12, 0}, {0, 0, 1e-12}),
            (States{PairState::kBasic, PairState::kBasic, PairState::kTied}));
  // A true value of that size stays what it is.
  EXPECT_EQ(find({2, 1, 0, 1, 2, 0, 1, 0, 1}, {-3, -3, 0x1p-40 - 1}, {1, 1, 0}, {0, 0, 0x1p-40})[2],
            PairState::kNonbasic);
  EXPECT_EQ(find({2, 1, 1, 1}, {-2, 0x1p-40 - 1}, {1 + 0x1p-40 - 0x1p-39, 0x1p-40}, {0, 0})[1], PairState::kTied);
}

TEST(PairStatesTest, RefinesNoZBelowZero) {
  // The exact z_0 = .3 - 3 x .1 is negative by the rounding of .1 and .3, and would make w_2 = -z_0 positive.
  EXPECT_EQ(find({1, 0.1, 0, 0, 1, 0, -1, 0, 1}, {-0.3, -3, 0}, {1e-13, 3, 0}, {0, 0, 0}),
            (States{PairState::kTied, PairState::kBasic, PairState::kTied}));
}

TEST(PairStatesTest, TakesWForZeroWhereOnlyTheRoundOffOfTiesMakesItPositive) {
  // z_1 = 1e-17 is round-off in the first row, and all that there is in the second.
  EXPECT_EQ(find({1, 0, 1, 1}, {3, 0}, {1e-17, 0}, {0, 1e-17})[1], PairState::kTied);
}

TEST(PairStatesTest, MarksAnUnsolvedElement) {
  EXPECT_EQ(find({-1, 0, 0, 1}, {-1, 1}, {kNaN, kNaN}, {kNaN, kNaN}),
            (States{PairState::kUnsolved, PairState::kUnsolved}));
}

}  // namespace lcp::solver::pair_states_test
