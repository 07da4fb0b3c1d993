// Rigid bodies that touch planes and each other with Coulomb friction, stepped in time. Their velocities are
// nu = (v, omega) of each body, omega in its own axes; their masses and inertias are the matrix A.
//
//   A (nu_next - nu_free) = J' gamma,   u = J nu_next
//
// where nu_free is nu after the forces, gravity and the gyroscopic torque have acted for dt (rotation.h). The impulses
// gamma obey the law of the formulation, with J and the gaps of the beginning of the step. In a step without impacts a
// contact may close its gap by the end of the step, u_n >= -gap / dt [ST], and the bodies move by dt nu_next.
//
// A contact that nu_free would close within the step, faster than the bounce threshold, is an impact. A step with
// impacts solves several problems, each of which begins with the velocities that the one before has left:
//
//   1. From nu_free, the contacts that close and are no impacts. The solution is nu_start.
//   2. The impacts, one after another in time. Velocities are those of the middles of the steps. With the velocities
//      nu_0 before the step, the acceleration along the normal is a_n = J_n (nu_start - nu_0) / dt. The gap closes at
//      the time t with
//
//        gap + J_n sum dt_j nu_j - a_n t (dt - t) / 2 = 0,
//
//      where dt_j is how long the bodies have moved with nu_j. A contact that closes with u_n opens by Newton's law
//      with the restitution e, where both speeds are those at that time:
//
//        u_n_next >= -e (u_n + a_n (t - dt / 2)) + a_n (dt / 2 - t),
//
//      limited to the range from 0 to -2 e u_n. The problem of an impact has all impacts at this time; all contacts
//      between the same two bodies, or the same body and plane, that would close before the end of the step; and
//      contacts without restitution that touch. None of them opens before, so that an impact without friction creates
//      no energy.
//   3. After the impacts of each time, the contacts that now close slower than the threshold, without rebound.
//
// The bodies move by sum dt_j nu_j, the motion at constant acceleration between the impacts. A contact that would close
// its gap again within the step, after a slow rebound, holds back a part of this motion. gamma is the sum of all
// problems. The times are part of the motion and of its derivative.
//
//   [ST] Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and
//        Coulomb friction, International Journal for Numerical Methods in Engineering 39, 1996.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/contact_parameters.h"
#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/friction_problem.h"
#include "lcp/name_of.h"
#include "lcp/physics/rigid_body.h"
#include "lcp/ties.h"

namespace lcp::physics {

/// B bodies, the planes that they may touch, and the parameters of their motion. Parameters of contacts are [..., c],
/// in the order of contact_pairs, or [..., 1] for all.
struct RigidScene {
  std::vector<RigidBody> bodies;
  std::vector<Plane> planes;
  double dt;                    ///< s, > 0
  at::Tensor gravity;           ///< [..., 3], m/s^2
  at::Tensor mu;                ///< friction coefficients, >= 0
  at::Tensor restitution;       ///< 0 to 1; not used by compliant contact
  at::Tensor stiffness = {};    ///< N/m, > 0, of compliant contact; else it may be undefined
  at::Tensor dissipation = {};  ///< s, >= 0, damping over stiffness, of compliant contact; else it may be undefined
};

/// A ball and the plane or the ball of another body that it may touch.
struct ContactPair {
  enum class Other { kPlane, kBall };

  std::int64_t body;        ///< the body that the normal points to
  std::int64_t ball;        ///< a ball of `body`
  Other other;              ///< the kind of thing that the ball may touch
  std::int64_t other_body;  ///< the body to which this thing belongs; Plane::kWorld for a fixed plane
  std::int64_t index;       ///< the number of the plane, or of the ball of the other body
};

/// All pairs, c of them: for each plane, the balls of the bodies that it touches; then each two balls of different
/// bodies, unless both are points.
LCP_API std::vector<ContactPair> contact_pairs(const RigidScene& scene);

/// kExactCone: lcp::solve_friction. kPolyhedral: lcp::solve of lcp::friction_problem. kCompliant: lcp::solve_contact,
/// with springs and dampers in the contacts, which have no restitution.
enum class RigidFormulation { kExactCone, kPolyhedral, kCompliant };

struct RigidOptions {
  RigidFormulation formulation = RigidFormulation::kExactCone;

  /// Steps of dt that each row of the forces acts for.
  std::int64_t substeps = 1;

  /// m/s: a contact that would close its gap faster than this within a step is an impact. Absent: twice the speed that
  /// gravity gives in a step, so that a body at rest does not bounce.
  std::optional<double> bounce_threshold = {};

  /// The share of a penetration that a step removes, in [0, 1]. It gives the contact the velocity share * depth / dt,
  /// m/s. The body keeps this velocity after it has left: a body that begins .05 m deep leaves at 5 m/s for dt = .01 s.
  /// With a smaller share the body leaves more slowly, after more steps. Not used by compliant contact.
  double stabilization = 1;

  /// The directions of polyhedral friction.
  FrictionDirections directions = {};

  /// kappa of FrictionOptions, for the exact cone, or of SolveOptions, for polyhedral contact: the gradient also sees
  /// contacts that are not made. Where mu = 0, the gradient in mu is 0, as the point has no friction. 0 for compliant
  /// contact.
  double kappa = 0;

  /// ties of SolveOptions, for polyhedral contact that is not smoothed. While a contact sticks, the pairs of the
  /// directions without an impulse are tied; "active" treats them as not moving, which is right.
  NameOf<Ties, ties_name> ties = Ties::kActive;

  /// The tolerance of the formulation's solver, whose options define it. Absent: kTolerance, with which the velocities
  /// of a step are accurate to about 1e-9 of the largest change of a contact's velocity in it. Rollouts of float32
  /// compute in double precision, too, but on a GPU, where polyhedral and compliant contact have the solver's default.
  std::optional<double> tolerance = {};
  static constexpr double kTolerance = 1e-9;

  /// The regularisation of compliant contact.
  RegularizationOptions regularization = {};
};

/// The end of each row of forces; NaN from the first step on that was not solved. The status is kBadInput where a
/// number that a step depends on is not finite, or a quaternion is 0. It is kBadInput in all steps of an element if one
/// of its parameters is out of its range, such as a negative mu, also where nothing touches.
struct RigidSolution {
  RigidState next;
  at::Tensor gamma;       ///< [..., 3 c], N s, the sum over the substeps of the impulses along (t1, t2, n) of each pair
  at::Tensor status;      ///< [...], int8, see lcp::Status: the first of the substeps that is not kSolved
  at::Tensor iterations;  ///< [...], int64, of Newton's method, the sum over the substeps; 0 for polyhedral contact
};

/// One row of forces for each element of the batch.
///   state: before the step. u: [..., B, 6], forces on the centres of mass, N, and torques in the axes of the bodies, N
///   m.
/// Returns tensors of the batch shape of state, u and scene, differentiable in all of their tensors.
/// Throws c10::Error for shapes or options that do not fit, and for normals of planes that are not of length 1.
LCP_API RigidSolution step(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                           const RigidOptions& options = {});

/// Many rows.
///   u: [rows, ..., B, 6]; the first dimension is that of the rows, also where it is 1.
///   feedback: of the state before each substep, with K [..., 6 B, 12 B]. With it, all tensors must be on the CPU. The
///   rows of K are the numbers of u, [B, 6]. Its columns are those of the error e: for each body the errors of its
///   position, m, and of its orientation, rad, then for each body those of its velocity, m/s, and of its angular
///   velocity, rad/s. The error of an orientation is twice the vector part of conj(q) q_ref, with the sign that turns
///   less: the rotation vector in the axes of the body from q to q_ref, up to third order in its length.
/// Returns tensors [rows, ...].
LCP_API RigidSolution simulate(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                               const RigidOptions& options = {},
                               const std::optional<Feedback<RigidState>>& feedback = std::nullopt);

/// Properties of the steps of a rollout, without gradient.
struct RigidCertificate {
  at::Tensor unsolved;  ///< int64, [...], rows whose status is not 0
  at::Tensor kinked;    ///< int64, [...], rows whose margin is at most the tolerance: the gradient may be one-sided
  at::Tensor residual;  ///< [rows, ...], the largest residual of a substep, as the solver of the formulation defines it
  at::Tensor margin;  ///< [rows, ...], the least relative distance of a substep to a change in its contacts, see below
};

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments. For the exact cone the margin
/// of a substep is that of lcp::certify_friction, or 0 where the velocities are not unique. For compliant contact it is
/// that of lcp::certify_contact. For polyhedral contact it is the least distance of a pair z, w from z = w = 0 where
/// that would change the motion, relative to the largest |J nu_free + b|.
///
/// The margin of a substep with rigid contact is at most each of these distances, at which the motion jumps:
///   - the relative distance of the speed of an approaching contact from the bounce threshold;
///   - for a contact faster than that, its relative distance from just reaching the other body in the step;
///   - the difference of the times of two impacts on the same body, over dt, where their order changes.
LCP_API RigidCertificate certify_rollout(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                                         const RigidOptions& options, const RigidSolution& rollout,
                                         double tolerance = 1e-9);

/// The contacts of a state.
struct RigidContacts {
  at::Tensor gap;     ///< [..., c], m, < 0 where bodies overlap
  at::Tensor J;       ///< [..., 3 c, 6 B], the velocities of each pair along (t1, t2, n)
  at::Tensor normal;  ///< [..., c, 3]
  at::Tensor point;   ///< [..., c, 3], m, where the bodies touch, or would
};
LCP_API RigidContacts contacts(const RigidState& state, const RigidScene& scene);

/// A, [..., 6 B, 6 B].
LCP_API at::Tensor mass_matrix(const RigidScene& scene);

/// The kinetic energy and the potential energy of gravity, J: [...].
LCP_API at::Tensor energy(const RigidState& state, const RigidScene& scene);

}  // namespace lcp::physics
