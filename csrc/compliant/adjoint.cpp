#include "compliant/adjoint.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace lcp::compliant {
namespace {

using rigid::Variable;

Problem<double> values_of(const Body& body, const Problem<Variable>& problem) {
  Problem<double> values;
  values.inertia = rigid::values_of(problem.inertia);
  values.v_free = rigid::values_of(problem.v_free);
  values.mu = problem.mu.value;
  for (int k = 0; k < contacts_of(body.form); ++k) {
    const Contact<Variable>& contact = problem.contacts[k];
    values.contacts[k] = {
        rigid::values_of(contact.J), contact.v_hat.value, {contact.R.tangent.value, contact.R.normal.value}};
  }
  return values;
}

bool any_nonzero(const double* x, int size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

}  // namespace

Adjoint::Adjoint(const Body& body)
    : body_(body),
      derivative_(3, contacts_of(body.form)),
      data_(contacts_of(body.form)),
      no_g_y_(3 * contacts_of(body.form)),
      of_v_hat_(3 * contacts_of(body.form)),
      of_R_(3 * contacts_of(body.form)),
      of_mu_(contacts_of(body.form)),
      gamma_(3 * contacts_of(body.form)) {}

void Adjoint::run(std::int64_t steps, const Inputs& inputs, const WalkedPath& walked, const Gradients& to) {
  std::fill_n(carried_, 6, 0.0);
  std::fill_n(sums_, kMostParameters, 0.0);
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    for (int i = 0; i < 6; ++i) carried_[i] += walked.g_next[s][i];
    const bool any = any_nonzero(carried_, 6) || any_nonzero(walked.g_gamma[s], 3 * contacts_of(body_.form));
    std::fill_n(of_u_, 3, 0.0);
    if (any && *walked.status[s] == 0) {
      step(s == 0 ? inputs.first : walked.next[s - 1], inputs.u[s], s, inputs, walked);
    } else if (any) {
      constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
      std::fill_n(carried_, 6, kNaN);
      std::fill_n(of_u_, 3, kNaN);
      std::fill_n(sums_, kMostParameters, kNaN);
    }
    if (to.u.data != nullptr) std::copy_n(of_u_, 3, to.u[s]);
  }
  if (to.parameters != nullptr) std::copy_n(sums_, parameters_of(body_.form), to.parameters);
  if (to.first != nullptr) std::copy_n(carried_, 6, to.first);
}

// Replaces the gradient of the end of step s, which begins with the state `now`, by that of its start.
void Adjoint::step(const double* now, const double* u, std::int64_t s, const Inputs& inputs, const WalkedPath& walked) {
  tape_.clear();
  const auto set = [&](const double* x, int size, Variable* variables) {
    for (int i = 0; i < size; ++i) variables[i] = Variable::independent(tape_, x[i]);
  };
  set(inputs.parameters, parameters_of(body_.form), start_.parameters);
  set(now, 3, start_.position.entry);
  set(now + 3, 3, start_.velocity.entry);
  set(u, 3, start_.u.entry);
  const Problem<Variable> problem = problem_of(body_, start_);

  const double* const v = walked.next[s] + 3;
  for (int i = 0; i < 3; ++i) carried_[3 + i] += body_.dt * carried_[i];
  derivative_.adjoint(data_.set(values_of(body_, problem)), v, walked.y[s],
                      {carried_ + 3, no_g_y_.data(), walked.g_gamma[s]},
                      {l_, of_v_free_, of_v_hat_.data(), of_R_.data(), of_mu_.data(), gamma_.data()});

  tape_.begin_reverse();
  for (std::size_t i = 0; i < 3; ++i) {
    tape_.add_adjoint(problem.inertia[i].node, -l_[i] * (v[i] - problem.v_free[i].value));
    tape_.add_adjoint(problem.v_free[i].node, of_v_free_[i]);
  }
  for (int k = 0; k < contacts_of(body_.form); ++k) {
    const Contact<Variable>& contact = problem.contacts[k];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t row = 3 * k + i;
      for (std::size_t j = 0; j < 3; ++j) {
        tape_.add_adjoint(contact.J[i][j].node, gamma_[row] * l_[j] - of_v_hat_[row] * v[j]);
      }
    }
    tape_.add_adjoint(contact.v_hat.node, of_v_hat_[3 * k + 2]);
    tape_.add_adjoint(contact.R.tangent.node, of_R_[3 * k] + of_R_[3 * k + 1]);
    tape_.add_adjoint(contact.R.normal.node, of_R_[3 * k + 2]);
    tape_.add_adjoint(problem.mu.node, of_mu_[k]);
  }
  tape_.reverse(tape_.size(), 1);
  for (int i = 0; i < parameters_of(body_.form); ++i) sums_[i] += tape_.adjoint(start_.parameters[i].node);
  for (std::size_t i = 0; i < 3; ++i) {
    carried_[i] += tape_.adjoint(start_.position[i].node);
    carried_[3 + i] = tape_.adjoint(start_.velocity[i].node);
    of_u_[i] = tape_.adjoint(start_.u[i].node);
  }
}

}  // namespace lcp::compliant
