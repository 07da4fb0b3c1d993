// The ladder as tests call it, and what they expect of its answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::testing {

using solver::Ladder;
using solver::Settings;

struct LadderAnswer {
  Status status;
  Eigen::VectorXd z, w;
};

inline LadderAnswer solve(const Problem& problem, const Settings& settings = {}) {
  Ladder ladder(problem.n(), settings);
  LadderAnswer answer{Status::kNotFound, Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  answer.status = ladder.solve(problem.M.data(), problem.q.data(), nullptr, answer.z.data(), answer.w.data());
  return answer;
}

inline void expect_solution(const Problem& problem, const LadderAnswer& answer, double tolerance = 1e-9) {
  ASSERT_EQ(answer.status, Status::kSolved);
  EXPECT_LE(natural_residual(problem, answer.z), tolerance * problem.q.cwiseAbs().maxCoeff());
  for (int i = 0; i < problem.n(); ++i) {
    EXPECT_GE(answer.z[i], 0);
    EXPECT_GE(answer.w[i], 0);
    EXPECT_EQ(answer.z[i] * answer.w[i], 0);
  }
  EXPECT_LE((problem.M * answer.z + problem.q - answer.w).cwiseAbs().maxCoeff(),
            tolerance * std::max(problem.q.cwiseAbs().maxCoeff(), 1e-300));
}

inline void expect_nan(const LadderAnswer& answer) {
  EXPECT_TRUE(answer.z.array().isNaN().all());
  EXPECT_TRUE(answer.w.array().isNaN().all());
}
inline Settings with(Method method, std::optional<std::int64_t> max_pivots = std::nullopt) {
  Settings settings;
  settings.method = method;
  settings.max_pivots = max_pivots;
  return settings;
}

}  // namespace lcp::testing
