#include "compliant/adjoint.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "interrupt/checkpoint.h"

namespace lcp::compliant {
namespace {

using rigid::Variable;

bool any_nonzero(const double* x, int size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

}  // namespace

Adjoint::Adjoint(const Body& body) : body_(body), data_(contacts_of(body.form)), problem_() {
  const int contacts = contacts_of(body.form);
  for (int count = 1; count <= contacts; ++count) derivatives_.emplace_back(3, count);
  touching_.reserve(contacts);
  for (auto* const x : {&y_, &no_g_y_, &g_gamma_, &of_v_hat_, &of_R_, &gamma_}) x->resize(3 * contacts);
  of_mu_.resize(contacts);
}

void Adjoint::run(std::int64_t steps, const Inputs& inputs, const WalkedPath& walked, const Gradients& to) {
  std::fill_n(carried_, 6, 0.0);
  std::fill_n(sums_, kMostParameters, 0.0);
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    pace.spend(2000);
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
  touching_.clear();
  for (int k = 0; k < contacts_of(body_.form); ++k) {
    if (!any_nonzero(walked.gamma[s] + 3 * k, 3)) continue;
    std::copy_n(walked.y[s] + 3 * k, 3, y_.data() + 3 * touching_.size());
    std::copy_n(walked.g_gamma[s] + 3 * k, 3, g_gamma_.data() + 3 * touching_.size());
    touching_.push_back(k);
  }
  pose<Variable>(body_, start_, touching_, problem_);

  tape_.begin_reverse();
  double* const g_v = carried_ + 3;
  for (int i = 0; i < 3; ++i) g_v[i] += body_.dt * carried_[i];
  if (touching_.empty()) {
    for (std::size_t i = 0; i < 3; ++i) tape_.add_adjoint(problem_.v_free[i].node, g_v[i]);
  } else {
    pass_solver(g_v, walked.next[s] + 3);
  }
  tape_.reverse(tape_.size(), 1);
  for (int i = 0; i < parameters_of(body_.form); ++i) sums_[i] += tape_.adjoint(start_.parameters[i].node);
  for (std::size_t i = 0; i < 3; ++i) {
    carried_[i] += tape_.adjoint(start_.position[i].node);
    carried_[3 + i] = tape_.adjoint(start_.velocity[i].node);
    of_u_[i] = tape_.adjoint(start_.u[i].node);
  }
}

// From the gradient of v to those of the data of the problem.
void Adjoint::pass_solver(const double* g_v, const double* v) {
  derivatives_[touching_.size() - 1].adjoint(
      data_.set(problem_), v, y_.data(), {g_v, no_g_y_.data(), g_gamma_.data()},
      {l_, of_v_free_, of_v_hat_.data(), of_R_.data(), of_mu_.data(), gamma_.data()});
  for (std::size_t i = 0; i < 3; ++i) {
    tape_.add_adjoint(problem_.inertia[i].node, -l_[i] * (v[i] - problem_.v_free[i].value));
    tape_.add_adjoint(problem_.v_free[i].node, of_v_free_[i]);
  }
  for (std::size_t k = 0; k < problem_.count; ++k) {
    const Contact<Variable>& contact = problem_.contacts[k];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t row = 3 * k + i;
      for (std::size_t j = 0; j < 3; ++j) {
        tape_.add_adjoint(contact.J[i][j].node, gamma_[row] * l_[j] - of_v_hat_[row] * v[j]);
      }
    }
    tape_.add_adjoint(contact.v_hat.node, of_v_hat_[3 * k + 2]);
    tape_.add_adjoint(contact.R.tangent.node, of_R_[3 * k] + of_R_[3 * k + 1]);
    tape_.add_adjoint(contact.R.normal.node, of_R_[3 * k + 2]);
    tape_.add_adjoint(problem_.mu.node, of_mu_[k]);
  }
}

}  // namespace lcp::compliant
