// family/: families of problems, solved by the operator and by the peers, and for comparison a copy and the LU factors
// of the same matrices.
#include <ATen/ATen.h>

#include "measure.h"
#include "peers.h"

namespace lcp::bench {
namespace {

struct Family {
  std::string name;
  std::int64_t count;
  bool symmetric = false;
};

void add_ours(const Family& family) {
  const std::string path = "family/" + family.name + "/";
  const auto set = [=]() -> const ProblemSet& { return problem_set(family.name, family.count); };
  add(path + "ours", family.count, [=](benchmark::State& state) {
    report(state, check_solve(set()), family.count);
    return solving(set().M, set().q);
  });
  add(path + "copy", family.count, [=](benchmark::State&) { return copying(set().M, set().q); });
  add(path + "LU", family.count, [=](benchmark::State&) { return factoring(set().M); });
}

void add_peer(const Family& family, const PeerSolver& solver) {
  const auto run = [=](benchmark::State& state) {
    const ProblemSet& set = problem_set(family.name, family.count);
    const auto peer = solver.prepare(set.problems);
    const at::Tensor z = at::empty({set.count(), set.n()}, at::kDouble);
    const at::Tensor claims = at::empty(set.count(), at::kBool);
    auto* z_data = z.mutable_data_ptr<double>();
    auto* claims_data = claims.mutable_data_ptr<bool>();
    for (auto _ : state) {
      state.PauseTiming();
      peer->restore();
      state.ResumeTiming();
      for (std::int64_t k = 0; k < set.count(); ++k) claims_data[k] = peer->solve(k, z_data + k * set.n());
    }
    state.counters["problems"] = static_cast<double>(set.count());
    report(state, check(set, z, claims), set.count());
  };
  benchmark::RegisterBenchmark(("family/" + family.name + "/" + solver.name).c_str(), run)->UseRealTime();
}

}  // namespace

void add_families() {
  const std::vector<Family> families = {{"sliding_3", 2000},
                                        {"p_2", 2000},
                                        {"p_4", 2000},
                                        {"friction_6", 2000},
                                        {"friction_24", 2000},
                                        {"definite_3", 2000, true},
                                        {"definite_8", 1000, true},
                                        {"definite_32", 200, true},
                                        {"definite_128", 20, true},
                                        {"definite_512", 2, true},
                                        {"banded_1000", 1, true}};
  for (const Family& family : families) {
    add_ours(family);
    for (const PeerSolver& solver : peer_solvers()) {
      const int n = std::stoi(family.name.substr(family.name.find('_') + 1));
      if ((family.symmetric || !solver.needs_symmetric) && n <= solver.largest_n) add_peer(family, solver);
    }
  }
}

}  // namespace lcp::bench
