#include "ops/rollout/operators.h"

#include "ops/solve/operators.h"

namespace lcp::ops {

void check_rollout(const Call& call) {
  const StepText step(call.text());
  if (const auto ties = step.word_if("ties")) check_ties("ties", *ties);
  kind_of(call.text()).check(call, step);
}

List roll_out(std::string_view step, at::TensorList x) { return rollout_op().call(step, x, 0); }

}  // namespace lcp::ops
