// friction/: rigid contact with the exact cone of Coulomb's law. The problems are those of friction_set.h. batch1_N and
// batch4_N: N problems of one body with 1 and 4 contacts; sizes_N: N problems of one body with 1 to 8 contacts. Two
// floors are measured: a copy of all inputs, which any solve has to read, and one LU factorisation of W = J A^-1 J', by
// LibTorch, since a Newton step of all contacts needs the factors of an unsymmetric matrix of that size. Beside them
// are peers, which get W and q for nothing (W and q: what our own elimination of the velocities takes), and other laws
// of friction for the same bodies: pyramids with 4, 8 and 16 directions, and the convex relaxation of almost rigid
// contact.
#include <ATen/ATen.h>
#include <lcp/friction_problem.h>
#include <lcp/pad.h>
#include <lcp/solve_contact.h>
#include <lcp/solve_friction.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "friction/impulse_problem.h"
#include "friction_peers.h"
#include "measure.h"

namespace lcp::bench {
namespace {

using at::Tensor;
using Inputs = std::vector<Tensor>;  // A, v_free, J, b, mu

// The compliance of almost rigid contact, relative to the Delassus diagonal.
constexpr double kCompliance = 1e-6;

// Other solvers take up to seconds for each problem with more than kManyContacts contacts. They are timed once in each
// repetition then, and beyond kMostContacts there is one repetition alone.
constexpr std::int64_t kManyContacts = 8, kMostContacts = 24;
constexpr int kFewRepetitions = 3;

Inputs inputs_of(const FrictionSet& set) { return {set.A, set.v_free, set.J, set.b, set.mu}; }

FrictionResult solved(const Inputs& x, const FrictionOptions& options = {}) {
  return solve_friction(x[0], x[1], x[2], x[3], x[4], options);
}

Work solving(const Inputs& inputs, const FrictionOptions& options = {}) {
  return [=] { benchmark::DoNotOptimize(solved(inputs, options).v); };
}

// The gradient of the sum of all velocities with respect to all five inputs.
Work differentiating(const Inputs& inputs, const FrictionOptions& options = {}) {
  Inputs leaves;
  leaves.reserve(inputs.size());
  for (const Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_());
  return [=] {
    const Tensor v = solved(leaves, options).v;
    benchmark::DoNotOptimize(torch::autograd::grad({v}, leaves, {at::ones_like(v)}));
  };
}

Work copying(const Inputs& inputs) {
  Inputs copies;
  copies.reserve(inputs.size());
  for (const Tensor& x : inputs) copies.push_back(x.clone());
  return [=] {
    for (std::size_t k = 0; k < inputs.size(); ++k) copies[k].copy_(inputs[k]);
  };
}

// `count` of the problems, repeated in order as often as needed.
Inputs repeated(const FrictionSet& set, std::int64_t count) {
  Inputs many;
  for (const Tensor& x : inputs_of(set)) {
    std::vector<std::int64_t> times(x.dim(), 1);
    times[0] = (count + set.count() - 1) / set.count();
    many.push_back(x.repeat(times).slice(0, 0, count).clone());
  }
  return many;
}

// The times of single problems, each the best of three.
struct Spread {
  double median_ns = 0, slowest_ns = 0;
  std::int64_t slowest = 0;  // its place in the set
};

Spread spread_of(std::int64_t count, const std::function<void(std::int64_t)>& solve_one) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> best(count, 1e300);
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t k = 0; k < count; ++k) {
      const auto start = Clock::now();
      solve_one(k);
      best[k] = std::min(best[k], std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
  }
  const auto slowest = std::max_element(best.begin(), best.end());
  Spread spread{0, *slowest, slowest - best.begin()};
  std::nth_element(best.begin(), best.begin() + count / 2, best.end());
  spread.median_ns = best[count / 2];
  return spread;
}

// What is found out once for each solver and set, outside of the timed part.
struct Summary {
  FrictionVerdict verdict;
  VelocityErrors errors;
  Spread spread;
};

const Summary& summary(const std::string& path, const std::function<Summary()>& make) {
  static std::map<std::string, Summary> all;
  const auto found = all.find(path);
  return found != all.end() ? found->second : all.emplace(path, make()).first->second;
}

void report(benchmark::State& state, const Summary& found, std::int64_t count) {
  report(state, CheckResult{found.verdict.solved, found.verdict.false_claims}, count);
  state.counters["claimed"] = static_cast<double>(found.verdict.claimed);
  state.counters["compared"] = static_cast<double>(found.errors.compared);
  state.counters["error_median"] = found.errors.median;
  state.counters["error_ninety"] = found.errors.ninety;
  state.counters["error_largest"] = found.errors.largest;
  state.counters["median_ns"] = found.spread.median_ns;
  state.counters["slowest_ns"] = found.spread.slowest_ns;
  state.counters["slowest"] = static_cast<double>(found.spread.slowest);
}

void add_ours(const std::string& name) {
  const std::string path = "friction/" + name + "/";
  const std::int64_t count = friction_count(name);
  add(path + "ours", count, [=](benchmark::State& state) {
    const FrictionSet& set = friction_set(name);
    const FrictionResult result = solved(inputs_of(set));
    const auto look = [&]() -> Summary {
      const FrictionAnswer answer{result.v, result.gamma, result.status == 0};
      std::vector<Inputs> alone(count);
      for (std::int64_t k = 0; k < count; ++k) {
        for (const Tensor& x : inputs_of(set)) alone[k].push_back(x[k]);
      }
      const auto solve_one = [&](std::int64_t k) { benchmark::DoNotOptimize(solved(alone[k]).v); };
      return {judge(set, answer), velocity_errors(set, answer), spread_of(count, solve_one)};
    };
    report(state, summary(name + "/ours", look), count);
    state.counters["unique"] = static_cast<double>(set.unique.sum().item<std::int64_t>());
    state.counters["velocities"] = static_cast<double>(set.v.size(1));
    state.counters["iterations_mean"] = result.iterations.to(at::kDouble).mean().item<double>();
    state.counters["iterations_max"] = static_cast<double>(result.iterations.max().item<std::int64_t>());
    return solving(inputs_of(set));
  });
  add(path + "forward and backward", count,
      [=](benchmark::State&) { return differentiating(inputs_of(friction_set(name))); });
  add(path + "W and q", count, [=](benchmark::State&) -> Work {
    const FrictionSet& set = friction_set(name);
    const auto eliminated = std::make_shared<friction::ImpulseProblem>(set.v.size(1), set.contacts());
    return [=, &set] {
      for (const testing::RigidContacts& problem : set.problems) eliminated->set(problem.problem());
    };
  });
  add(path + "LU", count, [=](benchmark::State&) { return factoring(delassus(friction_set(name))); });
  add(path + "copy", count, [=](benchmark::State&) { return copying(inputs_of(friction_set(name))); });
}

// Registers another solver of a set.
void add_other(const std::string& name, std::int64_t contacts, const std::string& who,
               std::function<Work(benchmark::State&)> prepare) {
  auto* registered = add("friction/" + name + "/" + who, friction_count(name), std::move(prepare));
  if (contacts > kManyContacts) registered->Iterations(1)->Repetitions(contacts > kMostContacts ? 1 : kFewRepetitions);
}

void add_peer(const std::string& name, std::int64_t contacts, const FrictionPeerSolver& solver) {
  add_other(name, contacts, solver.name, [=](benchmark::State& state) -> Work {
    const FrictionSet& set = friction_set(name);
    const std::shared_ptr<FrictionPeer> peer = solver.prepare(set);
    const Tensor gamma = at::empty({set.count(), 3 * set.contacts()}, at::kDouble);
    const auto solve_one = [peer, gamma](std::int64_t k) {
      return peer->solve(static_cast<std::size_t>(k), gamma.mutable_data_ptr<double>() + k * gamma.size(1));
    };
    const auto look = [&]() -> Summary {
      const Tensor claims = at::empty(set.count(), at::kBool);
      for (std::int64_t k = 0; k < set.count(); ++k) claims[k] = solve_one(k);
      const FrictionAnswer answer = answer_of(set, gamma.clone(), claims);
      return {judge(set, answer), velocity_errors(set, answer), spread_of(set.count(), solve_one)};
    };
    report(state, summary(name + "/" + solver.name, look), set.count());
    return [=, count = set.count()] {
      for (std::int64_t k = 0; k < count; ++k) benchmark::DoNotOptimize(solve_one(k));
    };
  });
}

// The answer by another law of friction; it claims what its own problem's solver claims.
void add_law(const std::string& name, std::int64_t contacts, const std::string& law,
             const std::function<FrictionAnswer(const FrictionSet&)>& answer) {
  add_other(name, contacts, law, [=](benchmark::State& state) -> Work {
    const FrictionSet& set = friction_set(name);
    const auto look = [&]() -> Summary {
      const FrictionAnswer found = answer(set);
      return {judge(set, found), velocity_errors(set, found), {}};
    };
    report(state, summary(name + "/" + law, look), set.count());
    return [=, &set] { benchmark::DoNotOptimize(answer(set).v); };
  });
}

FrictionAnswer polyhedral(const FrictionSet& set, std::int64_t directions) {
  const FrictionProblem problem = friction_problem(set.A, set.v_free, set.J, set.b, set.mu, {directions});
  const SolveResult result = solve(problem.M, problem.q);
  const FrictionMotion motion = friction_motion(set.A, set.v_free, set.J, result.z, {directions});
  return {motion.v, motion.gamma, result.status == 0};
}

FrictionAnswer almost_rigid(const FrictionSet& set) {
  const Tensor diagonal = at::diagonal(delassus(set), 0, -2, -1);
  const Tensor w = diagonal.unflatten(-1, {set.contacts(), 3}).mean(-1).repeat_interleave(3, -1);
  const ContactResult result = solve_contact(set.A, set.v_free, set.J, -set.b, kCompliance * w, set.mu);
  return {result.v, result.gamma, result.status == 0};
}

void add_set(const std::string& name, std::int64_t contacts) {
  add_ours(name);
  for (const FrictionPeerSolver& solver : friction_peer_solvers()) add_peer(name, contacts, solver);
  for (const std::int64_t directions : {4, 8, 16}) {
    add_law(name, contacts, "polyhedral " + std::to_string(directions),
            [=](const FrictionSet& set) { return polyhedral(set, directions); });
  }
  add_law(name, contacts, "compliant", almost_rigid);
}

void add_batch(std::int64_t contacts, std::int64_t count) {
  const std::string set = "c_" + std::to_string(contacts);
  const std::string path = "friction/batch" + std::to_string(contacts) + "_" + std::to_string(count) + "/";
  add(path + "forward", count, [=](benchmark::State&) { return solving(repeated(friction_set(set), count)); });
  add(path + "forward and backward", count,
      [=](benchmark::State&) { return differentiating(repeated(friction_set(set), count)); });
  add(path + "copy", count, [=](benchmark::State&) { return copying(repeated(friction_set(set), count)); });
}

// `count` problems with 1 to 8 contacts in turn, padded to 8, and how many contacts each has.
struct Unequal {
  Inputs inputs;
  Tensor sizes;
};

Unequal unequal(std::int64_t count, bool sorted) {
  constexpr std::int64_t kSizes = 8;
  std::vector<Inputs> groups;
  for (std::int64_t c = 1; c <= kSizes; ++c)
    groups.push_back(repeated(friction_set("c_" + std::to_string(c)), count / kSizes));
  Unequal all;
  for (std::size_t input = 0; input < groups.front().size(); ++input) {
    std::vector<Tensor> parts;
    parts.reserve(groups.size());
    for (const Inputs& group : groups) parts.push_back(group[input]);
    // [8, count / 8, ...], or turned, so that neighbours differ in size.
    Tensor padded = pad(parts, parts.front().dim()).values;
    if (!sorted) padded = padded.transpose(0, 1);
    all.inputs.push_back(padded.flatten(0, 1).contiguous());
  }
  const Tensor sizes = at::arange(1, kSizes + 1, at::kLong);
  all.sizes = sorted ? sizes.repeat_interleave(count / kSizes) : sizes.repeat(count / kSizes);
  return all;
}

void add_sizes(std::int64_t count) {
  const std::string path = "friction/sizes_" + std::to_string(count) + "/";
  for (const bool sorted : {false, true}) {
    const std::string order = sorted ? "sorted" : "mixed";
    const auto prepared = [=](Work (*work)(const Inputs&, const FrictionOptions&)) {
      const Unequal all = unequal(count, sorted);
      return work(all.inputs, {.sizes = all.sizes});
    };
    add(path + order, count, [=](benchmark::State&) { return prepared(solving); });
    add(path + order + ", forward and backward", count, [=](benchmark::State&) { return prepared(differentiating); });
  }
  // The problems of each size in a batch of their own.
  add(path + "apart", count, [=](benchmark::State&) -> Work {
    std::vector<Work> works;
    for (int c = 1; c <= 8; ++c) works.push_back(solving(repeated(friction_set("c_" + std::to_string(c)), count / 8)));
    return [=] {
      for (const Work& work : works) work();
    };
  });
  // The padded problems without sizes: contacts that do not exist count, though they move nothing.
  add(path + "padded", count, [=](benchmark::State&) { return solving(unequal(count, false).inputs); });
  add(path + "full", count, [=](benchmark::State&) { return solving(repeated(friction_set("c_8"), count)); });
}

}  // namespace

void add_friction() {
  for (int contacts = 1; contacts <= 8; ++contacts) add_set("c_" + std::to_string(contacts), contacts);
  for (int bodies = 2; bodies <= 4; ++bodies) add_set("bodies_" + std::to_string(bodies), 8);
  for (const int contacts : {12, 24, 40, 60}) add_set("stack_" + std::to_string(contacts), contacts);
  for (const int contacts : {1, 4}) {
    for (const std::int64_t count : {1, 10, 100, 1000, 10'000, 100'000}) add_batch(contacts, count);
  }
  add_sizes(8000);
}

}  // namespace lcp::bench
