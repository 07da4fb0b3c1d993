// Rollouts on the CPU.
#include <ATen/FuncTorchTLS.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "ops/registration.h"
#include "ops/rollout/operators.h"

namespace lcp::ops {
namespace {

// Within this no transform of torch.func is active, as for a kernel of plain tensors that differentiates by itself, and
// autograd is, whose keys are excluded where such a kernel is called.
class OwnAutograd {
 public:
  OwnAutograd() { at::functorch::functorchTLSAccessor().swap(transforms_); }
  ~OwnAutograd() { at::functorch::functorchTLSAccessor().swap(transforms_); }
  OwnAutograd(const OwnAutograd&) = delete;
  OwnAutograd& operator=(const OwnAutograd&) = delete;

 private:
  static c10::DispatchKeySet excluded() {
    const c10::DispatchKeySet transforms(
        {c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode});
    return (c10::impl::tls_local_dispatch_key_set().excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView) |
           transforms;
  }

  std::unique_ptr<at::functorch::FuncTorchTLSBase> transforms_;
  c10::impl::ForceDispatchKeyGuard keys_{c10::impl::tls_local_dispatch_key_set().included_, excluded()};
  c10::AutoGradMode grad_{true};
};

List detached(at::TensorList x) {
  List all;
  for (const Tensor& each : x) all.push_back(each.detach());
  return all;
}

// The inputs, of which each trajectory has its own where it has a gradient.
List of_trajectories(at::TensorList x, const List& gradients) {
  List all = detached(x);
  for (std::size_t k = 0; k < gradients.size(); ++k) all[k] = all[k].expand(gradients[k].sizes());
  return all;
}

void write(const List& x, const List& to) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k].copy_(x[k].detach());
}

List rollout_cpu(std::string_view step, at::TensorList x, std::int64_t saved) {
  List results = new_list(kRollout, step, x, saved);
  kind_of(step).run(StepText(step), x, saved, results);
  return results;
}

List rollout_adjoint_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList g,
                         std::int64_t wanted) {
  List results = new_list(kRolloutAdjoint, step, x, path, g, wanted);
  const StepText text(step);
  if (!RolloutKind::is_smoothed(text)) {
    kind_of(step).adjoint(text, x, path, g, wanted, results);
  } else if (results.front().numel() > 0) {
    const OwnAutograd own;
    write(adjoint_by_tensors(step, of_trajectories(x, results), detached(g)), results);
  }
  return results;
}

List rollout_tangent_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d) {
  List results = new_list(kRolloutTangent, step, x, path, d);
  const StepText text(step);
  if (!RolloutKind::is_smoothed(text)) {
    kind_of(step).tangent(text, x, path, d, results);
  } else if (results.front().numel() > 0) {
    const OwnAutograd own;
    write(tangent_by_tensors(step, detached(x), detached(d)), results);
  }
  return results;
}

List rollout_adjoint_tangent_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList g,
                                 at::TensorList d, at::TensorList dg) {
  List results = new_list(kRolloutAdjointTangent, step, x, path, g, d, dg);
  if (results.front().numel() == 0) return results;
  const OwnAutograd own;
  write(adjoint_tangent_by_tensors(step, of_trajectories(x, results), detached(g), detached(d), detached(dg)), results);
  return results;
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_rollout", TORCH_FN(rollout_cpu));
  library.impl("_rollout_adjoint", TORCH_FN(rollout_adjoint_cpu));
  library.impl("_rollout_tangent", TORCH_FN(rollout_tangent_cpu));
  library.impl("_rollout_adjoint_tangent", TORCH_FN(rollout_adjoint_tangent_cpu));
}

}  // namespace
}  // namespace lcp::ops
