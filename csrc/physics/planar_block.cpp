#include "lcp/physics/planar_block.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lcp/physics/friction_cone.h"
#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using Formulation = PlanarBlockFormulation;

PlanarBlock in_precision_of(const Tensor& v, const PlanarBlock& block) {
  const auto dtype = v.scalar_type();
  return {block.mass.to(dtype), block.dt.to(dtype), block.mu.to(dtype), block.gravity.to(dtype)};
}

Tensor free_velocity(const Tensor& v, const Tensor& u, const PlanarBlock& block) {
  return v + (block.dt / block.mass).unsqueeze(-1) * u.to(v.scalar_type());
}

Tensor friction_speed(const PlanarBlock& block) { return block.dt * block.mu * block.gravity; }

Tensor force_of(const Tensor& v_next, const Tensor& free, const PlanarBlock& block) {
  return (block.mass / block.dt).unsqueeze(-1) * (v_next - free);
}

// a / |a|, and 0 with a derivative of 0 where a = 0.
Tensor direction_of(const Tensor& a) {
  const Tensor zero = (a == 0).all(-1, true);
  return at::where(zero, 0, a / at::where(zero, 1, a).norm(2, -1, true));
}

// Projections on the directions D, [2, n]: [..., n].
Tensor along(const Tensor& a, const Tensor& D) { return at::matmul(a, D); }

// What direction_problem and read_direction share; free = v*.
Tensor direction_vector(const Tensor& free, const Tensor& t, const PlanarBlock& block, const Tensor& D) {
  const Tensor towards = at::where((t == 0).all(-1, true), 1, at::clamp_min(along(t, D), 0));
  return (block.mass / block.dt).unsqueeze(-1) * (friction_speed(block).unsqueeze(-1) * towards - along(free, D));
}

Tensor decoded(const Tensor& z, const Tensor& D) {
  return at::matmul(z, D.t()) * (4.0 / static_cast<double>(D.size(1)));
}

Tensor direction_matrix(const PlanarBlock& block, const Tensor& D) {
  return (block.mass / block.dt).unsqueeze(-1).unsqueeze(-1) * at::eye(D.size(1), D.options());
}

Tensor polyhedral_matrix(const PlanarBlock& block, const Tensor& D) {
  const Tensor c = (block.dt / block.mass).unsqueeze(-1).unsqueeze(-1);
  const Tensor e = at::ones({D.size(1), 1}, D.options());
  const Tensor cone = at::cat({at::cat({at::zeros({D.size(1), D.size(1)}, D.options()), e}, 1),
                               at::cat({-e.t(), at::zeros({1, 1}, D.options())}, 1)});
  return c * at::constant_pad_nd(at::matmul(D.t(), D), {0, 1, 0, 1}) + cone;
}

Tensor polyhedral_vector(const Tensor& free, const PlanarBlock& block, const Tensor& D) {
  const Tensor limit = block.mu * block.mass * block.gravity;
  const Tensor projections = along(free, D);
  const auto batch = at::infer_size(limit.sizes(), projections.sizes().slice(0, projections.dim() - 1));
  auto wide = batch;
  wide.push_back(D.size(1));
  return at::cat({projections.expand(wide), limit.expand(batch).unsqueeze(-1)}, -1);
}

Tensor polyhedral_velocity(const Tensor& z, const Tensor& w, const Tensor& D) {
  const std::int64_t n = D.size(1);
  const Tensor v_next = at::matmul(w.slice(-1, 0, n), D.t()) * (2.0 / static_cast<double>(n));
  return at::where(z.slice(-1, n) == 0, 0, v_next);
}

void check(const PlanarBlockOptions& options) {
  TORCH_CHECK(options.max_passes >= 1, "max_passes must be >= 1; got ", options.max_passes);
  const double tolerance = options.direction_tolerance.value_or(0);
  TORCH_CHECK(tolerance >= 0, "direction_tolerance must be >= 0; got ", tolerance);
}

// What a step ends with, and how it came to be.
struct Pass {
  Tensor v_next, z, w, status, direction, passes, converged;
};

class Stepper {
 public:
  Stepper(const Tensor& v, const PlanarBlock& block, const PlanarBlockOptions& options,
          const SolveOptions& solve_options)
      : block_(in_precision_of(v, block)),
        options_(options),
        solve_options_(solve_options),
        D_(friction_directions(options.directions, v.options())),
        M_(polyhedral() ? polyhedral_matrix(block_, D_) : direction_matrix(block_, D_)) {
    check(options);
    if (!polyhedral()) solve_options_.ties = "midpoint";
  }

  Pass pass(const Tensor& v, const Tensor& u) const {
    const Tensor free = free_velocity(v, u, block_);
    switch (options_.formulation) {
      case Formulation::kExactDirection:
        return with_direction(free, direction_of(free));
      case Formulation::kFixedPoint:
        return fixed_point(v, free);
      case Formulation::kPolyhedral: {
        SolveResult result = solve(M_, polyhedral_vector(free, block_, D_), solve_options_);
        Tensor v_next = polyhedral_velocity(result.z, result.w, D_);
        return finished(std::move(v_next), std::move(result), at::zeros_like(free));
      }
    }
    TORCH_INTERNAL_ASSERT(false);
  }

  PlanarBlockSolution solution(const Tensor& v, const Tensor& u, const Pass& pass) const {
    const Tensor free = free_velocity(v, u, block_);
    const Tensor force = polyhedral() ? read_polyhedral(pass.z, pass.w).force : force_of(pass.v_next, free, block_);
    return {{{pass.v_next, force}, pass.z, natural_residual(problem(free, pass.direction), pass.z), pass.status},
            pass.direction,
            pass.passes,
            pass.converged};
  }

  Problem problem(const Tensor& free, const Tensor& direction) const {
    return {M_, polyhedral() ? polyhedral_vector(free, block_, D_) : direction_vector(free, direction, block_, D_)};
  }

 private:
  bool polyhedral() const { return options_.formulation == Formulation::kPolyhedral; }

  static Pass finished(Tensor v_next, SolveResult result, Tensor direction) {
    Tensor passes = at::ones(result.status.sizes(), result.status.options().dtype(at::kLong));
    Tensor converged = at::ones_like(passes, at::kBool);
    return {std::move(v_next),    std::move(result.z), std::move(result.w), std::move(result.status),
            std::move(direction), std::move(passes),   std::move(converged)};
  }

  Pass with_direction(const Tensor& free, const Tensor& t) const {
    SolveResult result = solve(M_, direction_vector(free, t, block_, D_), solve_options_);
    Tensor v_next = decoded(result.z, D_);
    return finished(std::move(v_next), std::move(result), t.expand_as(v_next));
  }

  Pass fixed_point(const Tensor& v, const Tensor& free) const {
    const double tolerance = options_.direction_tolerance.value_or(v.scalar_type() == at::kDouble ? 1e-12 : 1e-5);
    Pass now = with_direction(free, direction_of(at::where((v == 0).all(-1, true), free, v)));
    now.converged = advanced(now).second <= tolerance;
    while (now.passes.max().item<std::int64_t>() < options_.max_passes && !now.converged.all().item<bool>()) {
      // Elements that have converged keep what they have: each element's passes are its own.
      const Tensor open = ~now.converged;
      Pass next = with_direction(free, at::where(open.unsqueeze(-1), advanced(now).first, now.direction));
      next.passes = now.passes + open;
      next.converged = now.converged | (advanced(next).second <= tolerance);
      now = std::move(next);
    }
    return now;
  }

  // The next direction, and by how much it differs.
  std::pair<Tensor, Tensor> advanced(const Pass& pass) const {
    const Tensor& t = pass.direction;
    const Tensor towards = options_.relaxed ? pass.v_next + friction_speed(block_).unsqueeze(-1) * t : pass.v_next;
    // A block that sticks keeps its direction.
    const Tensor next = at::where((towards == 0).all(-1, true), t, direction_of(towards));
    const c10::NoGradGuard no_grad;
    return {next, (next - t).norm(2, -1)};
  }

  PlanarBlock block_;
  PlanarBlockOptions options_;
  SolveOptions solve_options_;
  Tensor D_;
  Tensor M_;
};

}  // namespace

PlanarBlock PlanarBlock::of(double mass, double dt, double mu, double gravity) {
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity)};
}

PlanarBlockStep exact_step(const Tensor& v, const Tensor& u, const PlanarBlock& parameters) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor free = free_velocity(v, u, block);
  const Tensor resting = (free == 0).all(-1, true);
  const Tensor speed = at::where(resting, 1, free).norm(2, -1, true);
  const Tensor v_next = at::where(resting, 0, free * at::clamp_min(1 - friction_speed(block).unsqueeze(-1) / speed, 0));
  return {v_next, force_of(v_next, free, block)};
}

Problem direction_problem(const Tensor& v, const Tensor& u, const Tensor& t, const PlanarBlock& parameters,
                          std::int64_t directions) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor D = friction_directions(directions, v.options());
  return {direction_matrix(block, D), direction_vector(free_velocity(v, u, block), t.to(v.scalar_type()), block, D)};
}

PlanarBlockStep read_direction(const Tensor& v, const Tensor& u, const Tensor& z, const PlanarBlock& parameters) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor v_next = decoded(z, friction_directions(z.size(-1), z.options()));
  return {v_next, force_of(v_next, free_velocity(v, u, block), block)};
}

Problem polyhedral_problem(const Tensor& v, const Tensor& u, const PlanarBlock& parameters, std::int64_t directions) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor D = friction_directions(directions, v.options());
  return {polyhedral_matrix(block, D), polyhedral_vector(free_velocity(v, u, block), block, D)};
}

PlanarBlockStep read_polyhedral(const Tensor& z, const Tensor& w) {
  const Tensor D = friction_directions(z.size(-1) - 1, z.options());
  return {polyhedral_velocity(z, w, D), at::matmul(z.slice(-1, 0, D.size(1)), D.t())};
}

PlanarBlockSolution step(const Tensor& v, const Tensor& u, const PlanarBlock& block, const PlanarBlockOptions& options,
                         const SolveOptions& solve_options) {
  const Stepper stepper(v, block, options, solve_options);
  return stepper.solution(v, u, stepper.pass(v, u));
}

PlanarBlockSolution simulate(const Tensor& v, const Tensor& u, const PlanarBlock& block,
                             const PlanarBlockOptions& options, const SolveOptions& solve_options) {
  TORCH_CHECK(u.dim() >= 2, "u must be [steps, ..., 2]; got ", u.sizes());
  const Stepper stepper(v, block, options, solve_options);
  const Tensors all = roll({v}, u.size(0), [&](const Tensors& state, std::int64_t k) -> Tensors {
    const Pass pass = stepper.pass(state[0], u[k]);
    return {pass.v_next, pass.z, pass.w, pass.status, pass.direction, pass.passes, pass.converged};
  });
  return stepper.solution(starts(v, all[0]), u, {all[0], all[1], all[2], all[3], all[4], all[5], all[6]});
}

RolloutCertificate certify_rollout(const Tensor& v, const Tensor& u, const PlanarBlock& parameters,
                                   const PlanarBlockOptions& options, const PlanarBlockSolution& rollout,
                                   std::optional<double> tolerance) {
  const Stepper stepper(v, parameters, options, {});
  const Tensor free = free_velocity(starts(v, rollout.step.v_next), u, in_precision_of(v, parameters));
  const Problem problem = stepper.problem(free, rollout.direction);
  return certify_steps(problem, rollout.z, rollout.status, tolerance, [&](const Tensor& ties) {
    if (options.formulation == Formulation::kPolyhedral) return kinked_friction(ties, rollout.z.select(-1, -1));
    // A tie of both d and -d is none of the velocity, which is smooth across it.
    return (ties & ~ties.roll(options.directions / 2, -1)).any(-1);
  });
}

}  // namespace lcp::physics
