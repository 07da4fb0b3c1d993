#include "compliant/sweeps.h"

#include <algorithm>
#include <limits>

#include "interrupt/checkpoint.h"

namespace lcp::compliant {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kOperationsOfStep = 2000;

bool any_nonzero(const double* x, int size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

}  // namespace

void adjoint(LinearStep& step, const Body& body, std::int64_t steps, const Inputs& inputs, const WalkedPath& walked,
             Series<const double> g_next, Series<const double> g_gamma, const Gradients& to) {
  const int parameters = parameters_of(body.form), rows = 3 * contacts_of(body.form);
  double carried[6] = {}, sums[kMostParameters] = {};
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    pace.spend(kOperationsOfStep);
    for (int i = 0; i < 6; ++i) carried[i] += g_next[s][i];
    StepDerivative g = {};
    const bool any = any_nonzero(carried, 6) || any_nonzero(g_gamma[s], rows);
    if (any && *walked.status[s] == 0) {
      step.record(s, inputs, walked);
      g = step.reverse(carried, g_gamma[s]);
    } else if (any) {
      std::fill_n(g.state, 6, kNaN);
      std::fill_n(g.u, 3, kNaN);
      std::fill_n(g.parameters, kMostParameters, kNaN);
    }
    std::copy_n(g.state, 6, carried);
    for (int i = 0; i < parameters; ++i) sums[i] += g.parameters[i];
    if (to.u.data != nullptr) std::copy_n(g.u, 3, to.u[s]);
  }
  if (to.parameters != nullptr) std::copy_n(sums, parameters, to.parameters);
  if (to.first != nullptr) std::copy_n(carried, 6, to.first);
}

void tangent(LinearStep& step, const Body& body, std::int64_t steps, const Inputs& inputs, const WalkedPath& walked,
             const Inputs& d, Series<double> next, Series<double> gamma) {
  const int parameters = parameters_of(body.form), rows = 3 * contacts_of(body.form);
  StepDerivative along = {};
  std::copy_n(d.parameters, parameters, along.parameters);
  std::copy_n(d.first, 6, along.state);
  bool moves = any_nonzero(d.parameters, parameters) || any_nonzero(d.first, 6);
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(kOperationsOfStep);
    std::copy_n(d.u[s], 3, along.u);
    moves = moves || any_nonzero(along.u, 3);
    if (moves && *walked.status[s] == 0) {
      step.record(s, inputs, walked);
      step.forward(along, next[s], gamma[s]);
    } else {
      const double number = moves ? kNaN : 0;
      std::fill_n(next[s], 6, number);
      std::fill_n(gamma[s], rows, number);
    }
    std::copy_n(next[s], 6, along.state);
  }
}

}  // namespace lcp::compliant
