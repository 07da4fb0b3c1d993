#include "learning/network/starts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "learning/network/candidate.h"
#include "learning/network/fit.h"

namespace lcp::learning::fitting {
namespace {

using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

// The share of the starts that grow from the networks of the round before.
constexpr double kGrown = 0.25;
// The random q of which a new unknown has the best, and the size of its random effects on the others.
constexpr std::int64_t kHinges = 16;
constexpr double kCoupling = 0.3;

// Gives the unknowns from `first` on, one after the other, the best of some random q: each is 0 at a random sample, and
// the best is that for which the errors, [s, d], that the unknowns before it leave are closest to a multiple of
// z = max(0, -q).
void match(const LcpNetwork& network, const Tensor& theta, const Samples& samples, Tensor errors, std::int64_t first,
           const at::Generator& numbers) {
  const Tensor x = samples.x / network->input_unit;
  const Tensor M = network->entry("M", theta), G = network->entry("G_bias", theta),
               bias = network->entry("q_bias", theta), weight = network->entry("q_weight", theta);
  for (std::int64_t k = first; k < network->options.unknowns(); ++k) {
    const Tensor slopes = torch::randn({kHinges, x.size(1)}, numbers, torch::kDouble);
    const Tensor zeros = x.index_select(0, torch::randint(x.size(0), {kHinges}, numbers, torch::kLong));
    const Tensor offsets = (slopes * zeros).sum(-1);
    const Tensor z = ((x.unsqueeze(1) * slopes).sum(-1) - offsets).relu();  // [s, kHinges]
    const Tensor squares = z.square().sum(0).clamp_min(1e-300);
    const Tensor products = (z.unsqueeze(-1) * errors.unsqueeze(1)).sum(0);  // [kHinges, d]
    const Tensor best = (products.square().sum(-1) / squares).argmax();
    const auto at_best = [&](const Tensor& of, std::int64_t dim) { return of.index_select(dim, best).select(dim, 0); };
    const Tensor effect = at_best(products, 0) / at_best(squares, 0);
    weight[k].copy_(-at_best(slopes, 0));
    bias[k].copy_(at_best(offsets, 0));
    G.select(1, k).copy_(effect);
    M[k].slice(0, 0, k).mul_(kCoupling);
    M.select(1, k).slice(0, 0, k).mul_(kCoupling);
    M[k][k] = std::sqrt(std::max(0.0, 1 - network->options.definiteness()));
    errors = errors - at_best(z, 1).unsqueeze(-1) * effect;
  }
}

}  // namespace

std::vector<StartGroup> draw_starts(const LcpNetwork& network, std::int64_t count,
                                    const std::vector<NetworkCandidate>& parents, const Samples& samples,
                                    double rest_penalty, const at::Generator& numbers) {
  const auto like_it = [&](const LcpNetworkOptions& options) {
    return make_network(options, network->input_unit, network->output_unit);
  };
  // A network with some of the unknowns of an earlier one, and new ones beside them.
  const auto changed = [&](const NetworkCandidate& parent, const Tensor& kept) {
    LcpNetworkOptions fewer = parent.options;
    const LcpNetwork part = like_it(fewer.unknowns(kept.numel()));
    const Tensor theta_part = like_it(parent.options)->restricted(parent.theta, kept);
    Tensor theta = network->grown(*part, theta_part, numbers);
    match(network, theta, samples, -errors(part, theta_part, samples), kept.numel(), numbers);
    return theta;
  };
  std::vector<Tensor> all;
  const bool reduces = !parents.empty() && network->options.unknowns() < parents.front().options.unknowns();
  if (reduces) {
    for (const NetworkCandidate& parent : parents) {
      const std::int64_t n = parent.options.unknowns();
      for (std::int64_t k = 0; k < n; ++k) {
        const Tensor others = at::cat({at::arange(k), at::arange(k + 1, n)});
        all.push_back(changed(parent, others));
        if (n < 3) continue;
        // Without another one, for which there is a new one.
        const std::int64_t l = torch::randint(n - 1, {1}, numbers, torch::kLong).item<std::int64_t>();
        all.push_back(changed(parent, others.index({at::arange(n - 1) != l})));
      }
    }
    return {{at::stack(all), rest_penalty}};
  }
  const auto grown = parents.empty() ? 0 : static_cast<std::int64_t>(kGrown * static_cast<double>(count));
  for (std::int64_t k = 0; k < grown; ++k) {
    const NetworkCandidate& parent = parents[static_cast<std::size_t>(k) % parents.size()];
    // Unknowns that no sample has active are not kept, others get their places.
    const Tensor active = (like_it(parent.options)->step(samples.x, parent.theta).z > 0).any(0);
    if (active.any().item<bool>()) all.push_back(changed(parent, active.nonzero().squeeze(-1)));
  }
  const Tensor random = network->random(count - static_cast<std::int64_t>(all.size()), numbers);
  const Tensor f = network->parts(samples.x, random.unsqueeze(1)).f;
  const Tensor y = samples.y / network->output_unit;
  for (std::int64_t k = 0; k < random.size(0); ++k) {
    match(network, random[k], samples, f.defined() ? y - f[k] : y, 0, numbers);
  }
  std::vector<StartGroup> groups;
  const auto add = [&](const Tensor& theta) {
    for (const std::int64_t k : {0, 1}) {
      const Tensor half = theta.slice(0, k, std::nullopt, 2);
      if (half.size(0) > 0) groups.push_back({half, k == 0 ? rest_penalty : 0});
    }
  };
  if (!all.empty()) add(at::stack(all));
  add(random);
  return groups;
}

}  // namespace lcp::learning::fitting
