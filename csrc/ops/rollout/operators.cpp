#include "ops/rollout/operators.h"

#include <string>

#include "ops/rollout/rollout.h"
#include "ops/solve/operators.h"

namespace lcp::ops {

namespace {

void check_options(const StepText& step) {
  const auto check_number = [&](std::string_view name, const auto& check) {
    if (const auto number = step.number_if(name)) check(name, *number);
  };
  for (const char* name : {"dt", "tolerance", "sigma"}) check_number(name, check_positive);
  for (const char* name : {"kappa", "beta", "bounce_threshold", "stabilization"}) check_number(name, check_nonnegative);
  check_number("angle", check_finite);
  if (const auto limit = step.count_if("max_iterations")) check_count("max_iterations", *limit);
  if (const auto ties = step.word_if("ties")) check_ties("ties", *ties);
}

}  // namespace

void check_rollout(const Call& call) {
  thread_local std::string checked;  // the last text whose options were: single steps have the same again and again
  const StepText step(call.text());
  if (step.text() != checked) {
    check_options(step);
    checked = step.text();
  }
  kind_of(step.text()).check(call, step);
}

LinearizedRollout linearize_rollout(std::string_view step, at::TensorList x) {
  const List path = rollout_op().call(step, x, kind_of(step).saved(StepText(step), x));
  const List matrices = rollout_linearization_op().call(step, x, path);
  return {path, matrices[0], matrices[1]};
}

CertifiedRollout certify_rollout(std::string_view step, at::TensorList x) {
  const List path = rollout_op().call(step, x, kind_of(step).saved(StepText(step), x));
  const List found = rollout_certificate_op().call(step, x, path);
  return {path, found[0], found[1], found[2]};
}

}  // namespace lcp::ops
