// How many mixed LCPs of circuits, of mechanisms, and with planted solutions are solved, and that no claim is false.
// All of them have a solution, see support/circuits.h.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "solver/mixed.h"
#include "support/circuits.h"
#include "support/effort.h"

namespace lcp::testing::mixed_families_test {

struct Count {
  int problems = 0, solved = 0, wrong = 0;

  double share() const { return static_cast<double>(solved) / problems; }
  Count& operator+=(const Count& other) {
    problems += other.problems;
    solved += other.solved;
    wrong += other.wrong;
    return *this;
  }
};

Count count(int problems, const std::function<MixedProblem(std::mt19937_64&)>& next) {
  std::mt19937_64 random(17);
  Count count;
  for (; count.problems < problems; ++count.problems) {
    const MixedProblem problem = next(random);
    solver::Mixed mixed(problem.k, problem.size() - problem.k, {});
    Eigen::VectorXd v(problem.size()), y(problem.size());
    const Status status = mixed.solve(problem.H.data(), problem.h.data(), nullptr, v.data(), y.data());
    // The solver's own units differ from those of the check by less than a factor of 2.
    const bool solved = status == Status::kSolved && violation(problem, v) <= 2e-9;
    count.solved += solved;
    count.wrong += status == Status::kInfeasible || (status == Status::kSolved && !solved);
  }
  return count;
}

TEST(MixedFamiliesTest, CircuitsAreSolved) {
  Count all;
  for (const CircuitFamily family : kCircuitFamilies) {
    for (const double decades : {2.0, 12.0}) {
      for (const int pairs : {2, 6, 12, 30, 60}) {
        const Count of_family =
            count(effort(400), [&](std::mt19937_64& random) { return circuit(random, family, pairs, decades); });
        EXPECT_EQ(of_family.wrong, 0) << name_of(family) << ", " << pairs << " pairs, " << decades << " decades";
        EXPECT_GE(of_family.share(), 0.9) << name_of(family) << ", " << pairs << " pairs, " << decades << " decades";
        all += of_family;
      }
    }
  }
  EXPECT_LE(all.problems - all.solved, 1 + all.problems / 1000);  // 99.9 %, of few problems all but one
}

TEST(MixedFamiliesTest, MechanismsWithRedundantJointsAreSolved) {
  Count all;
  for (const double independence : {0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4}) {
    for (const int pairs : {1, 4, 8, 16}) {
      const Count of_family =
          count(effort(2000), [&](std::mt19937_64& random) { return mechanism(random, pairs, independence); });
      EXPECT_EQ(of_family.wrong, 0) << pairs << " pairs, " << independence;
      all += of_family;
    }
  }
  EXPECT_GE(all.share(), 0.998);
}

TEST(MixedFamiliesTest, AllOfFewPairsAreSolvedAlsoWhereAIsSingular) {
  for (const int k : {1, 2, 4, 6}) {
    for (const int n : {2, 4, 7, 10}) {
      for (const int singular : {0, 1, 2}) {
        if (singular > k) continue;
        const Count of_family =
            count(effort(2000), [&](std::mt19937_64& random) { return planted(random, k, n, singular); });
        EXPECT_EQ(of_family.wrong, 0) << k << " " << n << " " << singular;
        EXPECT_EQ(of_family.solved, of_family.problems) << k << " " << n << " " << singular;
      }
    }
  }
}

}  // namespace lcp::testing::mixed_families_test
