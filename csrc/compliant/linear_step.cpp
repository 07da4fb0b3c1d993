#include "compliant/linear_step.h"

#include <algorithm>
#include <cstddef>

namespace lcp::compliant {

using rigid::Variable;

LinearStep::LinearStep(const Body& body) : body_(body), data_(contacts_of(body.form)), problem_() {
  const int contacts = contacts_of(body.form);
  for (int count = 1; count <= contacts; ++count) derivatives_.emplace_back(3, count);
  touching_.reserve(contacts);
  for (auto* const x : {&y_, &no_g_y_, &of_gamma_, &of_s_, &of_R_, &gamma_}) x->resize(3 * contacts);
  of_mu_.resize(contacts);
}

// Calls use(variable, where its derivative is).
template <class Use>
void LinearStep::for_each_input(const Use& use) {
  for (int i = 0; i < parameters_of(body_.form); ++i) {
    use(
        start_.parameters[i], [i](auto& d) -> auto& { return d.parameters[i]; });
  }
  for (int i = 0; i < 3; ++i) {
    use(
        start_.position[i], [i](auto& d) -> auto& { return d.state[i]; });
    use(
        start_.velocity[i], [i](auto& d) -> auto& { return d.state[3 + i]; });
    use(
        start_.u[i], [i](auto& d) -> auto& { return d.u[i]; });
  }
}

void LinearStep::record(std::int64_t s, const Inputs& inputs, const WalkedPath& walked) {
  tape_.clear();
  const auto set = [&](const double* x, int size, Variable* variables) {
    for (int i = 0; i < size; ++i) variables[i] = Variable::independent(tape_, x[i]);
  };
  const double* const now = s == 0 ? inputs.first : walked.next[s - 1];
  set(inputs.parameters, parameters_of(body_.form), start_.parameters);
  set(now, 3, start_.position.entry);
  set(now + 3, 3, start_.velocity.entry);
  set(inputs.u[s], 3, start_.u.entry);
  touching_.clear();
  for (int k = 0; k < contacts_of(body_.form); ++k) {
    const double* const gamma = walked.gamma[s] + 3 * k;
    if (std::all_of(gamma, gamma + 3, [](double number) { return number == 0; })) continue;
    std::copy_n(walked.y[s] + 3 * k, 3, y_.data() + 3 * touching_.size());
    std::copy_n(gamma, 3, gamma_.data() + 3 * touching_.size());
    touching_.push_back(k);
  }
  pose<Variable>(body_, start_, touching_, problem_);
  posed_ = data_.set(problem_);
  std::copy_n(walked.next[s] + 3, 3, v_);
  tape_.begin_sweep();
}

StepDerivative LinearStep::reverse(const double* g_end, const double* g_gamma) {
  double g_v[3];
  for (int i = 0; i < 3; ++i) g_v[i] = g_end[3 + i] + body_.dt * g_end[i];
  if (touching_.empty()) {
    for (std::size_t i = 0; i < 3; ++i) tape_.add(problem_.v_free[i].node, g_v[i]);
  } else {
    pass_back(g_v, g_gamma);
  }
  tape_.reverse(tape_.size(), 1);
  StepDerivative g = {};
  for_each_input([&](const Variable& x, const auto& of) { of(g) = tape_.derivative(x.node); });
  for (int i = 0; i < 3; ++i) g.state[i] += g_end[i];
  return g;
}

// From the gradient of v to those of the data of the problem.
void LinearStep::pass_back(const double* g_v, const double* g_gamma) {
  for (std::size_t k = 0; k < touching_.size(); ++k) std::copy_n(g_gamma + 3 * touching_[k], 3, &of_gamma_[3 * k]);
  std::vector<double>& P = gamma_;
  derivatives_[touching_.size() - 1].adjoint(posed_, v_, y_.data(), {g_v, no_g_y_.data(), of_gamma_.data()},
                                             {of_p_, of_v_free_, of_s_.data(), of_R_.data(), of_mu_.data(), P.data()});
  for (std::size_t i = 0; i < 3; ++i) {
    tape_.add(problem_.inertia[i].node, -of_p_[i] * (v_[i] - problem_.v_free[i].value));
    tape_.add(problem_.v_free[i].node, of_v_free_[i]);
  }
  for (std::size_t k = 0; k < problem_.count; ++k) {
    const Contact<Variable>& contact = problem_.contacts[k];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t row = 3 * k + i;
      for (std::size_t j = 0; j < 3; ++j) {
        tape_.add(contact.J[i][j].node, P[row] * of_p_[j] - of_s_[row] * v_[j]);
      }
    }
    tape_.add(contact.v_hat.node, of_s_[3 * k + 2]);
    tape_.add(contact.R.tangent.node, of_R_[3 * k] + of_R_[3 * k + 1]);
    tape_.add(contact.R.normal.node, of_R_[3 * k + 2]);
    tape_.add(problem_.mu.node, of_mu_[k]);
  }
}

void LinearStep::forward(const StepDerivative& d, double* end, double* dgamma) {
  for_each_input([&](const Variable& x, const auto& of) { tape_.add(x.node, of(d)); });
  tape_.forward(1, tape_.size());
  double dv[3];
  std::fill_n(dgamma, 3 * contacts_of(body_.form), 0.0);
  if (touching_.empty()) {
    for (std::size_t i = 0; i < 3; ++i) dv[i] = tape_.derivative(problem_.v_free[i].node);
  } else {
    pass_on(dv, dgamma);
  }
  for (int i = 0; i < 3; ++i) {
    end[i] = d.state[i] + body_.dt * dv[i];
    end[3 + i] = dv[i];
  }
}

// From the tangents of the data of the problem to those of its solution.
void LinearStep::pass_on(double* dv, double* dgamma) {
  const auto of = [this](const Variable& x) { return tape_.derivative(x.node); };
  for (std::size_t i = 0; i < 3; ++i) {
    of_p_[i] = problem_.inertia[i].value * of(problem_.v_free[i]) -
               of(problem_.inertia[i]) * (v_[i] - problem_.v_free[i].value);
  }
  for (std::size_t k = 0; k < problem_.count; ++k) {
    const Contact<Variable>& contact = problem_.contacts[k];
    of_s_[3 * k] = of_s_[3 * k + 1] = 0;
    of_s_[3 * k + 2] = of(contact.v_hat);
    of_R_[3 * k] = of_R_[3 * k + 1] = of(contact.R.tangent);
    of_R_[3 * k + 2] = of(contact.R.normal);
    of_mu_[k] = of(problem_.mu);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t row = 3 * k + i;
      for (std::size_t j = 0; j < 3; ++j) {
        of_p_[j] += of(contact.J[i][j]) * gamma_[row];
        of_s_[row] -= of(contact.J[i][j]) * v_[j];
      }
    }
  }
  derivatives_[touching_.size() - 1].tangent(posed_, v_, y_.data(), {of_p_, of_s_.data(), of_R_.data(), of_mu_.data()},
                                             dv, of_gamma_.data());
  for (std::size_t k = 0; k < touching_.size(); ++k) std::copy_n(&of_gamma_[3 * k], 3, dgamma + 3 * touching_[k]);
}

}  // namespace lcp::compliant
