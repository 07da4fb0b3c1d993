#include "identification/particle_mpec.h"

#include <ATen/ATen.h>

namespace lcp::training {
namespace {

using torch::Tensor;

// The unknowns of contact: lambda_n, lambda_+, lambda_-, sigma, s_1, s_2, s_3 >= 0, where lambda_+ acts against
// v_x > 0 and
//
//   s_1 = sigma - v_x,  s_2 = sigma + v_x,  s_3 = mu lambda_n - lambda_+ - lambda_-.
constexpr std::int64_t kContact = 7;

}  // namespace

TrackProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound) {
  TrackProgram all(flags, problem, bound, kContact);
  BilinearProgram& program = all.program;
  const std::int64_t steps = problem.tracks.steps();
  const double mass = flags.block.mass;
  for (std::int64_t b = 0; b < problem.tracks.count(); ++b) {
    all.add_body(b, {-kUnbounded, 0});
    for (std::int64_t k = 1; k <= steps; ++k) {
      all.add_step(k);
      for (std::int64_t i = 0; i < kContact; ++i) program.add(0, kUnbounded, 0);
      const std::int64_t normal = all.contact(k, 0), plus = all.contact(k, 1), minus = all.contact(k, 2);
      const std::int64_t sigma = all.contact(k, 3), s_1 = all.contact(k, 4), s_2 = all.contact(k, 5);
      const std::int64_t s_3 = all.contact(k, 6), v_x = all.v(k, 0);
      all.balance(k, 0, mass, flags.force[0], {{plus, -1}, {minus, 1}});
      all.balance(k, 1, mass, flags.force[1] - mass * flags.block.gravity, {{normal, 1}});
      program.equations.push_back({{{s_1, 1}, {sigma, -1}, {v_x, 1}}, 0});
      program.equations.push_back({{{s_2, 1}, {sigma, -1}, {v_x, -1}}, 0});
      program.equations.push_back({{{s_3, 1}, {normal, -1, all.mu()}, {plus, 1}, {minus, 1}}, 0});
      program.pairs.push_back({normal, all.q(k, 1)});
      program.pairs.push_back({plus, s_1});
      program.pairs.push_back({minus, s_2});
      program.pairs.push_back({sigma, s_3});
    }
    for (std::int64_t k = 0; k <= steps && bound.size > 0 && bound.euclidean; ++k) {
      if (problem.tracks.seen[k][b][0].item<double>() == 0) continue;
      const Tensor centre = problem.tracks.observed[k][b];
      program.balls.push_back(
          {{all.q(k, 0), all.q(k, 1)}, {centre[0].item<double>(), centre[1].item<double>()}, bound.size * bound.size});
    }
  }
  return all;
}

ProgramMotion read_particles(const TrackProgram& program, const MpecSolution& solution, const TrackModel& model) {
  const auto [theta, motion, contact] = program.read(solution, model);
  const auto of = [&x = contact](std::int64_t i) { return x.select(-1, i); };
  const Tensor height = motion.position.slice(0, 1).select(-1, 1);
  const Tensor product = at::stack({of(0) * height, of(1) * of(4), of(2) * of(5), of(3) * of(6)}).amax(0);
  return {theta,
          motion,
          {"normal", "friction"},
          after_start(at::stack({of(0), of(2) - of(1)}, -1)),
          after_start(product),
          step_residual(model, theta, motion)};
}

}  // namespace lcp::training
