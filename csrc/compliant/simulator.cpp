#include "compliant/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interrupt/checkpoint.h"

namespace lcp::compliant {
namespace {

bool are_finite(const double* x, int size) {
  return std::all_of(x, x + size, [](double number) { return std::isfinite(number); });
}

}  // namespace

ProblemData::ProblemData(int contacts)
    : A_(9), v_free_(3), J_(9 * contacts), v_hat_(3 * contacts), R_(3 * contacts), mu_(contacts) {}

Simulator::Simulator(const Body& body, const contact::Limits& limits)
    : body_(body),
      limits_(limits),
      contacts_(contacts_of(body.form)),
      newton_(3, contacts_of(body.form)),
      problem_(),
      data_(contacts_of(body.form)) {
  std::iota(contacts_.begin(), contacts_.end(), 0);
}

void Simulator::run(std::int64_t steps, const Inputs& inputs, const Path& path) {
  const int rows = 3 * contacts_of(body_.form);
  Start<double> start;
  std::copy_n(inputs.parameters, parameters_of(body_.form), start.parameters);
  bool failed = !are_finite(inputs.first, 6);
  const double* now = inputs.first;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(1000);
    double* const next = path.next[s];
    contact::Outcome outcome = {contact::Termination::kInvalid, 0, 0};
    failed = failed || !are_finite(inputs.u[s], 3);
    if (!failed) {
      start.position = rigid::vector_at(now, 0);
      start.velocity = rigid::vector_at(now, 1);
      start.u = rigid::vector_at(inputs.u[s], 0);
      std::copy_n(now + 3, 3, next + 3);
      pose<double>(body_, start, contacts_, problem_);
      outcome = newton_.solve(data_.set(problem_), limits_, next + 3, path.y[s], path.gamma[s]);
      failed = outcome.termination != contact::Termination::kSolved;
    }
    *path.status[s] = static_cast<std::int8_t>(contact::status_of(outcome.termination));
    *path.iterations[s] = outcome.iterations;
    if (failed) {
      constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
      std::fill_n(next, 6, kNaN);
      std::fill_n(path.gamma[s], rows, kNaN);
      std::fill_n(path.y[s], rows, kNaN);
      continue;
    }
    for (int i = 0; i < 3; ++i) next[i] = now[i] + body_.dt * next[3 + i];
    now = next;
  }
}

}  // namespace lcp::compliant
