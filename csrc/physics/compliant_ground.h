// Helpers of the implementations of bodies on compliant ground.
#pragma once

#include <functional>

#include "lcp/physics/compliant_ground.h"
#include "physics/stepping.h"

namespace lcp::physics {

CompliantGround in_precision_of(at::ScalarType dtype, const CompliantGround& ground);

/// The shape to which the parameters of the ground broadcast.
Shape batch_of(const CompliantGround& ground);

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
  double dt;    ///< s
  Shape batch;  ///< to which its parameters broadcast
  std::function<CompliantProblem(const CompliantState& state, const at::Tensor& u)> problem;
};

/// u: [steps, ..., 3].
CompliantSolution roll_out_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                     const ContactOptions& options);

RolloutCertificate certify_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                     const CompliantSolution& rollout, double tolerance);

CompliantSolution first_step(const CompliantSolution& rollout);

}  // namespace lcp::physics
