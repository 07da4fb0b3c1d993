#include "physics/lcs_rollout.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "ops/rollout/rollout.h"
#include "physics/system_rollout.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// Which pairs of a step are directions of a contact that sticks, see LinearComplementaritySystem::cone: [..., n].
Tensor sticking(const std::vector<std::int64_t>& cone, const Tensor& z, const Tensor& w) {
  Tensors of_pair;
  for (const std::int64_t j : cone) {
    if (j < 0) {
      of_pair.push_back(at::zeros_like(z.select(-1, 0), z.options().dtype(at::kBool)));
      continue;
    }
    Tensor held = w.select(-1, j) > 0;
    for (std::size_t other = 0; other < cone.size(); ++other) {
      if (cone[other] == j) held = held | (z.select(-1, static_cast<std::int64_t>(other)) > 0);
    }
    of_pair.push_back(held & (z.select(-1, j) == 0));
  }
  return at::stack(of_pair, -1);
}

// x_next, z and w for the inputs of lcp::_rollout.
Tensors lcs_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  const Tensor &A = inputs[0], &B = inputs[1], &D = inputs[2], &G = inputs[3], &d = inputs[4], &E = inputs[5],
               &H = inputs[6], &M = inputs[7], &q = inputs[8], &x = inputs[9], &u = inputs[10];
  const SolveOptions options = solve_options_of(step);
  const std::vector<std::int64_t> cone = step.word_if("cone") ? step.counts("cone") : std::vector<std::int64_t>();
  const StepFunctions functions{
      [&](const Tensors& state, const Tensor& input, const Tensor& poison) -> Solved {
        const Tensor vector = matvec(E, state[0]) + matvec(H, input) + q;
        return {solve(M, poison.defined() ? vector + poison.unsqueeze(-1) : vector, options), {}};
      },
      [&](const Tensors& state, const Tensor& input, const Solved& solved) -> Tensors {
        const auto& [z, w, status] = solved.result;
        const Tensor moving = cone.empty() ? w : held(sticking(cone, z, w), w, options);
        return {matvec(A, state[0]) + matvec(B, input) + matvec(D, z) + matvec(G, moving) + d};
      }};
  const Rollout all = roll_out({x}, u.movedim(-2, 0), leading(x).vec(), functions);
  const auto result = [&](const Tensor& each) { return with_failures(each, all.failure); };
  return steps_behind({result(all.ends[0]), result(all.result.z), result(all.result.w)});
}

const ops::RegisterByTensors registered("lcs", lcs_by_tensors);

}  // namespace

bool can_roll_out(const SolveOptions& options) {
  return !options.sizes && options.method == method_name(Method::kAuto) && !options.max_pivots && !options.guess;
}

Tensor matrix_of_entries(std::initializer_list<std::initializer_list<Tensor>> rows) {
  std::vector<Tensor> entries;
  for (const auto& row : rows) entries.insert(entries.end(), row.begin(), row.end());
  const auto columns = static_cast<std::int64_t>(rows.begin()->size());
  return at::stack(at::broadcast_tensors(entries), -1).unflatten(-1, {static_cast<std::int64_t>(rows.size()), columns});
}

LcsRollout roll_out(const LinearComplementaritySystem& system, const Tensor& x, const Inputs& inputs,
                    const SolveOptions& options) {
  const auto& [A, B, D, G, d, E, H, M, q, cone] = system;
  ops::StepWriter step = step_writer("lcs", options);
  if (!cone.empty()) step.add("cone", cone);
  const Tensors all =
      ops::roll_out(step.text(), {A, B, D, G, d, E, H, M, q, x, inputs.u.movedim(0, -2)}, inputs.feedback(x.size(-1)));
  const auto steps_first = [&](std::size_t k, std::int64_t core_dims) { return all[k].movedim(-core_dims, 0); };
  return {steps_first(0, 2), steps_first(1, 2), steps_first(2, 2), steps_first(4, 1), steps_first(3, 1)};
}

}  // namespace lcp::physics
