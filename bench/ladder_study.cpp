// Which rung of the ladder decides which LCPs, which mixed LCPs are solved, and whether small LCPs are solved wherever
// exact enumeration finds a solution: the tables of docs/solvers.md.
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "solver/ladder.h"
#include "solver/mixed.h"
#include "study.h"
#include "support/circuits.h"
#include "support/completeness.h"
#include "support/problems.h"

namespace {

using lcp::Status;
using lcp::solver::Ladder;
using lcp::testing::Problem;
using Random = std::mt19937_64;

struct Family {
  std::string name;
  int count;
  std::function<Problem(Random&)> make;
  lcp::solver::Settings settings = {};
};

// M and q with entries drawn by `entry`.
Problem filled(int n, const std::function<double()>& entry) {
  return {lcp::testing::RowMatrix::NullaryExpr(n, n, entry), Eigen::VectorXd::NullaryExpr(n, entry)};
}

Problem rounded_to_float(Problem problem) {
  problem.M = problem.M.cast<float>().cast<double>();
  problem.q = problem.q.cast<float>().cast<double>();
  return problem;
}

Problem in_random_units(Random& random, Problem problem, double orders) {
  std::uniform_real_distribution<double> exponent(-orders / 2, orders / 2);
  for (int i = 0; i < problem.n(); ++i) {
    const double row = std::pow(10, exponent(random));
    const double column = std::pow(10, exponent(random));
    problem.M.row(i) *= row;
    problem.M.col(i) *= column;
    problem.q[i] *= row;
  }
  return problem;
}

std::vector<Family> families() {
  const auto integers = [](int n) {
    return [n](Random& random) {
      std::uniform_int_distribution<int> entry(-3, 3);
      return filled(n, [&] { return static_cast<double>(entry(random)); });
    };
  };
  const auto normal = [](int n) {
    return [n](Random& random) {
      std::normal_distribution<double> entry;
      return filled(n, [&] { return entry(random); });
    };
  };
  const auto game = [](int n) {
    return [n](Random& random) { return lcp::testing::bimatrix_game(random, n / 2, n / 2); };
  };
  const auto definite = [](int n) {
    return [n](Random& random) { return lcp::testing::positive_definite(random, n); };
  };
  const auto friction = [](Random& random) { return lcp::testing::friction_block(random); };
  return {
      {"friction blocks, n = 6..40", 8000, friction},
      {"friction blocks in float32",
       4000,
       [&](Random& r) { return rounded_to_float(friction(r)); },
       {.tolerance = 1e-4, .max_pivots = {}, .single_precision = true}},
      {"symmetric positive definite, n = 8", 2000, definite(8)},
      {"symmetric positive definite, n = 32", 500, definite(32)},
      {"symmetric positive definite, n = 128", 50, definite(128)},
      {"positive definite, units of 16 orders, n = 8", 2000,
       [=](Random& r) { return in_random_units(r, definite(8)(r), 16); }},
      {"diagonal, units of 32 orders, n = 8", 2000,
       [](Random& r) {
         std::normal_distribution<double> entry;
         const Eigen::VectorXd q = Eigen::VectorXd::NullaryExpr(8, [&] { return entry(r); });
         return in_random_units(r, {lcp::testing::RowMatrix::Identity(8, 8), q}, 32);
       }},
      {"Murty's example, n = 32", 1, [](Random&) { return lcp::testing::murty(32); }},
      {"bimatrix games in cost form, n = 10", 100, game(10)},
      {"bimatrix games in cost form, n = 20", 100, game(20)},
      {"bimatrix games in cost form, n = 40", 100, game(40)},
      {"integers of -3..3, n = 2", 50000, integers(2)},
      {"integers of -3..3, n = 4", 20000, integers(4)},
      {"integers of -3..3, n = 8", 2000, integers(8)},
      {"integers of -3..3, n = 12", 300, integers(12)},
      {"normal entries, n = 4", 20000, normal(4)},
      {"normal entries, n = 10", 500, normal(10)},
      {"normal entries, n = 20", 100, normal(20)},
  };
}

struct MixedFamily {
  std::string name;
  int count;
  std::function<lcp::testing::MixedProblem(Random&)> make;
};

std::vector<MixedFamily> mixed_families() {
  using namespace lcp::testing;
  const auto integer = [](Random& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<MixedFamily> all;
  for (const CircuitFamily family : kCircuitFamilies) {
    for (const int decades : {2, 12}) {
      all.push_back({std::string(name_of(family)) + ", " + std::to_string(decades) + " decades", 5000,
                     [=](Random& random) { return circuit(random, family, integer(random, 2, 60), decades); }});
    }
  }
  all.push_back({"redundant joints, up to 10^-16..10^-4", 20000, [=](Random& random) {
                   const double independence = std::pow(10, std::uniform_real_distribution<double>(-16, -4)(random));
                   return mechanism(random, integer(random, 1, 20), independence);
                 }});
  all.push_back({"normal entries, A singular, k <= 6, n <= 10", 20000, [=](Random& random) {
                   const int k = integer(random, 1, 6);
                   return planted(random, k, integer(random, 1, 10), integer(random, 1, std::min(k, 3)));
                 }});
  return all;
}

void study_ladder() {
  std::printf(
      "| problems | count | solved | infeasible | not found | decided by | us each |\n|---|---|---|---|---|---|---|\n");
  for (const Family& family : families()) {
    Random random(77);
    std::map<Status, int> statuses;
    std::map<const lcp::solver::Rung*, int> rungs;  // in the order of the table
    std::chrono::duration<double, std::micro> spent(0);
    for (int k = 0; k < family.count; ++k) {
      const Problem problem = family.make(random);
      Ladder ladder(problem.n(), family.settings);
      std::vector<double> z(problem.n()), w(problem.n());
      const auto start = std::chrono::steady_clock::now();
      const Status status = ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
      spent += std::chrono::steady_clock::now() - start;
      ++statuses[status];
      if (status == Status::kSolved || status == Status::kInfeasible) ++rungs[ladder.rung()];
    }
    std::string decided;
    for (const auto& [rung, count] : rungs) {
      if (!decided.empty()) decided += ", ";
      decided += std::string(rung->name) + " " + std::to_string(count);
    }
    std::printf("| %s | %d | %d | %d | %d | %s | %.1f |\n", family.name.c_str(), family.count,
                statuses[Status::kSolved], statuses[Status::kInfeasible],
                statuses[Status::kNotFound] + statuses[Status::kPivotLimit], decided.c_str(),
                spent.count() / family.count);
    std::fflush(stdout);
  }
}

void study_mixed() {
  std::printf(
      "| problems | count | solved | infeasible | not found | false | us each | slowest "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const MixedFamily& family : mixed_families()) {
    Random random(77);
    std::map<Status, int> statuses;
    int wrong = 0;
    double spent = 0, slowest = 0;
    for (int k = 0; k < family.count; ++k) {
      const lcp::testing::MixedProblem problem = family.make(random);
      lcp::solver::Mixed mixed(problem.k, problem.size() - problem.k, {});
      Eigen::VectorXd v(problem.size()), y(problem.size());
      const auto start = std::chrono::steady_clock::now();
      const Status status = mixed.solve(problem.H.data(), problem.h.data(), nullptr, v.data(), y.data());
      const double time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
      spent += time;
      slowest = std::max(slowest, time);
      ++statuses[status];
      wrong += status == Status::kInfeasible ||
               (status == Status::kSolved && !(lcp::testing::violation(problem, v) <= 2e-9));
    }
    std::printf("| %s | %d | %d | %d | %d | %d | %.0f | %.0f |\n", family.name.c_str(), family.count,
                statuses[Status::kSolved], statuses[Status::kInfeasible],
                statuses[Status::kNotFound] + statuses[Status::kPivotLimit], wrong, spent / family.count, slowest);
    std::fflush(stdout);
  }
}

void study_completeness() {
  using lcp::testing::Verdict;
  std::printf(
      "| problems | dtype | count | solved | infeasible | without solution | not representable | missed | false "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  for (const bool single_precision : {false, true}) {
    lcp::solver::Settings settings;
    settings.single_precision = single_precision;
    settings.tolerance = lcp::solver::default_tolerance(single_precision);
    for (const lcp::testing::IntegerFamily& family : lcp::testing::integer_families()) {
      constexpr int kCount = 65000;
      Random random(5);
      std::map<Verdict, int> verdicts;
      for (int k = 0; k < kCount; ++k) ++verdicts[verdict(draw(random, family), settings)];
      const std::string sizes = family.smallest == family.largest
                                    ? std::to_string(family.largest)
                                    : std::to_string(family.smallest) + ".." + std::to_string(family.largest);
      std::printf("| %s, n = %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", family.name, sizes.c_str(),
                  single_precision ? "float32" : "float64", kCount, verdicts[Verdict::kSolved],
                  verdicts[Verdict::kInfeasible], verdicts[Verdict::kUnsolvable], verdicts[Verdict::kUnrepresentable],
                  verdicts[Verdict::kMissed], verdicts[Verdict::kFalse]);
      std::fflush(stdout);
    }
  }
}

void print_tables() {
  study_ladder();
  std::printf("\n");
  study_mixed();
  std::printf("\n");
  study_completeness();
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::bench::run_study(
      argc, argv,
      "Prints the tables of docs/solvers.md: which rung of the ladder decides which LCPs, which mixed LCPs are "
      "solved, and whether small LCPs are solved wherever exact enumeration finds a solution. Takes about a quarter of "
      "an hour.",
      [](CLI::App&) {}, print_tables);
}
