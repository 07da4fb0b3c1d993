#include "simulation/infeasible_formulation.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "lcp/solve.h"
#include "lcp/status.h"
#include "support/tensors.h"

namespace lcp::training::infeasible_formulation_test {

using lcp::testing::everywhere;
using lcp::testing::largest;
using lcp::testing::numbers;
using physics::Problem;
using physics::SlidingBlock;
using torch::Tensor;

class InfeasibleFormulationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(4);
    v_ = torch::randn({2000}, torch::kDouble);
    u_ = torch::randn({2000}, torch::kDouble);
  }

  const SlidingBlock block_ = SlidingBlock::of(1, 0.5, 0.1, 8);
  Tensor v_, u_;
};

TEST_F(InfeasibleFormulationTest, HasTheMatrixOfTheNotes) {
  const Problem problem = infeasible_problem(v_, u_, block_);
  EXPECT_TRUE(torch::equal(problem.M, numbers({0, -0.5, 0, -0.5, 0, 0, -1, -1, 0}).view({3, 3})));
  const Tensor guess = torch::randn({2000, 3}, torch::kDouble).abs() * 10;
  EXPECT_LT((guess.matmul(problem.M.t()) + problem.q).amin(-1).max().item<double>(), 0);
}

// It lacks a feasible point, and not a property of its matrix.
TEST_F(InfeasibleFormulationTest, SolvesWhatIsFeasible) {
  const Problem problem = infeasible_problem(v_, u_, block_);
  EXPECT_TRUE(everywhere(solve(problem.M, problem.q.abs()).status == 0));
}

TEST_F(InfeasibleFormulationTest, IsReportedInfeasibleUnlessNothingHasToStopTheBlock) {
  const auto step = [&](const Tensor& u, const std::string& method) {
    SolveOptions options;
    options.method = method;
    return infeasible_step(infeasible_problem(v_, u, block_), options);
  };
  const auto hopeless = step(u_, "auto");
  EXPECT_TRUE(everywhere(hopeless.status == static_cast<int>(Status::kInfeasible)));
  EXPECT_TRUE(everywhere(hopeless.step.v_next.isnan()) && everywhere(hopeless.z.isnan()));
  EXPECT_TRUE(everywhere(step(u_, "lemke").status == static_cast<int>(Status::kNotFound)));
  for (const char* method : {"auto", "lemke"}) {
    const auto balanced = step(-2 * v_, method);
    EXPECT_TRUE(everywhere(balanced.status == 0));
    EXPECT_EQ(largest(balanced.z) + largest(balanced.step.v_next) + largest(balanced.residual), 0);
  }
}

TEST_F(InfeasibleFormulationTest, HasAFarkasVector) {
  const Tensor zero = torch::zeros({1}, torch::kDouble);
  const Problem problem =
      infeasible_problem(torch::cat({v_, zero}), torch::cat({u_, zero}), SlidingBlock::of(2.5, 0.1, 0.3, 9.81));
  const Tensor y = farkas_vector(problem);
  EXPECT_TRUE(everywhere(y >= 0));
  EXPECT_TRUE(everywhere(y.matmul(problem.M) <= 0));
  const Tensor product = (problem.q * y).sum(-1);
  EXPECT_TRUE(torch::equal(product, -problem.q.select(-1, 0).abs()));
  EXPECT_TRUE(everywhere(product.slice(0, 0, -1) < 0));
}

}  // namespace lcp::training::infeasible_formulation_test
