#include "network/evaluation.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "support/tensors.h"

namespace lcp::training::evaluation_test {

using testing::everywhere;
using testing::numbers;
using torch::Tensor;

const MotionColumns kColumns{{"x"}, {"v"}, {"u"}, {"v_next"}};

// v_next = v + u - x / 10.
Tensor next(const Tensor& x) { return (x.select(-1, 1) + x.select(-1, 2) - x.select(-1, 0) / 10).unsqueeze(-1); }

TEST(EvaluationTest, RollsOutFromTheFirstStateAndTheInputs) {
  const auto advance = [](const Tensor& x, const Tensor& v_next) { return x.slice(-1, 0, 1) + 0.5 * v_next; };
  Tensor x = numbers({1, 2, 0.3}).view({1, 3});
  std::vector<Tensor> states, velocities;
  for (const double u : {0.3, -0.2, 0.7}) {
    x = at::cat({x.slice(1, 0, 2), numbers({u}).view({1, 1})}, 1);
    states.push_back(x);
    velocities.push_back(next(x));
    x = at::cat({advance(x, velocities.back()), velocities.back(), x.slice(1, 2)}, 1);
  }
  LongMotion motion{at::stack(states), at::stack(velocities), advance};
  EXPECT_TRUE(torch::equal(roll_out(next, motion, kColumns), motion.v_next));
  // Velocities after the first state are not read, positions only where they cannot be computed.
  motion.x.slice(0, 1).slice(2, 1, 2).fill_(99);
  EXPECT_TRUE(torch::equal(roll_out(next, motion, kColumns), motion.v_next));
  motion.advance = nullptr;
  EXPECT_TRUE(torch::equal(roll_out(next, motion, kColumns), motion.v_next));
  motion.x.slice(0, 1).slice(2, 0, 1).fill_(99);
  EXPECT_FALSE(torch::equal(roll_out(next, motion, kColumns), motion.v_next));
}

TEST(EvaluationTest, TrajectoriesOfAFileMayDifferInLength) {
  const Tensor x = at::arange(15, torch::kDouble).view({5, 3});
  const Motion motion{x, next(x)};
  const LongMotion both = trajectories(motion, torch::tensor({4, 4, 2, 4, 2}, torch::kLong));
  ASSERT_EQ(both.x.sizes(), (std::vector<std::int64_t>{3, 2, 3}));
  EXPECT_TRUE(torch::equal(both.x.select(1, 1), x.index_select(0, torch::tensor({0, 1, 3}, torch::kLong))));
  EXPECT_TRUE(everywhere(both.x[2][0].isnan()));
  const Tensor predicted = roll_out(next, both, kColumns);
  EXPECT_TRUE(torch::equal(predicted.isnan(), both.v_next.isnan()));
  const Table table = rollout_table(both, predicted, predicted, kColumns);
  EXPECT_EQ(table.names, (std::vector<std::string>{"rollout", "step", "v", "v_network", "v_black_box"}));
  EXPECT_EQ(table["rollout"], (std::vector<double>{0, 0, 1, 1, 1}));
  EXPECT_EQ(table["step"], (std::vector<double>{0, 1, 0, 1, 2}));
}

TEST(EvaluationTest, CountsStepsThatEndAtRest) {
  const Tensor truth = numbers({0, 0, 0, 1, 0, 0}).view({3, 2}),
               predicted = numbers({0, 0, 0, 1, 1e-9, 0}).view({3, 2});
  EXPECT_EQ(resting_fraction(predicted, truth, 0), 0.5);
  EXPECT_EQ(resting_fraction(predicted, truth, 1e-8), 1);
  EXPECT_TRUE(std::isnan(resting_fraction(predicted, truth + 1, 0)));
}

}  // namespace lcp::training::evaluation_test
