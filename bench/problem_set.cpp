#include "problem_set.h"

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

namespace lcp::bench {
namespace {

using testing::Problem;
using testing::RowMatrix;
using Random = std::mt19937_64;

constexpr double kTolerance = 1e-9;
constexpr int kBandwidth = 25;

double normal(Random& random) { return std::normal_distribution<double>()(random); }

std::function<Problem(Random&)> generator(const std::string& name) {
  const auto mark = name.find('_');
  const std::string kind = name.substr(0, mark);
  const int n = mark == std::string::npos ? 0 : std::stoi(name.substr(mark + 1));
  if (kind == "sliding" && n == 3) return [](Random& random) { return testing::sliding_block(normal(random), 0.7); };
  if (kind == "p" && n > 0) {
    return [n](Random& random) {
      RowMatrix M = testing::p_matrix(random, n);
      return Problem{std::move(M), Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
    };
  }
  if (kind == "definite" && n > 0) return [n](Random& random) { return testing::positive_definite(random, n); };
  if (kind == "friction" && (n == 4 || n == 6 || n == 24)) {
    const int contacts = n == 24 ? 4 : 1;
    return [=](Random& random) { return testing::friction_block(random, contacts, n / contacts - 2); };
  }
  if (kind == "banded" && n > 0 && n % kBandwidth == 0) {
    return [n](Random&) { return testing::obstacle(n / kBandwidth, kBandwidth); };
  }
  throw std::invalid_argument("no problem set is called " + name);
}

}  // namespace

const ProblemSet& problem_set(const std::string& name, std::int64_t count) {
  static std::map<std::pair<std::string, std::int64_t>, ProblemSet> sets;
  const auto [entry, is_new] = sets.try_emplace({name, count});
  ProblemSet& set = entry->second;
  if (!is_new) return set;
  Random random(1);
  const auto make = generator(name);
  for (std::int64_t k = 0; k < count; ++k) set.problems.push_back(make(random));
  const std::int64_t n = set.problems.front().n();
  set.M = at::empty({count, n, n}, at::kDouble);
  set.q = at::empty({count, n}, at::kDouble);
  for (std::int64_t k = 0; k < count; ++k) {
    const Problem& problem = set.problems[k];
    std::copy_n(problem.M.data(), n * n, set.M.mutable_data_ptr<double>() + k * n * n);
    std::copy_n(problem.q.data(), n, set.q.mutable_data_ptr<double>() + k * n);
  }
  return set;
}

CheckResult check(const ProblemSet& set, const at::Tensor& z, const at::Tensor& claims) {
  const at::Tensor w = at::matmul(set.M, z.unsqueeze(-1)).squeeze(-1) + set.q;
  const at::Tensor right = at::minimum(z, w).abs().amax(-1) <= kTolerance * set.q.abs().amax(-1);  // false for NaN
  const std::int64_t solved = (claims & right).sum().item<std::int64_t>();
  return {solved, claims.sum().item<std::int64_t>() - solved};
}

}  // namespace lcp::bench
