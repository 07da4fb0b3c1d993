#include "markov/block_chain.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "lcp/physics/sliding_block.h"
#include "run/columns.h"
#include "run/error.h"
#include "run/files.h"

namespace lcp::training {

using torch::Tensor;

Sequences Sequences::to(torch::ScalarType dtype) const {
  return {v.to(dtype), u.to(dtype), v_next.to(dtype), observed, state};
}

TrueChain true_chain(const PhysicsFlags& block, const std::vector<double>& factors, double persistence, double sigma) {
  const auto count = static_cast<std::int64_t>(factors.size());
  const double left = count > 1 ? (1 - persistence) / static_cast<double>(count - 1) : 0;
  const Tensor stay = torch::eye(count, torch::kDouble);
  const double staying = count > 1 ? persistence : 1;
  return {block.mu * torch::tensor(factors, torch::kDouble),
          {torch::full({count}, 1 / static_cast<double>(count), torch::kDouble).log(),
           (staying * stay + left * (1 - stay)).log()},
          sigma};
}

Tensor steps_in_states(const Tensor& v, const Tensor& u, const Tensor& mu, const PhysicsFlags& block) {
  const auto parameter = [&](double x) { return torch::full({}, x, mu.options()); };
  return physics::step(v.unsqueeze(-1), u.unsqueeze(-1),
                       {parameter(block.mass), parameter(block.dt), mu, parameter(block.gravity)},
                       physics::SlidingBlockFormulation::kTraditional)
      .step.v_next;
}

Sequences simulate_chain(const TrueChain& chain, const Tensor& first, const Tensor& u, const PhysicsFlags& block,
                         const at::Generator& random) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> v = {first}, states;
  v.reserve(static_cast<std::size_t>(u.size(1)) + 1);
  states.reserve(static_cast<std::size_t>(u.size(1)));
  const Tensor transition = chain.states.log_transition.exp();
  Tensor probability = chain.states.log_initial.exp().expand({first.size(0), -1});
  for (std::int64_t k = 0; k < u.size(1); ++k) {
    const Tensor state = at::multinomial(probability, 1, true, random);
    const Tensor next = steps_in_states(v.back(), u.select(1, k), chain.mu, block).gather(-1, state).squeeze(-1);
    v.push_back(next + chain.sigma * at::randn(next.sizes(), random, next.options()));
    states.push_back(state.squeeze(-1));
    probability = transition.index_select(0, state.squeeze(-1));
  }
  const Tensor all = at::stack(v, 1);
  return {all.slice(1, 0, -1), u, all.slice(1, 1), at::ones_like(u, torch::kBool), at::stack(states, 1)};
}

std::pair<Sequences, Sequences> read_sequences(const std::string& file) {
  const Table table = read_csv(file, {"trajectory", "v", "u", "v_next"});
  const Tensor trajectory = trajectories_of(table);
  const std::int64_t count = trajectory.max().item<std::int64_t>() + 1;
  if (count < kHeldOutOneIn) {
    throw UsageError(file + ": must have at least " + std::to_string(kHeldOutOneIn) +
                     " trajectories, of which one in as many is held out; got " + std::to_string(count));
  }
  const std::int64_t steps = at::bincount(trajectory).max().item<std::int64_t>();
  const auto padded = [&](const Tensor& x) {
    std::vector<Tensor> rows;
    rows.reserve(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) {
      const Tensor row = x.index({trajectory == k});
      rows.push_back(torch::constant_pad_nd(row, {0, steps - row.size(0)}));
    }
    return torch::stack(rows);
  };
  const auto column = [&](const char* name) { return padded(torch::tensor(table[name], torch::kDouble)); };
  const Sequences all{
      column("v"), column("u"), column("v_next"), padded(torch::ones_like(trajectory, torch::kBool)), {}};
  const Tensor heldout = torch::arange(count).remainder(kHeldOutOneIn) == kHeldOutOneIn - 1;
  const auto part = [&](const Tensor& rows) -> Sequences {
    return {all.v.index({rows}), all.u.index({rows}), all.v_next.index({rows}), all.observed.index({rows}), {}};
  };
  return {part(~heldout), part(heldout)};
}

Tensor log_observations(const Sequences& data, const Tensor& mu, const Tensor& sigma, const PhysicsFlags& block,
                        double unit) {
  const Tensor error = (data.v_next.unsqueeze(-1) - steps_in_states(data.v, data.u, mu, block)) / sigma;
  const Tensor density = -0.5 * (error.square() + std::log(2 * std::numbers::pi)) - (sigma / unit).log();
  return at::where(data.observed.unsqueeze(-1), density, at::zeros_like(density));
}

BlockChain::BlockChain(std::int64_t states, const PhysicsFlags& block, double force, const at::Generator& random)
    : block_(block) {
  const double typical = force / (block.mass * block.gravity);
  const Tensor spread =
      (at::arange(states, torch::kDouble) + at::rand({states}, random, torch::kDouble)) / static_cast<double>(states);
  root_mu_ = register_parameter("root_mu", (typical * spread).sqrt());
  log_sigma_ = register_parameter("log_sigma", torch::tensor(std::log(force * block.dt / block.mass), torch::kDouble));
  initial_ = register_parameter("initial", torch::zeros({states}, torch::kDouble));
  transition_ = register_parameter("transition", at::randn({states, states}, random, torch::kDouble));
}

Tensor BlockChain::log_likelihood(const Sequences& data, double unit) const {
  return learning::log_likelihood(states(), log_observations(data, mu(), sigma(), block_, unit));
}

TrueChain BlockChain::sorted() const {
  const torch::NoGradGuard no_grad;
  const auto [mu_sorted, order] = mu().to(torch::kDouble).sort(0, /*descending=*/true);
  const learning::MarkovChain chain = states();
  return {mu_sorted,
          {chain.log_initial.to(torch::kDouble).index_select(0, order),
           chain.log_transition.to(torch::kDouble).index_select(0, order).index_select(1, order)},
          sigma().item<double>()};
}

}  // namespace lcp::training
