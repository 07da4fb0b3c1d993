// How many LCPs and mixed LCPs the peers solve beside TorchLCP, family by family: the tables of docs/solvers.md.
//
// Every answer is judged by the rule of solver/verify.h. A peer runs in a process of its own, so that where it crashes
// or takes too long, it loses one problem.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "peers.h"
#include "solver/mixed.h"
#include "study.h"
#include "support/claims.h"

namespace {

using lcp::Status;
using lcp::bench::PeerSolverOf;
using lcp::testing::MixedProblem;
using lcp::testing::Problem;
using lcp::testing::RowMatrix;
using Random = std::mt19937_64;

// Of the rule by which all are judged. TorchLCP has to keep the first; peers, which stop earlier, the second.
constexpr double kTolerance = 1e-9, kLooseTolerance = 1e-6;
// Seconds that a peer has for a problem.
constexpr unsigned kLimit = 10;

template <class P>
struct Family {
  std::string name;
  std::vector<P> problems;
};

template <class Make>
auto drawn(const std::string& name, int count, Make make) {
  Random random(77);
  Family<decltype(make(random))> family{name, {}};
  for (int k = 0; k < count; ++k) family.problems.push_back(make(random));
  return family;
}

int integer(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double normal(Random& random) { return std::normal_distribution<double>()(random); }

// M and q with entries drawn by `entry`.
Problem filled(int n, const std::function<double()>& entry) {
  return {RowMatrix::NullaryExpr(n, n, entry), Eigen::VectorXd::NullaryExpr(n, entry)};
}

Problem in_random_units(Random& random, Problem problem, double orders) {
  for (int i = 0; i < problem.n(); ++i) {
    const double row = std::pow(10, uniform(random, -orders / 2, orders / 2));
    problem.M.row(i) *= row;
    problem.q[i] *= row;
    problem.M.col(i) *= std::pow(10, uniform(random, -orders / 2, orders / 2));
  }
  return problem;
}

Problem contacts(Random& random, bool separating) {
  constexpr int kShapes[][2] = {{1, 2}, {2, 2}, {1, 6}};
  const auto& [contacts, directions] = kShapes[integer(random, 0, 2)];
  return lcp::testing::contacts_of(random, {contacts, directions, 1e6, 0.1, 1e8, 1, separating});
}

Problem hostile(Random& random) {
  for (;;) {
    const lcp::testing::Planted planted = lcp::testing::hostile(random, integer(random, 1, 8));
    if (planted.z.size() > 0 && planted.problem.M.allFinite() && planted.problem.q.allFinite()) return planted.problem;
  }
}

std::vector<Family<Problem>> families() {
  using namespace lcp::testing;
  std::vector<Family<Problem>> all = {
      drawn("friction blocks, n = 6..40", 1000, [](Random& r) { return friction_block(r); }),
      drawn("contacts, mass ratio 10⁶, μ to 10⁸, touching", 1000, [](Random& r) { return contacts(r, false); }),
      drawn("the same, separating", 1000, [](Random& r) { return contacts(r, true); }),
      drawn("rows parallel up to 10⁻⁸..10⁻³, n = 4", 1000,
            [](Random& r) {
              return contacts_of(r, {1, 2, 1, 0.5, 0.5, std::pow(10, uniform(r, -8, -3)), integer(r, 0, 1) == 1});
            }),
      drawn("symmetric positive definite, n = 8", 1000, [](Random& r) { return positive_definite(r, 8); }),
      drawn("the same in units of 16 orders", 1000,
            [](Random& r) { return in_random_units(r, positive_definite(r, 8), 16); }),
      drawn("diagonal, units of 32 orders, n = 8", 1000,
            [](Random& r) {
              const Eigen::VectorXd q = Eigen::VectorXd::NullaryExpr(8, [&] { return normal(r); });
              return in_random_units(r, {RowMatrix::Identity(8, 8), q}, 32);
            }),
      drawn("symmetric semidefinite, half rank, planted, n = 2..20", 1000,
            [](Random& r) {
              const int n = integer(r, 2, 20);
              return plant(r, low_rank(r, n, n / 2, false), true).problem;
            }),
      drawn("semidefinite, half rank, planted, n = 2..20", 1000,
            [](Random& r) {
              const int n = integer(r, 2, 20);
              return plant(r, low_rank(r, n, n / 2, true), true).problem;
            }),
      drawn("copositive, planted, n = 2..20", 1000,
            [](Random& r) { return plant(r, copositive(r, integer(r, 2, 20)), true).problem; }),
      drawn("hostile, planted, n = 1..8", 1000, hostile),
      drawn("subset sums, n = 4..10", 200, [](Random& r) { return subset_sum(r, integer(r, 2, 8)).problem; })};
  for (const int n : {10, 20}) {
    all.push_back(drawn("bimatrix games in cost form, n = " + std::to_string(n), 100,
                        [=](Random& r) { return bimatrix_game(r, n / 2, n / 2); }));
  }
  for (const int n : {4, 8}) {
    all.push_back(drawn("integers of -3..3, n = " + std::to_string(n), 1000,
                        [=](Random& r) { return filled(n, [&] { return double(integer(r, -3, 3)); }); }));
  }
  for (const int n : {4, 10}) {
    all.push_back(drawn("normal entries, n = " + std::to_string(n), 1000,
                        [=](Random& r) { return filled(n, [&] { return normal(r); }); }));
  }
  Family<Problem> pivots{"exponential paths: Murty, Fathi, n = 1..32", {}}, handicap{"Csizmadia, n = 1..32", {}},
      cycles{"cycles: Morris, Ben Gharbia and Gilbert, Bard, n = 3..33", {bard_cycle().problem}};
  for (int n = 1; n <= 32; ++n) {
    pivots.problems.insert(pivots.problems.end(), {murty(n), fathi(n)});
    handicap.problems.push_back(csizmadia(n).problem);
  }
  for (int n = 3; n <= 33; n += 2) {
    cycles.problems.insert(cycles.problems.end(), {morris(n).problem, newton_min_cycle(n).problem});
  }
  all.insert(all.end(), {pivots, handicap, cycles});
  return all;
}

std::vector<Family<MixedProblem>> mixed_families() {
  using namespace lcp::testing;
  std::vector<Family<MixedProblem>> all;
  for (const CircuitFamily family : kCircuitFamilies) {
    for (const int pairs : {10, 60}) {
      for (const int decades : {2, 12}) {
        all.push_back(drawn(std::string(name_of(family)) + ", n <= " + std::to_string(pairs) + ", " +
                                std::to_string(decades) + " decades",
                            500, [=](Random& r) { return circuit(r, family, integer(r, 2, pairs), decades); }));
      }
    }
  }
  all.push_back(drawn("redundant joints, up to 10⁻¹⁶..10⁻⁴, n <= 10", 500, [](Random& r) {
    const double independence = std::pow(10, uniform(r, -16, -4));
    return mechanism(r, integer(r, 1, 10), independence);
  }));
  all.push_back(drawn("normal entries, A singular, k <= 6, n <= 10", 500, [](Random& r) {
    const int k = integer(r, 1, 6);
    return planted(r, k, integer(r, 1, 10), integer(r, 1, std::min(k, 3)));
  }));
  return all;
}

// What the tables need to know of both kinds of problems: the matrix, the constants, and how many equations come first.
struct System {
  const RowMatrix& H;
  const Eigen::VectorXd& h;
  int num_equations;

  int size() const { return static_cast<int>(h.size()); }
  int pairs() const { return size() - num_equations; }
};
System system_of(const Problem& problem) { return {problem.M, problem.q, 0}; }
System system_of(const MixedProblem& problem) { return {problem.H, problem.h, problem.k}; }

bool obeys_rule(const Problem& problem, const Eigen::VectorXd& z, double tolerance) {
  return lcp::testing::is_solution(problem, z, tolerance);
}
bool obeys_rule(const MixedProblem& problem, const Eigen::VectorXd& v, double tolerance) {
  return lcp::testing::violation(problem, v) <= tolerance;
}

enum class Verdict { kSolved, kSolvedLoosely, kInfeasible, kNotFound, kFalse, kStopped };

// Of a v that a peer claims to be a solution, either as it is, but for z < 0, or with z_i = 0 in the rows that do not
// hold as equations: an iterative method leaves a small z_i there.
template <class P>
Verdict verdict_of_claim(const P& problem, Eigen::VectorXd v) {
  const System system = system_of(problem);
  auto z = v.tail(system.pairs());
  z = z.cwiseMax(0);
  if (obeys_rule(problem, v, kTolerance)) return Verdict::kSolved;
  if (obeys_rule(problem, v, kLooseTolerance)) return Verdict::kSolvedLoosely;
  const Eigen::VectorXd w = system.H * v + system.h;
  const Eigen::VectorXd terms = system.H.cwiseAbs() * v.cwiseAbs() + system.h.cwiseAbs();
  z = (w.array() > kLooseTolerance * terms.array()).tail(system.pairs()).select(0, z);
  if (obeys_rule(problem, v, kTolerance)) return Verdict::kSolved;
  return obeys_rule(problem, v, kLooseTolerance) ? Verdict::kSolvedLoosely : Verdict::kFalse;
}

Verdict verdict_of_ours(const Problem& problem) {
  const lcp::testing::Answer answer = lcp::testing::solve(problem);
  if (!lcp::testing::answer_error(problem, {}, answer).empty()) return Verdict::kFalse;
  if (answer.status == Status::kInfeasible) return Verdict::kInfeasible;
  return answer.status == Status::kSolved ? Verdict::kSolved : Verdict::kNotFound;
}

// All mixed problems here have a solution.
Verdict verdict_of_ours(const MixedProblem& problem) {
  lcp::solver::Mixed mixed(problem.k, problem.size() - problem.k, {});
  Eigen::VectorXd v(problem.size()), y(problem.size());
  const Status status = mixed.solve(problem.H.data(), problem.h.data(), nullptr, v.data(), y.data());
  if (status == Status::kInfeasible) return Verdict::kFalse;
  if (status != Status::kSolved) return Verdict::kNotFound;
  return lcp::testing::violation(problem, v) <= 2e-9 ? Verdict::kSolved : Verdict::kFalse;
}

// In the process that runs a peer: solves the problems from `first` on and writes the claims and the solutions.
template <class P>
[[noreturn]] void run(lcp::bench::Peer& peer, const std::vector<P>& problems, std::size_t first, int out) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(open("/dev/null", O_WRONLY), stream);
  std::FILE* file = fdopen(out, "w");
  for (std::size_t k = first; k < problems.size(); ++k) {
    Eigen::VectorXd v(system_of(problems[k]).size());
    alarm(kLimit);
    const bool claims = peer.solve(k, v.data());
    std::fwrite(&claims, sizeof claims, 1, file);
    std::fwrite(v.data(), sizeof(double), v.size(), file);
    std::fflush(file);
  }
  _exit(0);
}

template <class P>
std::vector<Verdict> verdicts_of(const PeerSolverOf<P>& solver, const std::vector<P>& problems) {
  const auto peer = solver.prepare(problems);
  peer->restore();
  std::vector<Verdict> verdicts;
  while (verdicts.size() < problems.size()) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) run(*peer, problems, verdicts.size(), ends[1]);
    close(ends[1]);
    std::FILE* file = fdopen(ends[0], "r");
    while (verdicts.size() < problems.size()) {
      const P& problem = problems[verdicts.size()];
      bool claims = false;
      Eigen::VectorXd v(system_of(problem).size());
      const auto size = static_cast<std::size_t>(v.size());
      if (std::fread(&claims, sizeof claims, 1, file) != 1) break;
      if (std::fread(v.data(), sizeof(double), size, file) != size) break;
      verdicts.push_back(claims ? verdict_of_claim(problem, v) : Verdict::kNotFound);
    }
    std::fclose(file);
    waitpid(child, nullptr, 0);
    if (verdicts.size() < problems.size()) verdicts.push_back(Verdict::kStopped);
  }
  return verdicts;
}

template <class P>
bool takes(const PeerSolverOf<P>& solver, const std::vector<P>& problems) {
  return std::all_of(problems.begin(), problems.end(), [&](const P& problem) {
    const System system = system_of(problem);
    return system.pairs() <= solver.largest_n && (!solver.needs_symmetric || system.H.isApprox(system.H.transpose()));
  });
}

std::string cell(const std::vector<Verdict>& verdicts) {
  const auto number = [&](Verdict verdict) { return std::count(verdicts.begin(), verdicts.end(), verdict); };
  std::string text = std::to_string(number(Verdict::kSolved) + number(Verdict::kSolvedLoosely));
  if (number(Verdict::kFalse) > 0) text += ", " + std::to_string(number(Verdict::kFalse)) + " false";
  if (number(Verdict::kStopped) > 0) text += ", " + std::to_string(number(Verdict::kStopped)) + " stopped";
  return text;
}

template <class P>
void print_table(const std::vector<Family<P>>& all, const std::vector<PeerSolverOf<P>>& solvers) {
  std::string header = "| problems | count | TorchLCP | infeasible | not found |", rule = "|---|---|---|---|---|";
  for (const PeerSolverOf<P>& solver : solvers) {
    header += " " + solver.name + " |";
    rule += "---|";
  }
  std::printf("%s peers alone |\n%s---|\n", header.c_str(), rule.c_str());
  for (const Family<P>& family : all) {
    const std::size_t count = family.problems.size();
    std::vector<Verdict> ours(count);
    std::transform(family.problems.begin(), family.problems.end(), ours.begin(),
                   [](const P& problem) { return verdict_of_ours(problem); });
    std::printf("| %s | %zu | %s | %td | %td |", family.name.c_str(), count, cell(ours).c_str(),
                std::count(ours.begin(), ours.end(), Verdict::kInfeasible),
                std::count(ours.begin(), ours.end(), Verdict::kNotFound));
    std::vector<char> by_peers(count, 0);
    for (const PeerSolverOf<P>& solver : solvers) {
      std::string text = "-";
      if (takes(solver, family.problems)) {
        const std::vector<Verdict> theirs = verdicts_of(solver, family.problems);
        for (std::size_t k = 0; k < count; ++k) by_peers[k] |= theirs[k] == Verdict::kSolved;
        text = cell(theirs);
      }
      std::printf(" %s |", text.c_str());
    }
    std::size_t alone = 0;
    for (std::size_t k = 0; k < count; ++k) alone += by_peers[k] && ours[k] != Verdict::kSolved;
    std::printf(" %zu |\n", alone);
    std::fflush(stdout);
  }
}

void print_tables(const std::string& python) {
  std::vector<lcp::bench::PeerSolver> solvers = lcp::bench::peer_solvers();
  if (!python.empty()) {
    for (const auto& solver : lcp::bench::drake_solvers(python)) solvers.push_back(solver);
  }
  print_table(families(), solvers);
  std::printf("\n");
  print_table(mixed_families(), lcp::bench::mixed_peer_solvers());
}

}  // namespace

int main(int argc, char** argv) {
  std::string python;
  return lcp::bench::run_study(
      argc, argv,
      "Prints how many LCPs and mixed LCPs the peers solve beside TorchLCP, family by family: tables of "
      "docs/solvers.md. Takes some minutes.",
      [&](CLI::App& program) {
        program.add_option("python", python, "An interpreter that has Drake; without it, Drake's columns are left out")
            ->check(CLI::ExistingFile);
      },
      [&] { print_tables(python); });
}
