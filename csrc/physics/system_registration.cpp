// The systems as operators, for TorchScript and Python: their rollouts, the problems of a step, the steps in closed
// form and the certificates of rollouts. Tensors are those of the C++ functions, in the order of the structs; the
// parameters of a system, and a rollout that is certified, are lists.
#include <torch/library.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

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
#include "physics/named_option.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using at::TensorList;
using Text = std::string;
using Number = std::optional<double>;
using Integer = std::optional<std::int64_t>;

using Tensors2 = std::tuple<Tensor, Tensor>;
using Tensors3 = std::tuple<Tensor, Tensor, Tensor>;
using Tensors4 = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using Tensors5 = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
using Tensors6 = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Tensors7 = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Tensors8 = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Tensors9 = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

void check_size(const char* name, TensorList list, std::size_t size) {
  TORCH_CHECK(list.size() == size, name, " must be ", size, " tensors; got ", list.size());
}

Tensors2 tensors_of(const Problem& problem) { return {problem.M, problem.q}; }
Tensors3 tensors_of(const RolloutCertificate& found) { return {found.unsolved, found.tied, found.kinked}; }
Tensors6 tensors_of(const MixedProblem& problem) {
  return {problem.A, problem.B, problem.C, problem.M, problem.p, problem.q};
}

// The options of a solve, as far as what reads its solution depends on them.
SolveOptions smoothed(double kappa) {
  SolveOptions options;
  options.kappa = kappa;
  return options;
}

// Sliding block

SlidingBlockFormulation sliding_block_formulation(const Text& name) {
  constexpr std::array kNames = {"forward", "direct", "traditional", "mixed"};
  return enumerator_named<SlidingBlockFormulation>("formulation", kNames, name);
}

SlidingBlock sliding_block_of(TensorList parameters) {
  check_size("parameters", parameters, 4);
  return {parameters[0], parameters[1], parameters[2], parameters[3]};
}

Tensors7 simulate_sliding_block(const Tensor& v, const Tensor& u, TensorList parameters, const Text& formulation,
                                const Text& method, const Text& ties, double kappa, Number tolerance,
                                Integer max_pivots) {
  const auto [step, z, residual, status] =
      simulate(v, u, sliding_block_of(parameters), sliding_block_formulation(formulation),
               ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.v_next, step.lambda_plus, step.lambda_minus, step.gamma, z, residual, status};
}

Tensors2 sliding_block_problem(const Tensor& v, const Tensor& u, TensorList parameters, const Text& formulation) {
  const SlidingBlock block = sliding_block_of(parameters);
  switch (sliding_block_formulation(formulation)) {
    case SlidingBlockFormulation::kForward:
      return tensors_of(forward_problem(v, u, block));
    case SlidingBlockFormulation::kDirect:
      return tensors_of(direct_problem(v, u, block));
    case SlidingBlockFormulation::kTraditional:
      return tensors_of(traditional_problem(v, u, block));
    case SlidingBlockFormulation::kMixed:
      break;
  }
  TORCH_CHECK(false, "formulation must be forward, direct or traditional; got mixed, which is a mixed problem");
}

Tensors6 sliding_block_mixed_problem(const Tensor& v, const Tensor& u, TensorList parameters) {
  return tensors_of(mixed_problem(v, u, sliding_block_of(parameters)));
}

Tensors4 sliding_block_exact_step(const Tensor& v, const Tensor& u, TensorList parameters) {
  const SlidingBlockStep step = exact_step(v, u, sliding_block_of(parameters));
  return {step.v_next, step.lambda_plus, step.lambda_minus, step.gamma};
}

Tensors4 read_sliding_block(const Tensor& z, const Tensor& w, TensorList parameters, const Text& formulation,
                            double kappa) {
  const SlidingBlock block = sliding_block_of(parameters);
  const auto read = [&] {
    switch (sliding_block_formulation(formulation)) {
      case SlidingBlockFormulation::kForward:
        return read_forward(z, w, block);
      case SlidingBlockFormulation::kDirect:
        return read_direct(z, w, block);
      case SlidingBlockFormulation::kTraditional:
      case SlidingBlockFormulation::kMixed:
        break;
    }
    return read_traditional(z, w, smoothed(kappa));
  };
  const SlidingBlockStep step = read();
  return {step.v_next, step.lambda_plus, step.lambda_minus, step.gamma};
}

Tensor sliding_block_max_friction(TensorList parameters) { return sliding_block_of(parameters).max_friction(); }

Tensors3 certify_sliding_block(const Tensor& v, const Tensor& u, TensorList parameters, TensorList rollout,
                               const Text& formulation, Number tolerance) {
  check_size("rollout", rollout, 7);
  return tensors_of(certify_rollout(
      v, u, sliding_block_of(parameters), sliding_block_formulation(formulation),
      {{rollout[0], rollout[1], rollout[2], rollout[3]}, rollout[4], rollout[5], rollout[6]}, tolerance));
}

// Falling block

FallingBlock falling_block_of(TensorList parameters) {
  check_size("parameters", parameters, 3);
  return {parameters[0], parameters[1], parameters[2]};
}

Tensors6 simulate_falling_block(const Tensor& x, const Tensor& v, std::int64_t steps, TensorList parameters,
                                const Text& method, const Text& ties, double kappa, Number tolerance,
                                Integer max_pivots) {
  const auto [step, z, residual, status] = simulate(x, v, steps, falling_block_of(parameters),
                                                    ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.x_next, step.v_next, step.lambda, z, residual, status};
}

Tensors2 falling_block_problem(const Tensor& x, const Tensor& v, TensorList parameters) {
  return tensors_of(direct_problem(x, v, falling_block_of(parameters)));
}

Tensors3 falling_block_exact_step(const Tensor& x, const Tensor& v, TensorList parameters) {
  const FallingBlockStep step = exact_step(x, v, falling_block_of(parameters));
  return {step.x_next, step.v_next, step.lambda};
}

Tensors3 read_falling_block(const Tensor& x, const Tensor& v, const Tensor& z, const Tensor& w, TensorList parameters) {
  const FallingBlockStep step = read_direct(x, v, z, w, falling_block_of(parameters));
  return {step.x_next, step.v_next, step.lambda};
}

Tensors3 certify_falling_block(const Tensor& x, const Tensor& v, TensorList parameters, TensorList rollout,
                               Number tolerance) {
  check_size("rollout", rollout, 6);
  return tensors_of(certify_rollout(x, v, falling_block_of(parameters),
                                    {{rollout[0], rollout[1], rollout[2]}, rollout[3], rollout[4], rollout[5]},
                                    tolerance));
}

// Planar block

PlanarBlock planar_block_of(TensorList parameters) {
  check_size("parameters", parameters, 4);
  return {parameters[0], parameters[1], parameters[2], parameters[3]};
}

PlanarBlockOptions planar_block_options(const Text& formulation, std::int64_t directions) {
  constexpr std::array kNames = {"exact_direction", "fixed_point", "polyhedral"};
  PlanarBlockOptions options;
  options.formulation = enumerator_named<PlanarBlockFormulation>("formulation", kNames, formulation);
  options.directions = directions;
  return options;
}

Tensors8 simulate_planar_block(const Tensor& v, const Tensor& u, TensorList parameters, const Text& formulation,
                               std::int64_t directions, std::int64_t max_passes, bool relaxed,
                               Number direction_tolerance, const Text& method, const Text& ties, double kappa,
                               Number tolerance, Integer max_pivots) {
  PlanarBlockOptions options = planar_block_options(formulation, directions);
  options.max_passes = max_passes;
  options.relaxed = relaxed;
  options.direction_tolerance = direction_tolerance;
  const PlanarBlockSolution found = simulate(v, u, planar_block_of(parameters), options,
                                             ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {found.step.v_next, found.step.force, found.z,      found.residual,
          found.status,      found.direction,  found.passes, found.converged};
}

Tensors2 planar_block_problem(const Tensor& v, const Tensor& u, TensorList parameters, std::int64_t directions) {
  return tensors_of(polyhedral_problem(v, u, planar_block_of(parameters), directions));
}

Tensors2 planar_block_direction_problem(const Tensor& v, const Tensor& u, const Tensor& t, TensorList parameters,
                                        std::int64_t directions) {
  return tensors_of(direction_problem(v, u, t, planar_block_of(parameters), directions));
}

Tensors2 planar_block_problem_along(const Tensor& v, const Tensor& u, TensorList parameters, const Tensor& D) {
  return tensors_of(polyhedral_problem(v, u, planar_block_of(parameters), D));
}

Tensors2 tensors_of(const PlanarBlockStep& step) { return {step.v_next, step.force}; }

Tensors2 read_planar_block(const Tensor& z, const Tensor& w, double kappa) {
  return tensors_of(read_polyhedral(z, w, smoothed(kappa)));
}

Tensors2 read_planar_block_along(const Tensor& z, const Tensor& w, const Tensor& v, const Tensor& u,
                                 TensorList parameters, const Tensor& D) {
  return tensors_of(read_polyhedral(z, w, v, u, planar_block_of(parameters), D));
}

Tensors2 read_planar_block_direction(const Tensor& v, const Tensor& u, const Tensor& z, TensorList parameters,
                                     double kappa) {
  return tensors_of(read_direction(v, u, z, planar_block_of(parameters), smoothed(kappa)));
}

Tensors2 planar_block_exact_step(const Tensor& v, const Tensor& u, TensorList parameters) {
  return tensors_of(exact_step(v, u, planar_block_of(parameters)));
}

Tensors3 certify_planar_block(const Tensor& v, const Tensor& u, TensorList parameters, TensorList rollout,
                              const Text& formulation, std::int64_t directions, Number tolerance) {
  check_size("rollout", rollout, 8);
  PlanarBlockSolution found;
  found.step = {rollout[0], rollout[1]};
  found.z = rollout[2];
  found.residual = rollout[3];
  found.status = rollout[4];
  found.direction = rollout[5];
  found.passes = rollout[6];
  found.converged = rollout[7];
  return tensors_of(certify_rollout(v, u, planar_block_of(parameters), planar_block_options(formulation, directions),
                                    found, tolerance));
}

// Point mass

PointMass point_mass_of(TensorList parameters) {
  check_size("parameters", parameters, 5);
  return {parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]};
}

Stabilization stabilization_named(const Text& name) {
  constexpr std::array kNames = {"position", "velocity"};
  return enumerator_named<Stabilization>("stabilization", kNames, name);
}

PointMassOptions point_mass_options(const Text& formulation, const Text& stabilization) {
  constexpr std::array kNames = {"stewart_trinkle", "belbute_peres"};
  return {enumerator_named<PointMassFormulation>("formulation", kNames, formulation),
          stabilization_named(stabilization)};
}

Tensors9 simulate_point_mass(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                             const Text& formulation, const Text& stabilization, const Text& method, const Text& ties,
                             double kappa, Number tolerance, Integer max_pivots) {
  const auto [step, z, residual, status] =
      simulate({position, velocity}, u, point_mass_of(parameters), point_mass_options(formulation, stabilization),
               ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.next.position,
          step.next.velocity,
          step.lambda_n,
          step.lambda_plus,
          step.lambda_minus,
          step.gamma,
          z,
          residual,
          status};
}

Tensors2 point_mass_problem(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                            const Text& stabilization) {
  return tensors_of(
      reduced_problem({position, velocity}, u, point_mass_of(parameters), stabilization_named(stabilization)));
}

Tensors6 point_mass_mixed_problem(const Tensor& position, const Tensor& velocity, const Tensor& u,
                                  TensorList parameters, const Text& formulation, const Text& stabilization) {
  const PointMassState state{position, velocity};
  const PointMass mass = point_mass_of(parameters);
  const PointMassOptions options = point_mass_options(formulation, stabilization);
  return tensors_of(options.formulation == PointMassFormulation::kStewartTrinkle
                        ? stewart_trinkle_problem(state, u, mass, options.stabilization)
                        : belbute_peres_problem(state, u, mass, options.stabilization));
}

Tensors6 tensors_of(const PointMassStep& step) {
  return {step.next.position, step.next.velocity, step.lambda_n, step.lambda_plus, step.lambda_minus, step.gamma};
}

Tensors6 read_point_mass_solution(const Tensor& position, const Tensor& velocity, const Tensor& u, const Tensor& z,
                                  const Tensor& w, TensorList parameters, const Text& stabilization, double kappa) {
  return tensors_of(read_point_mass({position, velocity}, u, z, w, point_mass_of(parameters),
                                    stabilization_named(stabilization), smoothed(kappa)));
}

Tensors6 point_mass_exact_step(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                               const Text& stabilization) {
  return tensors_of(exact_step({position, velocity}, u, point_mass_of(parameters), stabilization_named(stabilization)));
}

Tensors3 certify_point_mass(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                            TensorList rollout, const Text& formulation, const Text& stabilization, Number tolerance) {
  check_size("rollout", rollout, 9);
  return tensors_of(certify_rollout(
      {position, velocity}, u, point_mass_of(parameters), point_mass_options(formulation, stabilization),
      {{{rollout[0], rollout[1]}, rollout[2], rollout[3], rollout[4], rollout[5]}, rollout[6], rollout[7], rollout[8]},
      tolerance));
}

// Tripod

Tripod tripod_of(TensorList parameters) {
  check_size("parameters", parameters, 7);
  return {parameters[0], parameters[1], parameters[2], parameters[3], parameters[4], parameters[5], parameters[6]};
}

Tensors8 simulate_tripod(const Tensor& pose, const Tensor& velocity, const Tensor& u, TensorList parameters,
                         std::int64_t directions, const Text& method, const Text& ties, double kappa, Number tolerance,
                         Integer max_pivots) {
  const auto [step, z, residual, status] = simulate({pose, velocity}, u, tripod_of(parameters), directions,
                                                    ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.next.pose, step.next.velocity, step.friction, step.normal, step.slip, z, residual, status};
}

Tensors2 tripod_problem(const Tensor& pose, const Tensor& velocity, const Tensor& u, TensorList parameters,
                        std::int64_t directions) {
  return tensors_of(polyhedral_problem({pose, velocity}, u, tripod_of(parameters), directions));
}

Tensors5 read_tripod(const Tensor& pose, const Tensor& velocity, const Tensor& u, const Tensor& z,
                     TensorList parameters, double kappa) {
  const TripodStep step = read_polyhedral({pose, velocity}, u, z, tripod_of(parameters), smoothed(kappa));
  return {step.next.pose, step.next.velocity, step.friction, step.normal, step.slip};
}

Tensors2 tripod_exact_step(const Tensor& pose, const Tensor& velocity, const Tensor& u, TensorList parameters) {
  const TripodState next = exact_step({pose, velocity}, u, tripod_of(parameters));
  return {next.pose, next.velocity};
}

Tensor tripod_static_normals(TensorList parameters) { return static_normals(tripod_of(parameters)); }

Tensors3 certify_tripod(const Tensor& pose, const Tensor& velocity, const Tensor& u, TensorList parameters,
                        TensorList rollout, std::int64_t directions, Number tolerance) {
  check_size("rollout", rollout, 8);
  return tensors_of(certify_rollout(
      {pose, velocity}, u, tripod_of(parameters), directions,
      {{{rollout[0], rollout[1]}, rollout[2], rollout[3], rollout[4]}, rollout[5], rollout[6], rollout[7]}, tolerance));
}

// Bodies on compliant ground. Their parameters are those of the body, then mu, stiffness and dissipation.

CompliantGround ground_of(TensorList three, double sigma, double beta) {
  return {three[0], three[1], three[2], {.sigma = sigma, .beta = beta}};
}

CompliantParticle compliant_particle_of(TensorList parameters, double dt, double sigma, double beta) {
  check_size("parameters", parameters, 5);
  return {parameters[0], dt, parameters[1], ground_of(parameters.slice(2), sigma, beta)};
}

CompliantBlock compliant_block_of(TensorList parameters, double dt, double sigma, double beta) {
  check_size("parameters", parameters, 7);
  return {parameters[0], parameters[1], parameters[2], dt, parameters[3], ground_of(parameters.slice(4), sigma, beta)};
}

CompliantSolution compliant_solution(TensorList rollout) {
  check_size("rollout", rollout, 5);
  return {{{rollout[0], rollout[1]}, rollout[2]}, rollout[3], rollout[4]};
}

// The functions of a body, which `of` makes of its parameters.
template <auto of>
struct Compliant {
  static Tensors5 simulate_body(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                                double dt, double sigma, double beta, Number tolerance, Integer max_iterations) {
    ContactOptions options;
    options.tolerance = tolerance;
    options.max_iterations = max_iterations;
    const CompliantSolution found = simulate({position, velocity}, u, of(parameters, dt, sigma, beta), options);
    return {found.step.next.position, found.step.next.velocity, found.step.gamma, found.status, found.iterations};
  }

  static Tensors6 problem(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                          double dt, double sigma, double beta) {
    const CompliantProblem found = contact_problem({position, velocity}, u, of(parameters, dt, sigma, beta));
    return {found.A, found.v_free, found.J, found.v_hat, found.R, found.mu};
  }

  static Tensor gaps_of(const Tensor& position, const Tensor& velocity, TensorList parameters, double dt, double sigma,
                        double beta) {
    return gaps({position, velocity}, of(parameters, dt, sigma, beta));
  }

  static Tensors3 certify_body(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                               TensorList rollout, double dt, double sigma, double beta, double tolerance) {
    return tensors_of(certify_rollout({position, velocity}, u, of(parameters, dt, sigma, beta),
                                      compliant_solution(rollout), tolerance));
  }
};

// A step of the particle in closed form, by one of the functions of its header.
template <CompliantStep (*function)(const CompliantState&, const Tensor&, const CompliantParticle&)>
Tensors3 compliant_particle_step(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                                 double dt, double sigma, double beta) {
  const CompliantStep step = function({position, velocity}, u, compliant_particle_of(parameters, dt, sigma, beta));
  return {step.next.position, step.next.velocity, step.gamma};
}

// An LCP of a step of the block, by one of the functions of its header.
template <Problem (*function)(const CompliantState&, const Tensor&, const CompliantBlock&)>
Tensors2 compliant_block_problem(const Tensor& position, const Tensor& velocity, const Tensor& u, TensorList parameters,
                                 double dt, double sigma, double beta) {
  return tensors_of(function({position, velocity}, u, compliant_block_of(parameters, dt, sigma, beta)));
}

// A step of the block from a solution of such an LCP.
template <CompliantStep (*function)(const CompliantState&, const Tensor&, const Tensor&, const CompliantBlock&)>
Tensors3 read_compliant_block(const Tensor& position, const Tensor& velocity, const Tensor& u, const Tensor& z,
                              TensorList parameters, double dt, double sigma, double beta) {
  const CompliantStep step = function({position, velocity}, u, z, compliant_block_of(parameters, dt, sigma, beta));
  return {step.next.position, step.next.velocity, step.gamma};
}

// Contacts with friction

Tensor friction_directions_of(std::int64_t count, at::ScalarType dtype) { return friction_directions(count, dtype); }

Tensors2 friction_problem_of_contacts(const Tensor& J, const Tensor& inverse_mass, const Tensor& v_free,
                                      const Tensor& limit) {
  return tensors_of(direct_friction_problem(J, inverse_mass, v_free, limit));
}

Tensors3 read_friction_of_contacts(const Tensor& z, const Tensor& w, const Tensor& J, const Tensor& inverse_mass,
                                   const Tensor& v_free) {
  const DirectFrictionStep step = read_direct_friction(z, w, J, inverse_mass, v_free);
  return {step.v_next, step.slip, step.impulse};
}

constexpr const char* kProblem = "(Tensor M, Tensor q)";
constexpr const char* kMixedProblem = "(Tensor A, Tensor B, Tensor C, Tensor M, Tensor p, Tensor q)";
constexpr const char* kCertificate = "(Tensor unsolved, Tensor tied, Tensor kinked)";
constexpr const char* kLineForces = "Tensor lambda_plus, Tensor lambda_minus, Tensor gamma";
constexpr const char* kGround = "float dt, float sigma, float beta";

template <class Function>
void define(torch::Library& library, const Text& name, const Text& arguments, const Text& results, Function function) {
  ops::define_composite(library, name + "(" + arguments + ") -> " + results, function);
}

// The operators that both bodies on compliant ground have.
template <class Body>
void define_compliant(torch::Library& library, const Text& name) {
  const Text state = "Tensor position, Tensor velocity, ", forced = state + "Tensor u, Tensor[] parameters, ";
  define(library, "_simulate_" + name, forced + "*, " + kGround + ", float? tolerance=None, int? max_iterations=None",
         "(Tensor position_next, Tensor velocity_next, Tensor gamma, Tensor status, Tensor iterations)",
         TORCH_FN(Body::simulate_body));
  define(library, "_" + name + "_problem", forced + "*, " + kGround,
         "(Tensor A, Tensor v_free, Tensor J, Tensor v_hat, Tensor R, Tensor mu)", TORCH_FN(Body::problem));
  define(library, "_" + name + "_gaps", state + "Tensor[] parameters, *, " + kGround, "Tensor",
         TORCH_FN(Body::gaps_of));
  define(library, "_certify_" + name, forced + "Tensor[] rollout, *, " + kGround + ", float tolerance=1e-12",
         kCertificate, TORCH_FN(Body::certify_body));
}

LCP_LIBRARY_FRAGMENT(library) {
  const Text velocity = "Tensor v, Tensor u, ", system = "Tensor[] parameters";
  const Text line_step = Text("Tensor v_next, ") + kLineForces;
  define(library, "_simulate_sliding_block", velocity + system + ", *, str formulation, " + ops::kSolveArguments,
         "(" + line_step + ", Tensor z, Tensor residual, Tensor status)", TORCH_FN(simulate_sliding_block));
  define(library, "_sliding_block_problem", velocity + system + ", *, str formulation", kProblem,
         TORCH_FN(sliding_block_problem));
  define(library, "_sliding_block_mixed_problem", velocity + system, kMixedProblem,
         TORCH_FN(sliding_block_mixed_problem));
  define(library, "_sliding_block_exact_step", velocity + system, "(" + line_step + ")",
         TORCH_FN(sliding_block_exact_step));
  define(library, "_certify_sliding_block",
         velocity + system + ", Tensor[] rollout, *, str formulation, float? tolerance=None", kCertificate,
         TORCH_FN(certify_sliding_block));

  const Text solution = "Tensor z, Tensor w, ", smoothing = ", *, float kappa";
  define(library, "_read_sliding_block", solution + system + ", *, str formulation, float kappa", "(" + line_step + ")",
         TORCH_FN(read_sliding_block));
  define(library, "_sliding_block_max_friction", system, "Tensor", TORCH_FN(sliding_block_max_friction));

  const Text height = "Tensor x, Tensor v, ", height_step = "Tensor x_next, Tensor v_next, Tensor force";
  define(library, "_simulate_falling_block", height + "int steps, " + system + ", *, " + ops::kSolveArguments,
         "(" + height_step + ", Tensor z, Tensor residual, Tensor status)", TORCH_FN(simulate_falling_block));
  define(library, "_falling_block_problem", height + system, kProblem, TORCH_FN(falling_block_problem));
  define(library, "_falling_block_exact_step", height + system, "(" + height_step + ")",
         TORCH_FN(falling_block_exact_step));
  define(library, "_read_falling_block", height + solution + system, "(" + height_step + ")",
         TORCH_FN(read_falling_block));
  define(library, "_certify_falling_block", height + system + ", Tensor[] rollout, *, float? tolerance=None",
         kCertificate, TORCH_FN(certify_falling_block));

  const Text cone = ", *, str formulation, int directions";
  define(
      library, "_simulate_planar_block",
      velocity + system + cone + ", int max_passes, bool relaxed, float? direction_tolerance, " + ops::kSolveArguments,
      "(Tensor v_next, Tensor force, Tensor z, Tensor residual, Tensor status, Tensor direction, Tensor passes, "
      "Tensor converged)",
      TORCH_FN(simulate_planar_block));
  define(library, "_planar_block_problem", velocity + system + ", *, int directions", kProblem,
         TORCH_FN(planar_block_problem));
  define(library, "_planar_block_direction_problem", velocity + "Tensor t, " + system + ", *, int directions", kProblem,
         TORCH_FN(planar_block_direction_problem));
  define(library, "_planar_block_exact_step", velocity + system, "(Tensor v_next, Tensor force)",
         TORCH_FN(planar_block_exact_step));
  const Text plane_step = "(Tensor v_next, Tensor force)";
  define(library, "_planar_block_problem_along", velocity + system + ", Tensor D", kProblem,
         TORCH_FN(planar_block_problem_along));
  define(library, "_read_planar_block", "Tensor z, Tensor w" + smoothing, plane_step, TORCH_FN(read_planar_block));
  define(library, "_read_planar_block_along", solution + velocity + system + ", Tensor D", plane_step,
         TORCH_FN(read_planar_block_along));
  define(library, "_read_planar_block_direction", velocity + "Tensor z, " + system + smoothing, plane_step,
         TORCH_FN(read_planar_block_direction));
  define(library, "_certify_planar_block", velocity + system + ", Tensor[] rollout" + cone + ", float? tolerance=None",
         kCertificate, TORCH_FN(certify_planar_block));

  const Text moving = "Tensor position, Tensor velocity, Tensor u, " + system;
  const Text both = ", *, str formulation, str stabilization", level = ", *, str stabilization";
  const Text point_step = Text("Tensor position_next, Tensor velocity_next, Tensor lambda_n, ") + kLineForces;
  define(library, "_simulate_point_mass", moving + both + ", " + ops::kSolveArguments,
         "(" + point_step + ", Tensor z, Tensor residual, Tensor status)", TORCH_FN(simulate_point_mass));
  define(library, "_point_mass_problem", moving + level, kProblem, TORCH_FN(point_mass_problem));
  define(library, "_point_mass_mixed_problem", moving + both, kMixedProblem, TORCH_FN(point_mass_mixed_problem));
  define(library, "_point_mass_exact_step", moving + level, "(" + point_step + ")", TORCH_FN(point_mass_exact_step));
  define(library, "_read_point_mass",
         "Tensor position, Tensor velocity, Tensor u, " + solution + system + level + ", float kappa",
         "(" + point_step + ")", TORCH_FN(read_point_mass_solution));
  define(library, "_certify_point_mass", moving + ", Tensor[] rollout" + both + ", float? tolerance=None", kCertificate,
         TORCH_FN(certify_point_mass));

  const Text turning = "Tensor pose, Tensor velocity, Tensor u, " + system, polygon = ", *, int directions";
  define(library, "_simulate_tripod", turning + polygon + ", " + ops::kSolveArguments,
         "(Tensor pose_next, Tensor velocity_next, Tensor friction, Tensor normal, Tensor slip, Tensor z, Tensor "
         "residual, "
         "Tensor status)",
         TORCH_FN(simulate_tripod));
  define(library, "_tripod_problem", turning + polygon, kProblem, TORCH_FN(tripod_problem));
  define(library, "_tripod_exact_step", turning, "(Tensor pose_next, Tensor velocity_next)",
         TORCH_FN(tripod_exact_step));
  define(library, "_read_tripod", "Tensor pose, Tensor velocity, Tensor u, Tensor z, " + system + smoothing,
         "(Tensor pose_next, Tensor velocity_next, Tensor friction, Tensor normal, Tensor slip)",
         TORCH_FN(read_tripod));
  define(library, "_tripod_static_normals", system, "Tensor", TORCH_FN(tripod_static_normals));
  define(library, "_certify_tripod", turning + ", Tensor[] rollout" + polygon + ", float? tolerance=None", kCertificate,
         TORCH_FN(certify_tripod));

  define_compliant<Compliant<compliant_particle_of>>(library, "compliant_particle");
  define_compliant<Compliant<compliant_block_of>>(library, "compliant_block");
  const Text compliant_step = "(Tensor position_next, Tensor velocity_next, Tensor gamma)";
  define(library, "_compliant_particle_exact_step", moving + ", *, " + kGround, compliant_step,
         TORCH_FN(compliant_particle_step<exact_step>));
  define(library, "_compliant_particle_rigid_step", moving + ", *, " + kGround, compliant_step,
         TORCH_FN(compliant_particle_step<rigid_step>));
  define(library, "_compliant_block_dual_problem", moving + ", *, " + kGround, kProblem,
         TORCH_FN(compliant_block_problem<dual_problem>));
  define(library, "_compliant_block_rigid_problem", moving + ", *, " + kGround, kProblem,
         TORCH_FN(compliant_block_problem<rigid_problem>));

  const Text solved = "Tensor position, Tensor velocity, Tensor u, Tensor z, " + system + ", *, " + kGround;
  define(library, "_read_compliant_block_dual", solved, compliant_step, TORCH_FN(read_compliant_block<read_dual>));
  define(library, "_read_compliant_block_rigid", solved, compliant_step, TORCH_FN(read_compliant_block<read_rigid>));

  define(library, "_friction_directions", "int count, *, ScalarType dtype", "Tensor", TORCH_FN(friction_directions_of));
  define(library, "_aligned_directions", "Tensor a, Tensor b", "Tensor", TORCH_FN(aligned_directions));
  define(library, "_span_plane", "Tensor D", "Tensor", TORCH_FN(span_plane));
  const Text contacts = "Tensor J, Tensor inverse_mass, Tensor v_free";
  define(library, "_direct_friction_problem", contacts + ", Tensor limit", kProblem,
         TORCH_FN(friction_problem_of_contacts));
  define(library, "_read_direct_friction", "Tensor z, Tensor w, " + contacts,
         "(Tensor v_next, Tensor slip, Tensor impulse)", TORCH_FN(read_friction_of_contacts));
}

}  // namespace
}  // namespace lcp::physics
