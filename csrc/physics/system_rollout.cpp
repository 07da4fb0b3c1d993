#include "physics/system_rollout.h"

#include <ATen/ATen.h>

#include "ops/rollout/rollout.h"
#include "physics/lcs_rollout.h"
#include "physics/rollout_operator.h"

namespace lcp::physics {
namespace {

using at::Tensor;

Tensor joined(const Tensors& parts, at::ScalarType dtype) {
  Shape shape;
  for (const Tensor& part : parts) shape = common_shape({shape, leading(part)});
  Tensors whole;
  whole.reserve(parts.size());
  for (const Tensor& part : parts) whole.push_back(expanded(part.to(dtype), shape, {part.size(-1)}));
  return at::cat(whole, -1);
}

}  // namespace

ops::StepWriter step_writer(std::string_view system, const SolveOptions& options) {
  ops::StepWriter writer(system);
  writer.add("ties", std::string_view(options.ties)).add("tolerance", options.tolerance);
  if (options.kappa != 0) writer.add("kappa", options.kappa);
  return writer;
}

SolveOptions solve_options_of(const ops::StepText& step) {
  SolveOptions options;
  options.ties = std::string(step.word("ties"));
  options.kappa = step.number_if("kappa").value_or(0);
  options.tolerance = step.number_if("tolerance");
  return options;
}

bool can_roll_out(const FormulaSystem& system, const Tensor& x, const Tensor& u, const SolveOptions& options) {
  Tensors all = system.parameters;
  all.insert(all.end(), {x, u});
  return can_roll_out(options) && can_roll_out(all);
}

SystemSteps roll_out(const FormulaSystem& system, const Tensor& x, const Inputs& inputs) {
  const at::ScalarType dtype = x.scalar_type();
  const Tensors results =
      ops::roll_out(system.step, {joined(system.parameters, dtype), x, inputs.u.movedim(0, -2), system.D.to(dtype)},
                    inputs.feedback(x.size(-1)));
  // x_next and z are [..., T, k]; the residual and the status, behind w, are [..., T].
  return {results[0].movedim(-2, 0), results[1].movedim(-2, 0), results[3].movedim(-1, 0), results[4].movedim(-1, 0)};
}

Tensors steps_behind(Tensors results) {
  for (Tensor& result : results) result = result.movedim(0, -2);
  return results;
}

}  // namespace lcp::physics
