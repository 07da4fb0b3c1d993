#include "noise/study.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "lcp/nn/traditional_model.h"
#include "lcp/physics/sliding_block.h"
#include "noise/perturbed_lcp.h"
#include "run/program.h"

namespace lcp::training {
namespace {

using physics::Problem;
using torch::Tensor;

const physics::SlidingBlock& unit_block() {
  static const auto block = physics::SlidingBlock::of(1, 1, 1, 1);
  return block;
}

Tensor force(const Tensor& z) { return z.select(-1, 0) - z.select(-1, 1); }

Tensor solve(const Problem& problem, const char* method) {
  SolveOptions options;
  options.method = method;
  return lcp::solve(problem.M, problem.q, options).z;
}

double fraction(const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); }

Problem perturbed(Problem problem, const Noise& noise, double sigma, std::int64_t seed, std::int64_t k) {
  const std::int64_t draws = problem.q.size(0);
  const auto normal = [&](Stream stream, at::IntArrayRef shape) {
    return sigma * at::randn(shape, generator(seed, stream, k), torch::kDouble).to(problem.q.scalar_type());
  };
  if (noise.M) problem.M = problem.M + normal(Stream::kMatrixNoise, {draws, 3, 3});
  if (noise.q) problem.q = problem.q + normal(Stream::kVectorNoise, {draws, 3});
  if (noise.mu) problem.q = problem.q + at::constant_pad_nd(normal(Stream::kVectorNoise, {draws, 1}), {2, 0});
  return problem;
}

}  // namespace

double Measurement::operator[](const std::string& name) const {
  for (const auto& [key, value] : statistics) {
    if (key == name) return value;
  }
  throw std::out_of_range(name);
}

Checkpoint Measurement::save() const {
  Checkpoint checkpoint{{{"statistics", nlohmann::json::array()}}, {{"errors", errors}}};
  std::vector<double> values = {closed_form_error};
  for (const auto& [name, value] : statistics) {
    checkpoint.state["statistics"].push_back(name);
    values.push_back(value);
  }
  checkpoint.tensors["values"] = torch::tensor(values, torch::kDouble);  // JSON has no NaN
  return checkpoint;
}

void Measurement::load(const Checkpoint& checkpoint) {
  const Tensor& values = checkpoint.tensors.at("values");
  closed_form_error = values[0].item<double>();
  errors = checkpoint.tensors.at("errors");
  for (const auto& name : checkpoint.state.at("statistics")) {
    statistics.emplace_back(name, values[static_cast<std::int64_t>(statistics.size()) + 1].item<double>());
  }
}

// In float32 a force that should cancel v + u exactly does so only up to rounding.
double Study::sticking_tolerance() const { return run.dtype == "float32" ? 1e-6 : 1e-12; }

double quantile_of(const Tensor& sorted, double p) {
  if (sorted.numel() == 0) return std::numeric_limits<double>::quiet_NaN();
  return sorted[std::llround(p * static_cast<double>(sorted.numel() - 1))].item<double>();
}

std::vector<State> default_states(std::int64_t draws, std::int64_t seed) {
  const auto normal = [&](Stream stream) { return at::randn({draws}, generator(seed, stream), torch::kDouble); };
  const Tensor push = 1.7 * at::rand({draws}, generator(seed, Stream::kForces, 1), torch::kDouble) - 0.85;
  const Tensor zero = at::zeros({draws}, torch::kDouble);
  return {{"rest", "at rest without a force", zero, zero},
          {"held", "pushed by up to .85 mu m g", zero, push},
          {"random", "v and u at random", normal(Stream::kSpeeds), normal(Stream::kForces)}};
}

State read_states(const std::string& file, std::int64_t draws, const PhysicsFlags& block) {
  const Table table = read_csv(file, {"v", "u"});
  const auto column = [&](const char* name, double unit) {
    const Tensor x = torch::tensor(table[name], torch::kDouble) / unit;
    return x.repeat({(draws + x.size(0) - 1) / x.size(0)});
  };
  return {"data", "v and u of " + std::filesystem::path(file).filename().string(),
          column("v", block.dt * block.mu * block.gravity), column("u", block.max_friction())};
}

Measurement measure(const Study& study, std::size_t state, std::size_t noise, double sigma, std::int64_t number) {
  const auto dtype = study.run.scalar_type();
  const Tensor v = study.states[state].v.to(dtype), u = study.states[state].u.to(dtype);
  const Tensor free = v + u, exact = physics::exact_step(v, u, unit_block()).v_next;
  const Problem problem =
      perturbed(physics::traditional_problem(v, u, unit_block()), kNoises[noise], sigma, study.run.seed, number);
  const auto sticks = [&](const Tensor& v_next) { return v_next.abs() < study.sticking_tolerance(); };

  const Tensor lemke = solve(problem, "lemke"), v_next = free + force(lemke);
  const Solutions all = all_solutions(problem.M, problem.q);
  const Tensor solutions = all.found.sum(0);
  const Tensor error = (v_next - exact).abs().to(torch::kDouble) / sigma;
  const Tensor sorted = std::get<0>(error.masked_select(error.isfinite()).sort());
  const Tensor gamma = lemke.select(-1, 2), gamma_is_zero = gamma == 0;
  const Tensor active_set = nn::TraditionalModelImpl::sticks(lemke.slice(-1, 0, 2), gamma);

  const double unit = sigma * study.unit_velocity();
  Measurement result{state, noise, sigma, {}, torch::empty({kQuantiles + 1}, torch::kDouble), 0};
  for (std::int64_t k = 0; k <= kQuantiles; ++k) {
    result.errors[k] = quantile_of(sorted, static_cast<double>(k) / kQuantiles);
  }
  result.statistics = {
      {"exact", fraction(exact == 0)},
      {"lemke", fraction(sticks(v_next))},
      {"auto", fraction(sticks(free + force(solve(problem, "auto"))))},
      {"any", fraction((sticks(free + force(all.z)) & all.found).any(0))},
      {"several_solutions", fraction(solutions > 1)},
      {"no_solution", fraction(solutions == 0)},
      {"within_1e-3", fraction(v_next.abs() < 1e-3)},
      {"within_1e-2", fraction(v_next.abs() < 1e-2)},
      {"gamma_zero_sticking", fraction(gamma_is_zero.masked_select(exact == 0))},
      {"gamma_zero_sliding", fraction(gamma_is_zero.masked_select(exact != 0))},
      {"active_set_sticking", fraction(active_set.masked_select(exact == 0))},
      {"active_set_sliding", fraction(active_set.masked_select(exact != 0))},
      {"error_median", quantile_of(sorted, 0.5) * unit},
      {"error_95", quantile_of(sorted, 0.95) * unit},
      {"error_median_over_sigma", quantile_of(sorted, 0.5)},
      {"error_95_over_sigma", quantile_of(sorted, 0.95)},
  };
  if (!kNoises[noise].M) {
    const Tensor closed_form = free + biased_friction(problem.q, at::ones({}, dtype)).force;
    const Tensor both_unsolved = v_next.isnan() & closed_form.isnan();
    result.closed_form_error = (v_next - closed_form).masked_fill(both_unsolved, 0).abs().max().item<double>();
  }
  return result;
}

std::vector<SingleEntryChange> change_single_entries(const Study& study) {
  const auto dtype = study.run.scalar_type();
  std::vector<SingleEntryChange> all;
  for (std::size_t k = 0; k < kSingleEntryStates.size(); ++k) {
    const Tensor v = at::full({}, kSingleEntryStates[k].first, dtype),
                 u = at::full({}, kSingleEntryStates[k].second, dtype);
    const Problem exact = physics::traditional_problem(v, u, unit_block());
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t row = i / 8, column = i / 2 % 4;
      const double change = i % 2 == 0 ? kChange : -kChange;
      Tensor M_and_q = at::cat({exact.M, exact.q.unsqueeze(-1)}, -1);
      M_and_q[row][column] += change;
      const Tensor z = solve({M_and_q.slice(-1, 0, 3), M_and_q.select(-1, 3)}, "lemke");
      const double v_next = (v + u + force(z)).item<double>();
      all.push_back(
          {k, row + 1, column + 1, change, v_next, z[2].item<double>(), std::abs(v_next) < study.sticking_tolerance()});
    }
  }
  return all;
}

std::vector<BiasedStep> biased_steps(const Study& study) {
  const auto dtype = study.run.scalar_type();
  std::vector<BiasedStep> all;
  const auto add = [&](double q_1, double q_2, double free, double v_next, double gamma) {
    const Tensor zero = at::zeros({}, dtype), q = torch::tensor({q_1, q_2, 1.}, dtype);
    const Tensor z = solve({physics::traditional_problem(zero, zero, unit_block()).M, q}, "lemke");
    const double unit = study.unit_velocity();
    all.push_back({q_1 * unit, q_2 * unit, free * unit, (free + force(z).item<double>()) * unit,
                   z[2].item<double>() * unit, v_next * unit, gamma * unit});
  };
  for (const double error : {1e-3, 1e-2, 1e-1}) {
    add(-error, 0, 0, error / 2, error / 2);
    add(error, 0, 0, 0, 0);
  }
  const std::pair<double, double> weights[] = {{0.9, 1.1}, {1, 1.2}, {1.1, 0.9}, {1, 1},
                                               {0.8, 1},   {1.2, 1}, {1, 0.8},   {0.7, 1.2}};
  for (const auto& [a_1, a_2] : weights) {
    for (const double u : {0.2, -0.2}) {
      const bool slack = (a_2 - a_1) * u >= 0;
      const double weight = slack ? (a_1 + a_2) / 2 : u > 0 ? a_2 : a_1;
      add(a_1 * u, -a_2 * u, u, u * (1 - weight), slack ? (a_2 - a_1) * u / 2 : 0);
    }
  }
  return all;
}

}  // namespace lcp::training
