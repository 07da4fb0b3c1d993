#include "identification/track_program.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "run/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

double number(const Tensor& x, std::int64_t i, std::int64_t j) { return x[i][j].item<double>(); }

}  // namespace

TrackProgram::TrackProgram(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound,
                           std::int64_t contact)
    : flags_(flags),
      problem_(problem),
      bound_(bound),
      width_(problem.reach.size(0)),
      moving_((problem.process.defined() ? 3 : 2) * width_),
      contact_(contact) {}

void TrackProgram::add_position(std::int64_t k, std::int64_t c, double low, double high, double initial,
                                double weight) {
  const double observed = number(problem_.tracks.observed[k], body_, c), reach = problem_.reach[c].item<double>();
  const bool bounded = bound_.size > 0 && number(problem_.tracks.seen[k], body_, 0) > 0;
  if (bounded && !bound_.euclidean) {
    low = std::max(low, observed - bound_.size / reach);
    high = std::min(high, observed + bound_.size / reach);
  }
  if (low > high) {
    throw std::runtime_error("no motion is within " + short_number(bound_.size) + " m of track " +
                             std::to_string(body_) + " in step " + std::to_string(k) + ": " +
                             flags_.coordinates[static_cast<std::size_t>(c)] + " = " + short_number(observed));
  }
  program.add(low, high, initial, weight * reach * reach, observed);
}

void TrackProgram::add_body(std::int64_t body, std::vector<double> least) {
  body_ = body;
  first_ = static_cast<std::int64_t>(program.lower.size());
  least_ = std::move(least);
  const bool free_q = flags_.estimate != "mu", free_v = flags_.estimate == "mu,q0,v0";
  program.add(0, 1, 1);
  for (std::int64_t c = 0; c < width_; ++c) {
    const double known = number(problem_.start.position, body, c);
    add_position(0, c, free_q ? least_[static_cast<std::size_t>(c)] : known, free_q ? kUnbounded : known,
                 free_q ? number(problem_.tracks.observed[0], body, c) : known,
                 number(problem_.tracks.seen[0], body, 0) + (free_q ? flags_.prior : 0));
  }
  for (std::int64_t c = 0; c < width_; ++c) {
    const double known = number(problem_.start.velocity, body, c), reach = problem_.reach[c].item<double>();
    program.add(free_v ? -kUnbounded : known, free_v ? kUnbounded : known, known,
                free_v ? flags_.prior * reach * reach : 0, known);
  }
}

void TrackProgram::begin_with(double mu) {
  const std::size_t count = program.start.size() / static_cast<std::size_t>(problem_.tracks.count());
  for (std::size_t k = 0; k < program.start.size(); k += count) program.start[k] = mu;  // mu is the first of a body
}

BilinearProgram TrackProgram::with_known_velocity() const {
  BilinearProgram held = program;
  const std::size_t count = held.start.size() / static_cast<std::size_t>(problem_.tracks.count());
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t k = 0; k < held.start.size(); k += count) {
    for (std::size_t c = k + 1 + width; c < k + 1 + 2 * width; ++c) held.lower[c] = held.upper[c] = held.start[c];
  }
  return held;
}

void TrackProgram::add_step(std::int64_t k) {
  const Tensor &now = problem_.tracks.observed[k], &before = problem_.tracks.observed[k - 1];
  const double dt = problem_.tracks.dt;
  for (std::int64_t c = 0; c < width_; ++c) {
    add_position(k, c, least_[static_cast<std::size_t>(c)], kUnbounded, number(now, body_, c),
                 number(problem_.tracks.seen[k], body_, 0));
  }
  for (std::int64_t c = 0; c < width_; ++c) {
    program.add(-kUnbounded, kUnbounded, (number(now, body_, c) - number(before, body_, c)) / dt);
    program.equations.push_back({{{q(k, c), 1}, {q(k - 1, c), -1}, {v(k, c), -dt}}, 0});
  }
  for (std::int64_t c = 2 * width_; c < moving_; ++c) {  // over their standard deviations, and weighed as the noise is
    program.add(-kUnbounded, kUnbounded, 0, problem_.noise * problem_.noise);
  }
}

void TrackProgram::balance(std::int64_t k, std::int64_t c, double inertia, double known,
                           const std::vector<BilinearProgram::Term>& terms) {
  const double scale = problem_.tracks.dt / inertia;
  std::vector<BilinearProgram::Term> all = {{v(k, c), 1}, {v(k - 1, c), -1}};
  if (problem_.process.defined()) all.push_back({of(k, 2 * width_ + c), -scale * problem_.process[c].item<double>()});
  for (const auto& [x, factor, by] : terms) all.push_back({x, -scale * factor, by});
  program.equations.push_back({std::move(all), scale * known});
}

TrackProgram::Solution TrackProgram::read(const MpecSolution& solution, const TrackModel& model) const {
  const std::int64_t b = problem_.tracks.count(), steps = problem_.tracks.steps(), start = 1 + 2 * width_;
  const Tensor all = at::tensor(solution.x, at::kDouble).view({b, -1});
  const Tensor step = all.slice(-1, start).view({b, steps, moving_ + contact_}).transpose(0, 1);
  const auto with_start = [&](std::int64_t first) {
    return at::cat({all.slice(-1, 1 + first, 1 + first + width_).unsqueeze(0), step.slice(-1, first, first + width_)});
  };
  const Tensor random = step.slice(-1, 2 * width_, moving_).transpose(0, 1).flatten(1);
  return {at::cat({all.slice(-1, 0, model.unknowns()), random}, -1),
          {with_start(0), with_start(width_)},
          step.slice(-1, moving_)};
}

Tensor after_start(const Tensor& x) {
  return at::cat({at::full_like(x[0], std::numeric_limits<double>::quiet_NaN()).unsqueeze(0), x});
}

Tensor step_residual(const TrackModel& model, const Tensor& theta, const BodyState& motion) {
  const std::int64_t steps = model.problem().tracks.steps();
  const BodyState next = model.step({motion.position.slice(0, 0, steps), motion.velocity.slice(0, 0, steps)},
                                    theta.select(-1, 0).expand({steps, theta.size(0)}), model.forces(theta));
  return after_start(((next.velocity - motion.velocity.slice(0, 1)) * model.problem().reach).abs().amax(-1));
}

Table motion_table(const TrackFlags& flags, const Tracks& tracks, const ProgramMotion& found) {
  return track_table(tracks)
      .add_steps("step")
      .add_steps("time", 0, tracks.dt)
      .add(flags.coordinates, found.motion.position)
      .add(flags.velocities(), found.motion.velocity)
      .add(found.force_names, found.forces)
      .add("product", found.product)
      .add("residual", found.residual)
      .take();
}

}  // namespace lcp::training
