#include "lcp/nn/structured_matrix.h"

#include <gtest/gtest.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <string>

#include "lcp/solve.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::nn {
namespace {

using testing::everywhere;
using testing::Inputs;
using testing::numbers;
using torch::Tensor;

// M of a sliding block with dt = m.
Tensor friction_matrix() { return numbers({1, -1, 1, -1, 1, 1, -1, -1, 0}).view({3, 3}); }

StructuredMatrix make(std::int64_t n, SymmetricBasis basis, std::int64_t rank = 1) {
  StructuredMatrix matrix(StructuredMatrixOptions(n).rank(rank).basis(basis));
  matrix->to(torch::kDouble);
  return matrix;
}

class StructuredMatrixTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(4); }
  const torch::NoGradGuard no_grad_;
};

TEST_F(StructuredMatrixTest, IsThatOfASlidingBlock) {
  StructuredMatrix matrix = make(3, SymmetricBasis::kNonnegative);
  matrix->phi.copy_(numbers({-1, 1, 0}).view({3, 1}));
  matrix->alpha.zero_();
  matrix->beta.copy_(numbers({0, 1, 1}));
  EXPECT_TRUE(torch::equal(matrix->forward(), friction_matrix()));
}

// "sum phi phi' + eps I" of [Notes, 3.1.3] is symmetric, and so cannot be nearer to that M than this.
TEST_F(StructuredMatrixTest, NeedsItsAntisymmetricPartForASlidingBlock) {
  const Tensor M = friction_matrix();
  const auto [values, vectors] = torch::linalg_eigh((M + M.t()) / 2);
  const Tensor nearest = torch::matmul(vectors * values.relu(), vectors.t());
  EXPECT_NEAR((M - nearest).norm().item<double>(), 2, 1e-12);
  EXPECT_NEAR(M.norm().item<double>(), std::sqrt(8), 1e-12);
}

TEST_F(StructuredMatrixTest, AddsSquaresOfAlphaInTheOrderOfTheUpperTriangle) {
  StructuredMatrix matrix = make(3, SymmetricBasis::kNonnegative, 0);
  matrix->alpha.copy_(numbers({1, 2, 3, 4, 5, 6}));
  matrix->beta.copy_(numbers({100, 200, 300}));
  EXPECT_TRUE(torch::equal(matrix->forward(), numbers({1, 104, 209, -96, 16, 325, -191, -275, 36}).view({3, 3})));
  StructuredMatrix diagonal = make(3, SymmetricBasis::kDiagonal, 0);
  diagonal->alpha.copy_(numbers({1, 2, 3}));
  diagonal->beta.zero_();
  EXPECT_TRUE(torch::equal(diagonal->forward(), numbers({1, 4, 9}).diag()));
}

TEST_F(StructuredMatrixTest, IsSolvableWhereItIsFeasible) {
  for (const SymmetricBasis basis : {SymmetricBasis::kNone, SymmetricBasis::kDiagonal}) {
    for (const std::int64_t n : {2, 3, 6, 12}) {
      for (const std::int64_t rank : {0, 1, 2}) {
        const Tensor M = make(n, basis, rank)->forward();
        const Tensor z = torch::randn({500, n}, torch::kDouble).relu();
        const Tensor w = torch::randn({500, n}, torch::kDouble).relu();  // not complementary to z
        const Tensor q = w - torch::matmul(M, z.unsqueeze(-1)).squeeze(-1);
        EXPECT_TRUE(everywhere(solve(M, q).status == 0)) << n << " " << rank;
      }
    }
  }
}

TEST_F(StructuredMatrixTest, IsCopositive) {
  for (int repetition = 0; repetition < 50; ++repetition) {
    const Tensor M = make(4, SymmetricBasis::kNonnegative)->forward();
    const Tensor x = torch::rand({200, 4}, torch::kDouble);
    EXPECT_GT((torch::matmul(x, M) * x).sum(-1).min().item<double>(), 0);
  }
}

TEST_F(StructuredMatrixTest, MayHaveNoSolutionWithTheWholeBasis) {
  StructuredMatrix matrix = make(2, SymmetricBasis::kNonnegative, 0);
  matrix->alpha.copy_(numbers({0, 1, 0}));
  matrix->beta.zero_();
  const Tensor M = matrix->forward(), q = numbers({-1, 1}), z = numbers({0, 2});
  EXPECT_TRUE(everywhere(torch::matmul(M, z) + q >= 0));
  EXPECT_EQ(solve(M, q).status.item<int>(), 1);
}

TEST_F(StructuredMatrixTest, HasTheGradientOfCentralDifferences) {
  const torch::AutoGradMode enabled(true);
  StructuredMatrix matrix = make(3, SymmetricBasis::kNonnegative, 2);
  const auto at = [&](const Inputs& in) {
    matrix->phi = in[0];
    matrix->alpha = in[1];
    matrix->beta = in[2];
    return matrix->forward();
  };
  const Inputs here = {torch::randn({3, 2}, torch::kDouble), torch::randn({6}, torch::kDouble),
                       torch::randn({3}, torch::kDouble)};
  EXPECT_LT(testing::gradient_error(at, here), 1e-8);
}

TEST_F(StructuredMatrixTest, IsClonedSavedAndLoaded) {
  StructuredMatrix matrix = make(3, SymmetricBasis::kDiagonal);
  const auto copy = std::dynamic_pointer_cast<StructuredMatrixImpl>(matrix->clone());
  EXPECT_TRUE(torch::equal(copy->forward(), matrix->forward()));
  copy->phi.zero_();
  EXPECT_FALSE(torch::equal(copy->forward(), matrix->forward()));
  std::stringstream file;
  torch::save(matrix, file);
  StructuredMatrix loaded = make(3, SymmetricBasis::kDiagonal);
  torch::load(loaded, file);
  EXPECT_TRUE(torch::equal(loaded->forward(), matrix->forward()));
  std::stringstream text;
  text << matrix;
  EXPECT_EQ(text.str(), "lcp::nn::StructuredMatrix(size=3, rank=1, basis=diagonal)");
}

TEST_F(StructuredMatrixTest, RefusesImpossibleOptions) {
  EXPECT_THROW(make(0, SymmetricBasis::kNone), c10::Error);
  EXPECT_THROW(make(3, SymmetricBasis::kNone, -1), c10::Error);
}

}  // namespace
}  // namespace lcp::nn
