#include "physics/lcs_rollout.h"

#include <ATen/ATen.h>

#include <vector>

namespace lcp::physics {

using at::Tensor;

bool can_roll_out(const SolveOptions& options) {
  return !options.sizes && options.method == method_name(Method::kAuto) && options.kappa == 0 && !options.max_pivots &&
         !options.guess;
}

Tensor matrix_of_entries(std::initializer_list<std::initializer_list<Tensor>> rows) {
  std::vector<Tensor> entries;
  for (const auto& row : rows) entries.insert(entries.end(), row.begin(), row.end());
  const auto columns = static_cast<std::int64_t>(rows.begin()->size());
  return at::stack(at::broadcast_tensors(entries), -1).unflatten(-1, {static_cast<std::int64_t>(rows.size()), columns});
}

LcsRollout roll_out(const LinearComplementaritySystem& system, const Tensor& x, const Tensor& u,
                    const SolveOptions& options) {
  const LcsRollout all = simulate_lcs(system, x, u.movedim(0, -2), {options.ties, options.tolerance});
  const auto steps_first = [](const Tensor& result, std::int64_t core_dims) { return result.movedim(-core_dims, 0); };
  return {steps_first(all.x_next, 2), steps_first(all.z, 2), steps_first(all.w, 2), steps_first(all.status, 1),
          steps_first(all.residual, 1)};
}

}  // namespace lcp::physics
