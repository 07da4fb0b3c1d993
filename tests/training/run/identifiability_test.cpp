#include "run/identifiability.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace lcp::training::identifiability_test {

using torch::Tensor;

TEST(IdentifiabilityTest, NamesTheDirectionsThatResidualsDoNotDetermine) {
  IdentifiabilityReport report;
  report.add(torch::tensor({1., 1., 0., 2., 2., 0.}, torch::kDouble).view({2, 3}), {"a", "b", "c"});
  report.add(torch::tensor({3.}, torch::kDouble).view({1, 1}), {"d"});
  const nlohmann::json found = report.json();
  EXPECT_EQ(found["parameters"], 4);
  EXPECT_EQ(found["identifiable_parameters"], 2);
  EXPECT_EQ(found["unidentifiable_directions"], nlohmann::json({"c", "a - b"}));
}

TEST(IdentifiabilityTest, DeterminesNothingWithoutResiduals) {
  const Tensor x = torch::ones({2}, torch::kDouble).requires_grad_();
  const Tensor none = (2 * x).index_select(0, torch::empty({0}, torch::kLong));
  const Tensor J = jacobian(none, {x});
  EXPECT_EQ(J.sizes(), (std::vector<std::int64_t>{0, 2}));
  IdentifiabilityReport report;
  report.add(J, {"a", "b"});
  EXPECT_EQ(report.json()["identifiable_parameters"], 0);
  EXPECT_EQ(report.json()["unidentifiable_directions"], nlohmann::json({"a", "b"}));
}

}  // namespace lcp::training::identifiability_test
