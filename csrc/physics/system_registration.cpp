// The systems as operators, for TorchScript and Python: their rollouts, the problems of a step, the steps in closed
// form and the certificates of rollouts. The parameters of a system, and a rollout that is certified, are lists.
#include <torch/library.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "lcp/physics/compliant_block.h"
#include "lcp/physics/compliant_particle.h"
#include "lcp/physics/direct_friction.h"
#include "lcp/physics/falling_block.h"
#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/point_mass.h"
#include "lcp/physics/sliding_block.h"
#include "lcp/physics/tripod.h"
#include "ops/composite.h"

namespace lcp {

LCP_MEMBERS(RegularizationOptions, sigma, beta)
LCP_MEMBERS_BY(ContactOptions, "tolerance, max_iterations",
               [](auto& x) { return std::tie(x.tolerance, x.max_iterations); })

namespace physics {

LCP_MEMBERS(Problem, M, q)
LCP_MEMBERS(MixedProblem, A, B, C, M, p, q)
LCP_MEMBERS(RolloutCertificate, unsolved, tied, kinked)
template <class Step>
LCP_MEMBERS(Solution<Step>, step, z, residual, status)

LCP_MEMBERS(SlidingBlock, mass, dt, mu, gravity) LCP_MEMBERS(SlidingBlockStep, v_next, lambda_plus, lambda_minus, gamma)
    LCP_ENUMERATORS(SlidingBlockFormulation, "forward", "direct", "traditional", "mixed")

        LCP_MEMBERS(FallingBlock, mass, dt, gravity) LCP_MEMBERS(FallingBlockStep, x_next, v_next, force)

            LCP_MEMBERS(PlanarBlock, mass, dt, mu, gravity) LCP_MEMBERS(PlanarBlockStep, v_next, force)
                LCP_MEMBERS_BY(PlanarBlockSolution, "step, z, residual, status, direction, passes, converged",
                               [](auto& x) {
                                 return std::tie(x.step, x.z, x.residual, x.status, x.direction, x.passes, x.converged);
                               }) LCP_ENUMERATORS(PlanarBlockFormulation, "exact_direction", "fixed_point",
                                                  "polyhedral") LCP_MEMBERS(PlanarBlockOptions, formulation, directions,
                                                                            max_passes, relaxed, direction_tolerance)

                    LCP_MEMBERS(PointMass, mass, dt, mu, gravity, restitution) LCP_MEMBERS(PointMassState, position,
                                                                                           velocity)
                        LCP_MEMBERS(PointMassStep, _next, lambda_n, lambda_plus, lambda_minus,
                                    gamma) LCP_ENUMERATORS(PointMassFormulation, "stewart_trinkle", "belbute_peres")
                            LCP_ENUMERATORS(Stabilization, "position",
                                            "velocity") LCP_MEMBERS(PointMassOptions, formulation, stabilization)

                                LCP_MEMBERS(Tripod, mass, inertia, dt, mu, gravity, supports, com_height)
                                    LCP_MEMBERS(TripodState, pose, velocity) LCP_MEMBERS(TripodStep, _next, friction,
                                                                                         normal, slip)

                                        LCP_MEMBERS(CompliantGround, mu, stiffness, dissipation, regularization)
                                            LCP_MEMBERS(CompliantParticle, mass, dt, gravity, ground)
                                                LCP_MEMBERS(CompliantBlock, mass, width, height, dt, gravity,
                                                            ground) LCP_MEMBERS(CompliantState, position, velocity)
                                                    LCP_MEMBERS(CompliantProblem, A, v_free, J, v_hat, R, mu)
                                                        LCP_MEMBERS(CompliantStep, _next, gamma)
                                                            LCP_MEMBERS(CompliantSolution, step, status, iterations)
                                                                LCP_MEMBERS(DirectFrictionStep, v_next, slip, impulse)

                                                                    namespace {
  using at::Tensor;
  using Number = std::optional<double>;
  template <class State>
  using OptionalFeedback = std::optional<Feedback<State>>;
  using ops::define;

  // The options of a solve, as far as what reads its solution depends on them.
  struct Smoothing {
    double kappa;

    operator SolveOptions() const {  // NOLINT(google-explicit-constructor): it is an argument in place of options
      SolveOptions options;
      options.kappa = kappa;
      return options;
    }
  };
  LCP_MEMBERS(Smoothing, kappa)

  // The options of a planar block, as far as a certificate depends on them.
  struct Polygon {
    PlanarBlockFormulation formulation;
    std::int64_t directions;

    operator PlanarBlockOptions() const {  // NOLINT(google-explicit-constructor): as above
      PlanarBlockOptions options;
      options.formulation = formulation;
      options.directions = directions;
      return options;
    }
  };
  LCP_MEMBERS(Polygon, formulation, directions)

  // The operators that both bodies on compliant ground have.
  template <class Body>
  void define_compliant(torch::Library & library, const std::string& name) {
    define<CompliantState, Tensor, Body, ContactOptions, OptionalFeedback<CompliantState>>(
        library, "_simulate_" + name + "(state, u, parameters[], *, options=, feedback)", LCP_CALL(simulate));
    define<CompliantState, Tensor, Body>(library, "_" + name + "_problem(state, u, parameters[], *)",
                                         LCP_CALL(contact_problem));
    define<CompliantState, Body>(library, "_" + name + "_gaps(state, parameters[], *)", LCP_CALL(gaps));
    define<CompliantState, Tensor, Body, CompliantSolution, double>(
        library, "_certify_" + name + "(state, u, parameters[], rollout[], *, tolerance=1e-12)",
        LCP_CALL(certify_rollout));
  }

  LCP_LIBRARY_FRAGMENT(library) {
    const auto certify = [](const auto& x, const auto& u, const auto& system, const auto& rollout, const auto& options,
                            Number tolerance) { return certify_rollout(x, u, system, options, rollout, tolerance); };

    define<Tensor, Tensor, SlidingBlock, SlidingBlockFormulation, SolveOptions, OptionalFeedback<Tensor>>(
        library, "_simulate_sliding_block(v, u, parameters[], *, formulation, options=, feedback)", LCP_CALL(simulate));
    define(library, "_sliding_block_problem(v, u, parameters[], *, formulation)",
           [](const Tensor& v, const Tensor& u, const SlidingBlock& block, SlidingBlockFormulation formulation) {
             switch (formulation) {
               case SlidingBlockFormulation::kForward:
                 return forward_problem(v, u, block);
               case SlidingBlockFormulation::kDirect:
                 return direct_problem(v, u, block);
               case SlidingBlockFormulation::kTraditional:
                 return traditional_problem(v, u, block);
               case SlidingBlockFormulation::kMixed:
                 break;
             }
             TORCH_CHECK(false,
                         "formulation must be forward, direct or traditional; got mixed, which is a mixed problem");
           });
    define<mixed_problem>(library, "_sliding_block_mixed_problem(v, u, parameters[])");
    define<Tensor, Tensor, SlidingBlock>(library, "_sliding_block_exact_step(v, u, parameters[])",
                                         LCP_CALL(exact_step));
    define(library, "_read_sliding_block(z, w, parameters[], *, formulation, kappa)",
           [](const Tensor& z, const Tensor& w, const SlidingBlock& block, SlidingBlockFormulation formulation,
              const Smoothing& kappa) {
             return formulation == SlidingBlockFormulation::kForward  ? read_forward(z, w, block)
                    : formulation == SlidingBlockFormulation::kDirect ? read_direct(z, w, block)
                                                                      : read_traditional(z, w, kappa);
           });
    define(library, "_sliding_block_max_friction(parameters[])",
           [](const SlidingBlock& block) { return block.max_friction(); });
    define<Tensor, Tensor, SlidingBlock, SlidingBlockSolution, SlidingBlockFormulation, Number>(
        library, "_certify_sliding_block(v, u, parameters[], rollout[], *, formulation, tolerance=None)", certify);

    define<Tensor, Tensor, std::int64_t, FallingBlock, SolveOptions>(
        library, "_simulate_falling_block(x, v, steps, parameters[], *, options=)", LCP_CALL(simulate));
    define<Tensor, Tensor, FallingBlock>(library, "_falling_block_problem(x, v, parameters[])",
                                         LCP_CALL(direct_problem));
    define<Tensor, Tensor, FallingBlock>(library, "_falling_block_exact_step(x, v, parameters[])",
                                         LCP_CALL(exact_step));
    define<Tensor, Tensor, Tensor, Tensor, FallingBlock>(library, "_read_falling_block(x, v, z, w, parameters[])",
                                                         LCP_CALL(read_direct));
    define<Tensor, Tensor, FallingBlock, FallingBlockSolution, Number>(
        library, "_certify_falling_block(x, v, parameters[], rollout[], *, tolerance=None)", LCP_CALL(certify_rollout));

    define<Tensor, Tensor, PlanarBlock, PlanarBlockOptions, SolveOptions, OptionalFeedback<Tensor>>(
        library, "_simulate_planar_block(v, u, parameters[], *, options, solve_options=, feedback)",
        LCP_CALL(simulate));
    define<Tensor, Tensor, PlanarBlock, std::int64_t>(
        library, "_planar_block_problem(v, u, parameters[], *, directions)", LCP_CALL(polyhedral_problem));
    define<direction_problem>(library, "_planar_block_direction_problem(v, u, t, parameters[], *, directions)");
    define<Tensor, Tensor, PlanarBlock, Tensor>(library, "_planar_block_problem_along(v, u, parameters[], D)",
                                                LCP_CALL(polyhedral_problem));
    define<Tensor, Tensor, PlanarBlock>(library, "_planar_block_exact_step(v, u, parameters[])", LCP_CALL(exact_step));
    define<Tensor, Tensor, Smoothing>(library, "_read_planar_block(z, w, *, kappa)", LCP_CALL(read_polyhedral));
    define<Tensor, Tensor, Tensor, Tensor, PlanarBlock, Tensor>(
        library, "_read_planar_block_along(z, w, v, u, parameters[], D)", LCP_CALL(read_polyhedral));
    define<Tensor, Tensor, Tensor, PlanarBlock, Smoothing>(
        library, "_read_planar_block_direction(v, u, z, parameters[], *, kappa)", LCP_CALL(read_direction));
    define<Tensor, Tensor, PlanarBlock, PlanarBlockSolution, Polygon, Number>(
        library, "_certify_planar_block(v, u, parameters[], rollout[], *, polygon, tolerance=None)", certify);

    define<PointMassState, Tensor, PointMass, PointMassOptions, SolveOptions, OptionalFeedback<PointMassState>>(
        library, "_simulate_point_mass(state, u, parameters[], *, options, solve_options=, feedback)",
        LCP_CALL(simulate));
    define<reduced_problem>(library, "_point_mass_problem(state, u, parameters[], *, stabilization)");
    define(library, "_point_mass_mixed_problem(state, u, parameters[], *, options)",
           [](const PointMassState& state, const Tensor& u, const PointMass& mass, const PointMassOptions& options) {
             return options.formulation == PointMassFormulation::kStewartTrinkle
                        ? stewart_trinkle_problem(state, u, mass, options.stabilization)
                        : belbute_peres_problem(state, u, mass, options.stabilization);
           });
    define<PointMassState, Tensor, PointMass, Stabilization>(
        library, "_point_mass_exact_step(state, u, parameters[], *, stabilization)", LCP_CALL(exact_step));
    define<PointMassState, Tensor, Tensor, Tensor, PointMass, Stabilization, Smoothing>(
        library, "_read_point_mass(state, u, z, w, parameters[], *, stabilization, kappa)", LCP_CALL(read_point_mass));
    define<PointMassState, Tensor, PointMass, PointMassSolution, PointMassOptions, Number>(
        library, "_certify_point_mass(state, u, parameters[], rollout[], *, options, tolerance=None)", certify);

    define<TripodState, Tensor, Tripod, std::int64_t, SolveOptions, OptionalFeedback<TripodState>>(
        library, "_simulate_tripod(state, u, parameters[], *, directions, options=, feedback)", LCP_CALL(simulate));
    define<TripodState, Tensor, Tripod, std::int64_t>(library, "_tripod_problem(state, u, parameters[], *, directions)",
                                                      LCP_CALL(polyhedral_problem));
    define<TripodState, Tensor, Tripod>(library, "_tripod_exact_step(state, u, parameters[]) -> _next",
                                        LCP_CALL(exact_step));
    define<TripodState, Tensor, Tensor, Tripod, Smoothing>(library, "_read_tripod(state, u, z, parameters[], *, kappa)",
                                                           LCP_CALL(read_polyhedral));
    define<static_normals>(library, "_tripod_static_normals(parameters[])");
    define<TripodState, Tensor, Tripod, TripodSolution, std::int64_t, Number>(
        library, "_certify_tripod(state, u, parameters[], rollout[], *, directions, tolerance=None)", certify);

    define_compliant<CompliantParticle>(library, "compliant_particle");
    define_compliant<CompliantBlock>(library, "compliant_block");
    define<CompliantState, Tensor, CompliantParticle>(
        library, "_compliant_particle_exact_step(state, u, parameters[], *)", LCP_CALL(exact_step));
    define<rigid_step>(library, "_compliant_particle_rigid_step(state, u, parameters[], *)");
    define<dual_problem>(library, "_compliant_block_dual_problem(state, u, parameters[], *)");
    define<rigid_problem>(library, "_compliant_block_rigid_problem(state, u, parameters[], *)");
    define<read_dual>(library, "_read_compliant_block_dual(state, u, z, parameters[], *)");
    define<read_rigid>(library, "_read_compliant_block_rigid(state, u, z, parameters[], *)");

    define(library, "_friction_directions(count, *, dtype)",
           [](std::int64_t count, at::ScalarType dtype) { return friction_directions(count, dtype); });
    define<aligned_directions>(library, "_aligned_directions(a, b)");
    define<span_plane>(library, "_span_plane(D)");
    define<direct_friction_problem>(library, "_direct_friction_problem(J, inverse_mass, v_free, limit)");
    define<read_direct_friction>(library, "_read_direct_friction(z, w, J, inverse_mass, v_free)");
  }

}  // namespace
}  // namespace physics
}  // namespace lcp
