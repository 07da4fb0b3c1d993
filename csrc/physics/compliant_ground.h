// Helpers of the implementations of bodies on compliant ground.
#pragma once

#include <string_view>

#include "lcp/physics/compliant_ground.h"
#include "ops/rollout/step_text.h"
#include "physics/stepping.h"

namespace lcp::physics {

CompliantGround in_precision_of(at::ScalarType dtype, const CompliantGround& ground);

struct Contacts {
  at::Tensor J;    ///< [..., 3 c, 3]
  at::Tensor gap;  ///< [..., c], m
};

/// The problem of a step from `velocity` under forces f, [..., 3], of a body with the diagonal inertia [..., 3].
CompliantProblem ground_problem(const at::Tensor& velocity, const at::Tensor& f, const at::Tensor& inertia,
                                const Contacts& contacts, double dt, const CompliantGround& ground);

/// The state after a step that ends with the velocity v_next.
CompliantState moved(const CompliantState& state, const at::Tensor& v_next, double dt);

/// What a rollout needs to know of a body.
struct CompliantBody {
  std::string_view kind;  ///< of its rollouts
  Tensors parameters;     ///< [...] each, which broadcast, in the order of csrc/compliant/step.h
  double dt;              ///< s
  RegularizationOptions regularization;

  /// The problem of a step.
  CompliantProblem (*problem)(const CompliantState& state, const at::Tensor& u, const CompliantBody& body);
};

/// The last of the parameters of a body, mu, the stiffness and the dissipation, as the ground.
CompliantGround ground_of(const Tensors& parameters, const RegularizationOptions& regularization);

/// The same for the inputs and the differentiable results of lcp::_rollout.
///   bare: a body without parameters.
Tensors by_tensors(const ops::StepText& step, const Tensors& inputs, CompliantBody bare);

/// A rollout in operators of tensors: how higher derivatives are found.
///   first: [batch..., 3] each. inputs.u: [steps, batch..., 3].
CompliantSolution step_by_step(const CompliantState& first, const Inputs& inputs, const CompliantBody& body,
                               const ContactOptions& options);

/// u: [steps, ..., 3].
CompliantSolution roll_out_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                     const ContactOptions& options,
                                     const std::optional<Feedback<CompliantState>>& feedback);

RolloutCertificate certify_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                     const CompliantSolution& rollout, double tolerance);

CompliantSolution first_step(const CompliantSolution& rollout);

}  // namespace lcp::physics
