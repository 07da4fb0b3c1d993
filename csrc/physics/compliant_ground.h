// What compliant bodies share behind their headers.
#pragma once

#include <functional>

#include "lcp/physics/compliant_ground.h"
#include "physics/stepping.h"

namespace lcp::physics {

CompliantGround in_precision_of(at::ScalarType dtype, const CompliantGround& ground);

/// The batch of the ground's parameters.
Shape batch_of(const CompliantGround& ground);

/// What each contact has of its own: J [..., 3 c, 3] and gaps [..., c], m.
struct Contacts {
  at::Tensor J, gap;
};

/// The problem of a step from `velocity` under forces f, [..., 3], of a body with the diagonal inertia [..., 3].
CompliantProblem ground_problem(const at::Tensor& velocity, const at::Tensor& f, const at::Tensor& inertia,
                                const Contacts& contacts, double dt, const CompliantGround& ground);

/// A number that must be > 0. Throws c10::Error.
double positive_number(const char* name, double x);

/// What a body's v_next leads to.
CompliantState moved(const CompliantState& state, const at::Tensor& v_next, double dt);

/// A body as its rollouts see it.
struct CompliantBody {
  double dt;    ///< s
  Shape batch;  ///< of its parameters
  std::function<CompliantProblem(const CompliantState& state, const at::Tensor& u)> problem;
};

/// u: [steps, ..., 3].
CompliantSolution roll_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                 const ContactOptions& options);

RolloutCertificate certify_compliant(const CompliantState& state, const at::Tensor& u, const CompliantBody& body,
                                     const CompliantSolution& rollout, double tolerance);

CompliantSolution first_step(const CompliantSolution& rollout);

}  // namespace lcp::physics
