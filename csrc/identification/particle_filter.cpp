#include "lcp/identification/particle_filter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

namespace lcp::identification {
namespace {

using at::Tensor;

// Systematic resampling: for each track the indices [b, n] of the chosen particles. Particle i is chosen n w_i times,
// rounded up or down, and each track takes one random number.
Tensor systematic(const Tensor& weights, const at::Generator& generator) {
  const std::int64_t b = weights.size(0), n = weights.size(1);
  const Tensor offset = at::rand({b, 1}, generator, at::kDouble);
  const Tensor points = (at::arange(n, at::kDouble) + offset) / static_cast<double>(n);
  return at::searchsorted(weights.cumsum(-1), points).clamp_max(n - 1);
}

Tensor chosen(const Tensor& x, const Tensor& index) {
  return x.gather(1, x.dim() == 2 ? index : index.unsqueeze(-1).expand_as(x));
}

// The weights, [b, n], with those of equal particles added up: one of their places has the sum, and the others have 0.
Tensor joined(const Tensor& weights, const Tensor& particles) {
  // Rows that differ have different keys, but for coincidences.
  const Tensor key = (particles * at::arange(1, particles.size(-1) + 1, at::kDouble).sqrt()).sum(-1);
  const auto [sorted, order] = key.sort(-1);
  const Tensor begins = (sorted.slice(-1, 1) != sorted.slice(-1, 0, -1)).to(at::kLong);
  const Tensor group = at::constant_pad_nd(begins.cumsum(-1), {1, 0});
  return at::zeros_like(weights).scatter_add(-1, group, weights.gather(-1, order));
}

Tensor distinct(const Tensor& ancestor) {
  const Tensor sorted = std::get<0>(ancestor.sort(-1));
  return (sorted.slice(-1, 1) != sorted.slice(-1, 0, -1)).sum(-1) + 1;
}

}  // namespace

ParticleFilter particle_filter(const FilterModel& model, const Tensor& start, std::int64_t steps,
                               at::Generator generator, const ParticleFilterOptions& options) {
  TORCH_CHECK(start.dim() == 3 && start.size(1) > 0 && start.scalar_type() == at::kDouble,
              "start must be [b, n, d], float64, n > 0; got ", start.sizes(), ", ", start.scalar_type());
  const c10::NoGradGuard no_grad;
  const std::int64_t b = start.size(0), n = start.size(1), d = start.size(2);
  const bool roughens = options.roughening.defined();
  TORCH_CHECK(!roughens || options.roughening.sizes() == at::IntArrayRef({d}), "roughening must be [", d, "]; got ",
              options.roughening.sizes());
  Tensor particles = start, ancestor = at::arange(n).expand({b, n});
  std::vector<Tensor> means, deviations, counts, sizes;
  for (std::int64_t k = 0; k <= steps; ++k) {
    if (k > 0) particles = model.propagate(particles);
    const Tensor likelihood = model.log_likelihood(particles, k);
    const Tensor log_weight = likelihood.masked_fill(likelihood.isnan(), -INFINITY);
    const Tensor largest = log_weight.amax(-1, true);
    const Tensor explained = largest.isfinite();
    const Tensor raw = at::where(explained, (log_weight - largest).exp(), 1);
    const Tensor weights = raw / raw.sum(-1, true);
    means.push_back((weights.unsqueeze(-1) * particles).sum(1));
    const Tensor deviation = particles - means.back().unsqueeze(1);
    deviations.push_back((weights.unsqueeze(-1) * deviation.square()).sum(1).sqrt());
    sizes.push_back(at::where(explained.squeeze(-1), joined(weights, particles).square().sum(-1).reciprocal(), 0));

    const Tensor index = at::where(explained, systematic(weights, generator), at::arange(n));
    particles = chosen(particles, index);
    ancestor = chosen(ancestor, index);
    counts.push_back(distinct(ancestor));
    if (roughens) {
      ancestor = at::arange(n).expand({b, n});
      const Tensor range = particles.amax(1, true) - particles.amin(1, true);
      const double shrink = std::pow(static_cast<double>(n), -1. / static_cast<double>(d));
      particles =
          particles + options.roughening * shrink * range * at::randn(particles.sizes(), generator, at::kDouble);
    }
  }
  return {at::stack(means), at::stack(deviations), at::stack(counts), at::stack(sizes), particles};
}

}  // namespace lcp::identification
