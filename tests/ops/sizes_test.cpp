#include <gtest/gtest.h>
#include <torch/types.h>

#include "lcp/certify.h"
#include "lcp/certify_contact.h"
#include "lcp/certify_friction.h"
#include "lcp/pad.h"
#include "lcp/solve.h"
#include "lcp/solve_contact.h"
#include "lcp/solve_friction.h"
#include "lcp/solve_mixed.h"
#include "support/errors.h"

namespace lcp {
namespace {

using torch::Tensor;

const std::vector<std::int64_t> kSizes = {2, 0, 3};

// tests/python/test_sizes.py has the rest; here each C++ function is held to the results of single problems.
TEST(SizesTest, EachLcpIsSolvedAsIfAlone) {
  std::vector<Tensor> M, q;
  for (const std::int64_t n : kSizes) {
    M.push_back(2 * torch::eye(n, torch::kDouble) + 0.1 * torch::ones({n, n}, torch::kDouble));
    q.push_back(torch::arange(n, torch::kDouble) - 1);
  }
  const auto [all_q, sizes] = pad(q, 1);
  const Tensor all_M = pad(M, 2).values;
  const std::vector<Tensor> z = unpad(solve(all_M, all_q, {.sizes = sizes}).z, sizes);
  const Certificate certificate = certify(all_M, all_q, torch::stack({z[0].new_zeros(3), z[2], z[2]}), {}, sizes);
  ASSERT_EQ(z.size(), kSizes.size());
  for (std::size_t b = 0; b < z.size(); ++b) EXPECT_TRUE(torch::equal(z[b], solve(M[b], q[b]).z));
  EXPECT_TRUE(torch::equal(
      certificate.rank,
      torch::stack({torch::zeros({}, torch::kLong), torch::zeros({}, torch::kLong), certify(M[2], q[2], z[2]).rank})));
  EXPECT_EQ(testing::error_of([&] { solve_mixed(all_M, all_M, all_M, all_M, all_q, all_q, {.sizes = sizes}); }),
            "sizes must be absent for solve_mixed");
}

TEST(SizesTest, EachSceneHasItsOwnContacts) {
  std::vector<Tensor> J, b, mu;
  const Tensor A = torch::eye(3, torch::kDouble), v = torch::tensor({1., 0., -1.}, torch::kDouble);
  for (const std::int64_t c : kSizes) {
    J.push_back(torch::eye(3, torch::kDouble).repeat({c, 1}));
    b.push_back(torch::zeros(3 * c, torch::kDouble));
    mu.push_back(torch::full(c, 0.5, torch::kDouble));
  }
  const auto [all_mu, sizes] = pad(mu, 1);
  const Tensor all_J = pad(J, 2).values, all_b = pad(b, 1).values, R = torch::full_like(all_b, 0.1);
  const FrictionResult rigid = solve_friction(A, v, all_J, all_b, all_mu, {.sizes = sizes});
  const ContactResult compliant = solve_contact(A, v, all_J, all_b, R, all_mu, {.sizes = sizes});
  const Tensor margin = certify_friction(A, v, all_J, all_b, all_mu, rigid.v, rigid.gamma, sizes).margin;
  const Tensor residual = certify_contact(A, v, all_J, all_b, R, all_mu, compliant.v, sizes).residual;
  for (std::int64_t k = 0; k < sizes.numel(); ++k) {
    const FrictionResult own = solve_friction(A, v, J[k], b[k], mu[k]);
    const Tensor own_R = torch::full_like(b[k], 0.1);
    const ContactResult own_compliant = solve_contact(A, v, J[k], b[k], own_R, mu[k]);
    EXPECT_TRUE(torch::equal(rigid.v[k], own.v));
    EXPECT_TRUE(torch::equal(unpad(rigid.gamma, 3 * sizes)[k], own.gamma));
    EXPECT_TRUE(torch::equal(compliant.v[k], own_compliant.v));
    EXPECT_TRUE(torch::equal(margin[k], certify_friction(A, v, J[k], b[k], mu[k], own.v, own.gamma).margin));
    EXPECT_TRUE(torch::equal(residual[k], certify_contact(A, v, J[k], b[k], own_R, mu[k], own_compliant.v).residual));
  }
}

}  // namespace
}  // namespace lcp
