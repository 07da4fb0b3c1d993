// Which problems of rigid contact with friction are solved, by which method, and how long that takes: the tables of
// docs/rigid_contact.md.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "friction/ladder.h"
#include "study.h"
#include "support/ball_pile.h"
#include "support/rigid_contacts.h"

namespace {

using lcp::Status;
using lcp::friction::Ladder;
using lcp::testing::RigidContactMaker;
using lcp::testing::RigidContacts;
using lcp::testing::VectorXd;

constexpr double kTolerance = 1e-10;

struct Count {
  int problems = 0, false_claims = 0;
  std::map<Status, int> statuses;
  std::map<std::string, int> methods;
  double seconds = 0, slowest = 0;

  int of(Status status) const {
    const auto found = statuses.find(status);
    return found == statuses.end() ? 0 : found->second;
  }
};

// Solves the problem and counts its answer; returns the velocities.
VectorXd solve(const RigidContacts& bodies, double tolerance, Count& count) {
  Ladder ladder(bodies.n(), bodies.contacts(), {tolerance, std::numeric_limits<std::int64_t>::max()});
  VectorXd v(bodies.n()), gamma(3 * bodies.contacts()), u(3 * bodies.contacts());
  const auto start = std::chrono::steady_clock::now();
  const Status status = ladder.solve(bodies.problem(), nullptr, v.data(), gamma.data(), u.data());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++count.problems;
  ++count.statuses[status];
  if (status == Status::kSolved) ++count.methods[ladder.method()];
  count.false_claims +=
      status == Status::kSolved && !(bodies.residual(v, gamma) <= 2 * tolerance && bodies.imbalance(v, gamma) <= 1e-9);
  count.seconds += seconds;
  count.slowest = std::max(count.slowest, seconds);
  return v;
}

void print(const std::string& name, const Count& count) {
  constexpr const char* kMethods[] = {"no contact",     "one sweep", "Newton",       "Newton again",
                                      "proximal point", "pyramid",   "active set",   "enumeration",
                                      "interior point", "more runs", "random starts"};
  std::string methods;
  for (const char* const method : kMethods) {
    const auto found = count.methods.find(method);
    if (found == count.methods.end()) continue;
    methods += (methods.empty() ? "" : ", ") + found->first + " " + std::to_string(found->second);
  }
  std::printf("| %s | %d | %d | %d | %d | %d | %s | %.0f | %.1f |\n", name.c_str(), count.problems,
              count.of(Status::kSolved), count.of(Status::kInfeasible), count.of(Status::kNotFound), count.false_claims,
              methods.c_str(), 1e6 * count.seconds / count.problems, 1e3 * count.slowest);
  std::fflush(stdout);
}

void study(const std::string& name, int problems, const std::function<RigidContacts(RigidContactMaker&)>& next) {
  RigidContactMaker make(77);
  Count count;
  for (int k = 0; k < problems; ++k) solve(next(make), kTolerance, count);
  print(name, count);
}

// Contacts of one to four bodies that overlap, or whose b asks for a bounce: there need not be a solution.
RigidContacts overlapping(RigidContactMaker& make) {
  RigidContacts bodies = make.uniform() < 0.5 ? make.one_body() : make.bodies();
  for (Eigen::Index k = 0; k < bodies.contacts(); ++k) bodies.b[3 * k + 2] -= 0.5 * make.uniform();
  return bodies;
}

// The same bodies with one large coefficient of friction after another.
RigidContacts sticky(RigidContacts bodies) {
  constexpr double kSizes[] = {1e2, 1e4, 1e6, 1e8, 1e10, 1e12, std::numeric_limits<double>::infinity()};
  static std::size_t next = 0;
  bodies.mu.setConstant(kSizes[next++ % std::size(kSizes)]);
  return bodies;
}

// The problems of the steps of piles of balls, with the tolerance that lcp::physics has for them.
void study_piles(int balls, int piles, int steps) {
  constexpr double kStepTolerance = 1e-9;
  Count count;
  for (int seed = 1; seed <= piles; ++seed) {
    lcp::testing::BallPile pile(balls, static_cast<unsigned>(seed));
    const auto next = [&](const RigidContacts& bodies) -> std::optional<VectorXd> {
      const VectorXd v = solve(bodies, kStepTolerance, count);
      return v.allFinite() ? std::optional(v) : std::nullopt;
    };
    for (int k = 0; k < steps && pile.step(next); ++k) {
    }
  }
  print("steps of piles of " + std::to_string(balls) + " balls", count);
}

void print_tables() {
  std::printf("| problems | count | solved | infeasible | not found | false | by | µs each | slowest, ms |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  study("one body, 1 to 8 contacts", 30'000, [](RigidContactMaker& make) { return make.one_body(); });
  study("two to four bodies", 20'000, [](RigidContactMaker& make) { return make.bodies(); });
  for (const auto& [boxes, problems] : {std::pair{2, 2000}, {5, 1000}, {10, 300}, {15, 100}, {30, 100}}) {
    study("stacks of " + std::to_string(boxes) + " boxes", problems,
          [boxes](RigidContactMaker& make) { return make.stack(boxes); });
  }
  for (const auto& [boxes, least] : {std::pair{5, -12}, {10, -10}}) {
    for (int decade = least; decade <= -4; decade += 2) {
      study("stacks of " + std::to_string(boxes) + " boxes, gaps up to 1e" + std::to_string(decade) + " m/s", 100,
            [boxes, decade](RigidContactMaker& make) { return make.stack_with_gaps(boxes, std::pow(10, decade)); });
    }
  }
  for (const int balls : {14, 20}) study_piles(balls, 4, 250);
  study("one to four bodies that overlap by up to .5 m/s", 5000, overlapping);
  study("one body, mu from 100 to infinity", 14'000, [](RigidContactMaker& make) { return sticky(make.one_body()); });
  study("two to four bodies, mu from 100 to infinity", 7'000,
        [](RigidContactMaker& make) { return sticky(make.bodies()); });
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::bench::run_study(
      argc, argv,
      "Prints the table of docs/rigid_contact.md: which problems of rigid contact with friction are solved, by which "
      "method, and how long that takes. Takes about two minutes.",
      [](CLI::App&) {}, print_tables);
}
