// What compliant bodies share behind their headers.
#pragma once

#include <functional>

#include "lcp/physics/compliant_ground.h"
#include "physics/stepping.h"

namespace lcp::physics {

CompliantGround in_precision_of(at::ScalarType dtype, const CompliantGround& ground);

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

using MakeProblem = std::function<CompliantProblem(const CompliantState& state, const at::Tensor& u)>;

/// u: [steps, batch..., 3].
CompliantSolution roll_compliant(const CompliantState& state, const at::Tensor& u, const Shape& batch, double dt,
                                 const MakeProblem& problem, const ContactOptions& options);

RolloutCertificate certify_compliant(const CompliantState& state, const at::Tensor& u, const MakeProblem& problem,
                                     const CompliantSolution& rollout, double tolerance);

CompliantSolution first_step(const CompliantSolution& rollout);

}  // namespace lcp::physics
