// One step of the bodies of a scene: their contacts, the solution of these, and the motion.
#pragma once

#include <vector>

#include "lcp/export.h"
#include "lcp/physics/rigid_scene.h"
#include "physics/rigid_geometry.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// The contacts of a step, of all pairs.
struct StepContacts {
  at::Tensor before;  ///< [..., 6 B], the velocities at the beginning of the step
  at::Tensor J;       ///< [..., 3 c, 6 B]
  at::Tensor gap;     ///< [..., c], m
  at::Tensor b;       ///< [..., 3 c], m/s: b of lcp::solve_friction, or -v_hat of lcp::solve_contact
  at::Tensor R;       ///< [..., 3 c], of compliant contact
  at::Tensor waits;   ///< [..., c], bool, whether the contact is an impact, which the first problem leaves out;
                      ///< undefined for compliant contact
  at::Tensor jump;    ///< [..., c], m/s, the least change of the closing speed that makes the contact an impact, or no
                      ///< impact any more; infinity: none
  at::Tensor bad;     ///< [...], bool, whether numbers are not finite, or a quaternion is 0
};

/// A problem of a step, of the chosen pairs, and the solution.
struct StepProblem {
  at::Tensor from;        ///< [..., 6 B], the velocities before it
  at::Tensor b;           ///< [..., 3 c]
  at::Tensor is_chosen;   ///< [..., c], bool
  at::Tensor may_choose;  ///< [..., c], bool, whether it would be chosen where it closes
  at::Tensor v, gamma;    ///< [..., 6 B] and [..., 3 c]
  at::Tensor jump;        ///< [..., c], as that of StepContacts
  at::Tensor times;       ///< [..., c], s, of the impacts; infinity where there is none; undefined in the first problem
};

struct StepOutcome {
  at::Tensor v;           ///< [..., 6 B]
  at::Tensor gamma;       ///< [..., 3 c], of all problems
  at::Tensor motion;      ///< [..., 6 B], how far the bodies move in the step: m, and rad in their own axes
  at::Tensor status;      ///< [...], the first that is not kSolved
  at::Tensor iterations;  ///< [...]
  std::vector<StepProblem> problems;
};

/// Accuracy and margin of an outcome, [...], as RigidCertificate defines them.
struct StepCertificate {
  at::Tensor residual, margin;
};

/// Throws c10::Error for options and parameters that do not fit, whatever the number of pairs.
void check_scene(const RigidScene& scene, const RigidOptions& options);
void check_options(const RigidOptions& options);

/// The shape to which all parameters of a scene, which check_scene accepts, with so many pairs broadcast. Throws
/// c10::Error for parameters that do not fit.
c10::SymDimVector checked_batch(const RigidScene& scene, const RigidOptions& options, std::int64_t pairs);

/// Benchmarks call it, too.
class LCP_API RigidStepper {
 public:
  /// Throws as check_scene and checked_batch do.
  RigidStepper(const RigidScene& scene, const RigidOptions& options, at::ScalarType dtype);

  const Shape& batch() const { return batch_; }  ///< to which the parameters broadcast
  std::int64_t bodies() const { return geometry_.bodies(); }
  const at::Tensor& A() const { return A_; }

  /// nu_free, [..., 6 B]. u: [..., B, 6].
  at::Tensor free_velocity(const RigidState& state, const at::Tensor& u) const;
  StepContacts find(const RigidState& state, const at::Tensor& v_free) const;
  StepOutcome solve(const at::Tensor& v_free, const StepContacts& contacts) const;
  RigidState advance(const RigidState& state, const at::Tensor& v, const at::Tensor& motion) const;
  StepCertificate certify(const StepContacts& contacts, const StepOutcome& outcome) const;

  /// The kinetic energy and the potential energy of gravity, [...].
  at::Tensor energy(const RigidState& state) const;

 private:
  struct Chosen;
  struct Polyhedral;
  Chosen choose(const StepContacts& contacts, const at::Tensor& b, const at::Tensor& is_chosen) const;
  StepOutcome solve(const at::Tensor& v_free, const Chosen& chosen) const;
  at::Tensor closing(const StepContacts& contacts, const at::Tensor& b, const at::Tensor& v, double slack) const;
  void hold(const StepContacts& contacts, const at::Tensor& from, const at::Tensor& b, const at::Tensor& may_choose,
            at::Tensor is_chosen, StepOutcome& outcome) const;
  void add(StepProblem problem, const Chosen& chosen, const StepOutcome& solution, StepOutcome& outcome) const;
  void collide(const StepContacts& contacts, StepOutcome& outcome) const;
  at::Tensor threshold() const;
  at::Tensor closing_of(const at::Tensor& gap, const at::Tensor& left, const at::Tensor& remaining,
                        const at::Tensor& speed, const at::Tensor& has_met) const;
  StepCertificate certify(const StepContacts& contacts, const StepProblem& problem, const at::Tensor& touched) const;

  RigidOptions options_;
  double dt_;
  RigidGeometry geometry_;
  Shape batch_;
  at::Tensor mass_, drag_, inertia_, gravity_;  // [batch..., B] twice, [batch..., B, 3, 3], [batch..., 3]
  at::Tensor mu_, restitution_;                 // [batch..., c]
  at::Tensor stiffness_, dissipation_;          // [batch..., c], of compliant contact
  at::Tensor A_;                                // [batch..., 6 B, 6 B]
};

}  // namespace lcp::physics
