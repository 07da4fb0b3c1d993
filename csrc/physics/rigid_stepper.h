// One step of the bodies of a scene: their contacts, the solution of these, and the motion.
#pragma once

#include "lcp/physics/rigid_scene.h"
#include "physics/rigid_geometry.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// The contacts of a step, of all pairs.
struct StepContacts {
  at::Tensor v_free;  ///< [..., 6 B]
  at::Tensor J;       ///< [..., 3 c, 6 B]
  at::Tensor gap;     ///< [..., c], m
  at::Tensor b;       ///< [..., 3 c], m/s: b of lcp::solve_friction, or -v_hat of lcp::solve_contact
  at::Tensor R;       ///< [..., 3 c], of compliant contact
  at::Tensor time;    ///< [..., c], s, of an impact after the beginning of the step; infinity where there is none
  at::Tensor held;    ///< [..., c], the share of the acceleration that a contact takes from a body after its impact
  at::Tensor jump;    ///< [..., c], m/s, the least change of velocity at which an impact would begin, or not be one
  at::Tensor bad;     ///< [...], bool, whether numbers are not finite, or a quaternion is 0
};

struct StepOutcome {
  at::Tensor v;           ///< [..., 6 B]
  at::Tensor gamma;       ///< [..., 3 c]
  at::Tensor status;      ///< [...]
  at::Tensor iterations;  ///< [...]
};

/// Accuracy and margin of an outcome, [...], as RigidCertificate defines them.
struct StepCertificate {
  at::Tensor residual, margin;
};

class RigidStepper {
 public:
  /// Throws c10::Error for options and parameters that do not fit.
  RigidStepper(const RigidScene& scene, const RigidOptions& options, at::ScalarType dtype);

  const Shape& batch() const { return batch_; }  ///< to which the parameters broadcast
  std::int64_t bodies() const { return geometry_.bodies(); }
  const at::Tensor& A() const { return A_; }

  /// nu_free, [..., 6 B]. u: [..., B, 6].
  at::Tensor free_velocity(const RigidState& state, const at::Tensor& u) const;
  StepContacts find(const RigidState& state, const at::Tensor& v_free) const;
  StepOutcome solve(const at::Tensor& v_free, const StepContacts& contacts) const;
  RigidState advance(const RigidState& state, const StepContacts& contacts, const at::Tensor& v,
                     const at::Tensor& gamma) const;
  StepCertificate certify(const at::Tensor& v_free, const StepContacts& contacts, const StepOutcome& outcome) const;

  /// The kinetic energy and the potential energy of gravity, [...].
  at::Tensor energy(const RigidState& state) const;

 private:
  struct Chosen;
  struct Polyhedral;
  Chosen choose(const StepContacts& contacts, const at::Tensor& is_chosen) const;
  StepOutcome solve(const at::Tensor& v_free, const Chosen& chosen) const;
  at::Tensor impact_times(const StepContacts& contacts, const at::Tensor& gamma) const;

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
