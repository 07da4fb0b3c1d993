#include "identification/tripod_mpec.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace lcp::training {
namespace {

using torch::Tensor;
using Term = BilinearProgram::Term;

constexpr std::int64_t kSupports = 3;

// The unknowns of contact of a step: c and s, the cosine and the sine of the angle at its start, and of each support i
// the load N_i and, >= 0, the forces lambda_ij along the directions d_j, sigma_i and the slacks
//
//   s_ij = sigma_i + d_j.v_i,   s_i = mu N_i - sum_j lambda_ij,
//
// where v_i = v + omega x R r_i and R r_i = (c r_x - s r_y, s r_x + c r_y).
struct Layout {
  std::int64_t directions;

  std::int64_t support(std::int64_t i) const { return 2 + i * (2 * directions + 3); }
  std::int64_t load(std::int64_t i) const { return support(i); }
  std::int64_t force(std::int64_t i, std::int64_t j) const { return support(i) + 1 + j; }
  std::int64_t sigma(std::int64_t i) const { return support(i) + 1 + directions; }
  std::int64_t slip_slack(std::int64_t i, std::int64_t j) const { return support(i) + 2 + directions + j; }
  std::int64_t cone_slack(std::int64_t i) const { return support(i) + 2 + 2 * directions; }
  std::int64_t count() const { return support(kSupports); }
};

struct Direction {
  double x, y;
};

Direction direction(std::int64_t j, std::int64_t n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

TrackProgram tripod_program(const TripodTrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound) {
  const Layout layout{flags.block.directions};
  const TrackFlags& tracks = flags.tracks;
  const std::int64_t n = layout.directions;
  const double mass = tracks.block.mass, height = flags.block.com_height;
  const Tensor rest = physics::static_normals(tripod_of(flags, problem.tracks.dt, at::zeros({}, at::kDouble)));  // [3]
  TrackProgram all(tracks, problem, bound, layout.count());
  BilinearProgram& program = all.program;
  for (std::int64_t b = 0; b < problem.tracks.count(); ++b) {
    all.add_body(b, std::vector<double>(3, -kUnbounded));
    for (std::int64_t k = 1; k <= problem.tracks.steps(); ++k) {
      all.add_step(k);
      const auto at = [&](std::int64_t place) { return all.contact(k, place); };
      const double angle = problem.tracks.observed[k - 1][b][2].item<double>();
      const std::int64_t c = program.add(-1, 1, std::cos(angle)), s = program.add(-1, 1, std::sin(angle));
      program.rotations.push_back({all.q(k - 1, 2), c, s});
      std::vector<Term> force_x, force_y, moment, load, tilt_x, tilt_y;
      for (std::int64_t i = 0; i < kSupports; ++i) {
        const double r_x = flags.block.supports[static_cast<std::size_t>(2 * i)];
        const double r_y = flags.block.supports[static_cast<std::size_t>(2 * i + 1)];
        const double N = rest[i].item<double>();
        program.add(height > 0 ? 0 : N, height > 0 ? kUnbounded : N, N);
        for (std::int64_t x = layout.force(i, 0); x < layout.support(i + 1); ++x) program.add(0, kUnbounded, 0);
        load.push_back({at(layout.load(i)), 1});
        // sum_i N_i R r_i + h sum_i f_i = 0.
        tilt_x.insert(tilt_x.end(), {{at(layout.load(i)), r_x, c}, {at(layout.load(i)), -r_y, s}});
        tilt_y.insert(tilt_y.end(), {{at(layout.load(i)), r_x, s}, {at(layout.load(i)), r_y, c}});
        std::vector<Term> cone = {{at(layout.cone_slack(i)), 1}, {at(layout.load(i)), -1, all.mu()}};
        for (std::int64_t j = 0; j < n; ++j) {
          const auto [d_x, d_y] = direction(j, n);
          const std::int64_t lambda = at(layout.force(i, j)), slack = at(layout.slip_slack(i, j));
          const double with_c = r_x * d_y - r_y * d_x, with_s = -r_y * d_y - r_x * d_x;  // R r_i x d_j
          force_x.push_back({lambda, d_x});
          force_y.push_back({lambda, d_y});
          moment.insert(moment.end(), {{lambda, with_c, c}, {lambda, with_s, s}});
          cone.push_back({lambda, 1});
          program.equations.push_back({{{slack, 1},
                                        {at(layout.sigma(i)), -1},
                                        {all.v(k, 0), -d_x},
                                        {all.v(k, 1), -d_y},
                                        {all.v(k, 2), -with_c, c},
                                        {all.v(k, 2), -with_s, s}},
                                       0});
          program.pairs.push_back({lambda, slack});
        }
        program.equations.push_back({cone, 0});
        program.pairs.push_back({at(layout.sigma(i)), at(layout.cone_slack(i))});
      }
      all.balance(k, 0, mass, tracks.force[0], force_x);
      all.balance(k, 1, mass, tracks.force[1], force_y);
      all.balance(k, 2, flags.block.inertia, tracks.force[2], moment);
      if (height == 0) continue;  // the loads are those at rest
      for (const auto& [lambda, d_x, none] : force_x) tilt_x.push_back({lambda, height * d_x});
      for (const auto& [lambda, d_y, none] : force_y) tilt_y.push_back({lambda, height * d_y});
      program.equations.push_back({load, mass * tracks.block.gravity});
      program.equations.push_back({tilt_x, 0});
      program.equations.push_back({tilt_y, 0});
    }
  }
  return all;
}

ProgramMotion read_tripods(const TripodTrackFlags& flags, const TrackProgram& program, const MpecSolution& solution,
                           const TrackModel& model) {
  const Layout layout{flags.block.directions};
  const std::int64_t n = layout.directions;
  const auto [theta, motion, contact] = program.read(solution, model);
  const auto of = [&x = contact](std::int64_t i) { return x.select(-1, i); };
  const Tensor c = of(0), s = of(1);
  Tensor normal = at::zeros_like(c), x = normal, y = normal, moment = normal, product = normal;
  for (std::int64_t i = 0; i < kSupports; ++i) {
    const double r_x = flags.block.supports[static_cast<std::size_t>(2 * i)];
    const double r_y = flags.block.supports[static_cast<std::size_t>(2 * i + 1)];
    normal = normal + of(layout.load(i));
    product = at::maximum(product, of(layout.sigma(i)) * of(layout.cone_slack(i)));
    for (std::int64_t j = 0; j < n; ++j) {
      const auto [d_x, d_y] = direction(j, n);
      const Tensor lambda = of(layout.force(i, j));
      x = x + d_x * lambda;
      y = y + d_y * lambda;
      moment = moment + lambda * (c * (r_x * d_y - r_y * d_x) - s * (r_y * d_y + r_x * d_x));
      product = at::maximum(product, lambda * of(layout.slip_slack(i, j)));
    }
  }
  return {theta,
          motion,
          {"normal", "friction_x", "friction_y", "moment"},
          after_start(at::stack({normal, x, y, moment}, -1)),
          after_start(product),
          step_residual(model, theta, motion)};
}

}  // namespace lcp::training
