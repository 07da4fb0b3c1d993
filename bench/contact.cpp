// contact/: compliant contact. c_K: K contacts of bodies with 12 velocities, a batch of 256, as tests draw them.
// chain_B: one chain of B bodies of three velocities each, whose J and A are mostly 0. batch_N: N problems of 4
// contacts and 6 velocities. The floor is one dense factorisation of A, by LibTorch; a solve needs one for each Newton
// step.
#include <ATen/ATen.h>
#include <lcp/solve_contact.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "measure.h"
#include "support/bodies.h"

namespace lcp::bench {
namespace {

using at::Tensor;
using testing::Bodies;

constexpr std::int64_t kBatch = 256;
constexpr std::int64_t kDrawn = 64;

struct Inputs {
  std::vector<Tensor> problem;  // A, v_free, J, v_hat, R, mu

  ContactResult solve(const std::vector<Tensor>& x) const { return solve_contact(x[0], x[1], x[2], x[3], x[4], x[5]); }
  ContactResult solve() const { return solve(problem); }
};

// `count` problems, of which at most kDrawn differ.
Inputs batch_of(std::int64_t count, const std::function<Bodies(unsigned)>& draw) {
  std::vector<std::vector<Tensor>> parts(6);
  for (std::int64_t k = 0; k < std::min(count, kDrawn); ++k) {
    Bodies bodies = draw(static_cast<unsigned>(k));
    const std::int64_t n = bodies.n, rows = 3 * bodies.contacts;
    const auto copied = [](double* data, at::IntArrayRef shape) {
      return at::from_blob(data, shape, at::kDouble).clone();
    };
    parts[0].push_back(copied(bodies.A.data(), {n, n}));
    parts[1].push_back(copied(bodies.v_free.data(), {n}));
    parts[2].push_back(copied(bodies.J.data(), {rows, n}));
    parts[3].push_back(copied(bodies.v_hat.data(), {rows}));
    parts[4].push_back(copied(bodies.R.data(), {rows}));
    parts[5].push_back(copied(bodies.mu.data(), {rows / 3}));
  }
  Inputs inputs;
  for (const auto& part : parts) {
    const Tensor drawn = at::stack(part);
    std::vector<std::int64_t> times(drawn.dim(), 1);
    times[0] = (count + kDrawn - 1) / kDrawn;
    inputs.problem.push_back(drawn.repeat(times).slice(0, 0, count).clone());
  }
  return inputs;
}

void add_contact(const std::string& work, std::int64_t count, const std::function<Bodies(unsigned)>& draw) {
  const std::string path = "contact/" + work + "/";
  add(path + "forward", count, [=](benchmark::State& state) -> Work {
    const Inputs inputs = batch_of(count, draw);
    const ContactResult result = inputs.solve();
    report(state, {(result.status == 0).sum().item<std::int64_t>(), 0}, count);
    state.counters["iterations_mean"] = result.iterations.to(at::kDouble).mean().item<double>();
    state.counters["iterations_max"] = static_cast<double>(result.iterations.max().item<std::int64_t>());
    return [=] { benchmark::DoNotOptimize(inputs.solve().v); };
  });
  add(path + "forward and backward", count, [=](benchmark::State&) -> Work {
    const Inputs inputs = batch_of(count, draw);
    std::vector<Tensor> leaves;
    leaves.reserve(inputs.problem.size());
    for (const Tensor& x : inputs.problem) leaves.push_back(x.detach().requires_grad_());
    return [=] {
      const Tensor v = inputs.solve(leaves).v;
      benchmark::DoNotOptimize(torch::autograd::grad({v}, leaves, {at::ones_like(v)}));
    };
  });
  add(path + "Cholesky", count, [=](benchmark::State&) -> Work {
    const Tensor A = batch_of(count, draw).problem[0];
    return [=] { benchmark::DoNotOptimize(at::linalg_cholesky_ex(A)); };
  });
}

}  // namespace

void add_contacts() {
  for (int contacts = 1; contacts <= 12; ++contacts) {
    add_contact("c_" + std::to_string(contacts), kBatch,
                [=](unsigned seed) { return testing::random_bodies(12, contacts, seed); });
  }
  for (const int count : {5, 10, 20, 30, 60, 120}) {
    add_contact("chain_" + std::to_string(count), 1, [=](unsigned seed) { return testing::chain(count, seed); });
  }
  for (const std::int64_t count : {1, 10, 100, 1000, 10'000, 100'000}) {
    add_contact("batch_" + std::to_string(count), count,
                [](unsigned seed) { return testing::random_bodies(6, 4, seed); });
  }
}

}  // namespace lcp::bench
