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

// Writes what `differentiate` finds by operators of tensors, or 0 where there are no steps.
template <class Differentiate>
void write_by_tensors(const List& to, at::TensorList path, const Differentiate& differentiate) {
  if (!has_steps(path)) {
    for (const Tensor& each : to) each.zero_();
    return;
  }
  const OwnAutograd own;
  const List found = differentiate();
  for (std::size_t k = 0; k < to.size(); ++k) to[k].copy_(found[k].detach());
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
  if (!kind_of(step).differentiates_by_tensors(text)) {
    kind_of(step).adjoint(text, x, path, g, wanted, results);
  } else {
    write_by_tensors(results, path, [&] { return adjoint_by_tensors(step, detached(x), detached(g)); });
  }
  return results;
}

List rollout_tangent_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d) {
  List results = new_list(kRolloutTangent, step, x, path, d);
  const StepText text(step);
  if (!kind_of(step).differentiates_by_tensors(text)) {
    kind_of(step).tangent(text, x, path, d, results);
  } else {
    write_by_tensors(results, path,
                     [&] { return tangent_by_tensors(step, detached(x), detached(d), /*has_derivatives=*/false); });
  }
  return results;
}

List rollout_adjoint_tangent_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList g,
                                 at::TensorList d, at::TensorList dg) {
  List results = new_list(kRolloutAdjointTangent, step, x, path, g, d, dg);
  write_by_tensors(results, path, [&] {
    return adjoint_tangent_by_tensors(step, detached(x), detached(g), detached(d), detached(dg),
                                      /*has_derivatives=*/false);
  });
  return results;
}

List rollout_tangent_tangent_cpu(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d,
                                 at::TensorList dx, at::TensorList dd) {
  List results = new_list(kRolloutTangentTangent, step, x, path, d, dx, dd);
  write_by_tensors(results, path, [&] {
    return tangent_tangent_by_tensors(step, detached(x), detached(d), detached(dx), detached(dd));
  });
  return results;
}

List rollout_linearization_cpu(std::string_view step, at::TensorList x, at::TensorList path) {
  List results = new_list(kRolloutLinearization, step, x, path);
  kind_of(step).linearize(StepText(step), x, path, results);
  return results;
}

List rollout_certificate_cpu(std::string_view step, at::TensorList x, at::TensorList path) {
  List results = new_list(kRolloutCertificate, step, x, path);
  kind_of(step).certify(StepText(step), x, path, results);
  return results;
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_rollout", TORCH_FN(rollout_cpu));
  library.impl("_rollout_adjoint", TORCH_FN(rollout_adjoint_cpu));
  library.impl("_rollout_tangent", TORCH_FN(rollout_tangent_cpu));
  library.impl("_rollout_adjoint_tangent", TORCH_FN(rollout_adjoint_tangent_cpu));
  library.impl("_rollout_tangent_tangent", TORCH_FN(rollout_tangent_tangent_cpu));
  library.impl("_rollout_linearization", TORCH_FN(rollout_linearization_cpu));
  library.impl("_rollout_certificate", TORCH_FN(rollout_certificate_cpu));
}

}  // namespace
}  // namespace lcp::ops
