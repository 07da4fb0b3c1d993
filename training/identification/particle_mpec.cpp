#include "identification/particle_mpec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>

#include "run/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::int64_t kUnknownsOfStep = 11, kUnknownsOfStart = 5;

// The order of the unknowns of one particle: mu, q_0, v_0, then for each step q, v, lambda_n, lambda_+, lambda_-,
// sigma, s_1, s_2, s_3 >= 0, where lambda_+ acts against v_x > 0 and
//
//   s_1 = sigma - v_x,  s_2 = sigma + v_x,  s_3 = mu lambda_n - lambda_+ - lambda_-.
struct Layout {
  std::int64_t first;

  std::int64_t mu() const { return first; }
  std::int64_t q(std::int64_t step, std::int64_t c) const { return step == 0 ? first + 1 + c : of(step, c); }
  std::int64_t v(std::int64_t step, std::int64_t c) const { return step == 0 ? first + 3 + c : of(step, 2 + c); }
  std::int64_t of(std::int64_t step, std::int64_t k) const {
    return first + kUnknownsOfStart + (step - 1) * kUnknownsOfStep + k;
  }
};

}  // namespace

BilinearProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound) {
  const Tracks& tracks = problem.tracks;
  const std::int64_t steps = tracks.steps();
  const double dt = tracks.dt, mass = flags.block.mass;
  const bool free_q = flags.estimate != "mu", free_v = flags.estimate == "mu,q0,v0";
  const std::array<double, 2> acceleration = {flags.force[0] / mass, flags.force[1] / mass - flags.block.gravity};
  BilinearProgram program;
  for (std::int64_t b = 0; b < tracks.count(); ++b) {
    const Layout at{static_cast<std::int64_t>(program.lower.size())};
    const auto observed = [&](std::int64_t k, std::int64_t c) { return tracks.observed[k][b][c].item<double>(); };
    const auto weight = [&](std::int64_t k) { return tracks.seen[k][b][0].item<double>(); };
    const auto bounded = [&](std::int64_t k) { return bound.size > 0 && weight(k) > 0; };
    const auto add_position = [&](std::int64_t k, std::int64_t c, double low, double high, double initial,
                                  double objective_weight) {
      const double seen = observed(k, c);
      if (bounded(k) && !bound.euclidean) {
        low = std::max(low, seen - bound.size);
        high = std::min(high, seen + bound.size);
      }
      if (low > high) {
        throw std::runtime_error("no motion is within " + short_number(bound.size) + " m of track " +
                                 std::to_string(b) + " in step " + std::to_string(k) + (c == 0 ? ": x = " : ": y = ") +
                                 short_number(seen));
      }
      program.add(low, high, initial, objective_weight, seen);
    };
    program.add(0, 1, 1);
    for (const std::int64_t c : {0, 1}) {
      const double known = problem.start.position[b][c].item<double>();
      const double low = free_q ? (c == 0 ? -kUnbounded : 0) : known, high = free_q ? kUnbounded : known;
      add_position(0, c, low, high, free_q ? observed(0, c) : known, weight(0) + (free_q ? flags.prior : 0));
    }
    for (const std::int64_t c : {0, 1}) {
      const double known = problem.start.velocity[b][c].item<double>();
      program.add(free_v ? -kUnbounded : known, free_v ? kUnbounded : known, known, free_v ? flags.prior : 0, known);
    }
    for (std::int64_t k = 1; k <= steps; ++k) {
      for (const std::int64_t c : {0, 1}) {
        add_position(k, c, c == 0 ? -kUnbounded : 0, kUnbounded, observed(k, c), weight(k));
      }
      for (const std::int64_t c : {0, 1}) {
        program.add(-kUnbounded, kUnbounded, (observed(k, c) - observed(k - 1, c)) / dt);
      }
      for (int slack = 0; slack < 7; ++slack) program.add(0, kUnbounded, 0);
      const std::int64_t normal = at.of(k, 4), plus = at.of(k, 5), minus = at.of(k, 6), sigma = at.of(k, 7);
      const std::int64_t s_1 = at.of(k, 8), s_2 = at.of(k, 9), s_3 = at.of(k, 10);
      for (const std::int64_t c : {0, 1}) {
        program.equations.push_back({{{at.q(k, c), 1}, {at.q(k - 1, c), -1}, {at.v(k, c), -dt}}, 0});
      }
      program.equations.push_back(
          {{{at.v(k, 0), 1}, {at.v(k - 1, 0), -1}, {plus, dt / mass}, {minus, -dt / mass}}, dt * acceleration[0]});
      program.equations.push_back(
          {{{at.v(k, 1), 1}, {at.v(k - 1, 1), -1}, {normal, -dt / mass}}, dt * acceleration[1]});
      program.equations.push_back({{{s_1, 1}, {sigma, -1}, {at.v(k, 0), 1}}, 0});
      program.equations.push_back({{{s_2, 1}, {sigma, -1}, {at.v(k, 0), -1}}, 0});
      program.equations.push_back({{{s_3, 1}, {normal, -1, at.mu()}, {plus, 1}, {minus, 1}}, 0});
      program.pairs.push_back({normal, at.q(k, 1)});
      program.pairs.push_back({plus, s_1});
      program.pairs.push_back({minus, s_2});
      program.pairs.push_back({sigma, s_3});
    }
    for (std::int64_t k = 0; k <= steps && bound.euclidean; ++k) {
      if (!bounded(k)) continue;
      const double square = bound.size * bound.size;
      program.balls.push_back({{at.q(k, 0), at.q(k, 1)}, {observed(k, 0), observed(k, 1)}, square});
    }
  }
  return program;
}

ParticleEstimate read_particles(const TrackFlags& flags, const TrackProblem& problem, const MpecSolution& solution) {
  const std::int64_t b = problem.tracks.count(), steps = problem.tracks.steps();
  const Tensor all = at::tensor(solution.x, at::kDouble).view({b, kUnknownsOfStart + steps * kUnknownsOfStep});
  const Tensor start = all.slice(-1, 1, kUnknownsOfStart).unsqueeze(1);
  const Tensor states =
      at::cat({start, all.slice(-1, kUnknownsOfStart).view({b, steps, kUnknownsOfStep}).slice(-1, 0, 4)}, 1);
  const auto mass = particle_mass(flags, problem.tracks.dt, all.select(-1, 0).unsqueeze(-1));
  const Tensor before = states.slice(1, 0, steps), after = states.slice(1, 1);
  const Tensor u = at::tensor(flags.force, at::kDouble).expand({b, steps, 2});
  const auto step = physics::exact_step({before.slice(-1, 0, 2), before.slice(-1, 2)}, u, mass);
  return {all.slice(-1, 0, ParticleModel(flags, problem).unknowns()).clone(),
          (step.next.velocity - after.slice(-1, 2)).abs().amax({1, 2})};
}

}  // namespace lcp::training
