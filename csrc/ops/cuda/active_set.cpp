// The derivative for a fixed active set on a GPU: n <= 32 by the batch kernels there; larger problems, and those whose
// M_aa is not clearly regular, on the CPU.
#include <ATen/Dispatch.h>
#include <ATen/ops/bmm.h>
#include <torch/library.h>

#include <limits>

#include "batch/cuda/kernels.h"
#include "ops/active_set/operators.h"
#include "ops/active_set/terms.h"
#include "ops/cuda/elements.h"

namespace lcp::ops::cuda {
namespace {

std::optional<Tensor> on_cpu(const std::optional<Tensor>& x) { return x ? std::optional(x->cpu()) : std::nullopt; }

at::IntArrayRef batch_of(const Tensor& x) { return x.sizes().slice(0, x.dim() - 1); }

bool has_kernel(const Tensor& M, const std::optional<Tensor>& sizes) {
  return !sizes && M.size(-1) >= 1 && M.size(-1) <= batch::cuda::kLargest;
}

// Whether the CPU must compute some elements. In a graph it cannot: they become NaN.
bool must_go_on(const LeftCount& left, const Tensor& status, std::initializer_list<std::reference_wrapper<const Tensor>> results) {
  if (!is_captured()) return left.any();
  for (const Tensor& result : results) {
    result.masked_fill_((status == batch::kLeftOver).view(batch_of(result)).unsqueeze(-1),
                        std::numeric_limits<double>::quiet_NaN());
  }
  return false;
}

Tensors<2> tangent_cuda(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active,
                        const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(M.device());
  auto results = new_results<2>(kTangent, M, basis, r, tied_active, sizes);
  const auto& [dz, dw] = results;
  if (!has_kernel(M, sizes)) {
    const auto [dz_cpu, dw_cpu] = tangent_op().call(M.cpu(), basis.cpu(), r.cpu(), tied_active, on_cpu(sizes));
    dz.copy_(dz_cpu);
    dw.copy_(dw_cpu);
    return as_tuple(std::move(results));
  }
  if (dz.numel() == 0) return as_tuple(std::move(results));
  const auto batch = batch_of(dz);
  const Elements all_M(M, batch, 2), all_states(basis, batch, 1), all_r(r, batch, 1);
  const Tensor status = at::empty({c10::multiply_integers(batch)}, basis.options());
  const LeftCount left(status);
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_tangent", [&] {
    batch::cuda::tangent<scalar_t>(static_cast<int>(M.size(-1)), status.numel(), all_M.view<scalar_t>(),
                                   all_states.view<std::int8_t>(), all_r.view<scalar_t>(), tied_active,
                                   dz.mutable_data_ptr<scalar_t>(), dw.mutable_data_ptr<scalar_t>(),
                                   status.mutable_data_ptr<std::int8_t>(), left.data(),
                                   c10::cuda::getCurrentCUDAStream());
  });
  if (must_go_on(left, status, {dz, dw})) {
    const Tensor elements = at::nonzero(status == batch::kLeftOver).reshape({-1});
    const auto [dz_left, dw_left] =
        tangent_op().call(all_M.on_cpu(elements), all_states.on_cpu(elements), all_r.on_cpu(elements), tied_active,
                          std::nullopt);
    put_back(dz_left.expand({elements.numel(), -1}), elements, 1, dz);
    put_back(dw_left.expand({elements.numel(), -1}), elements, 1, dw);
  }
  return as_tuple(std::move(results));
}

Tensor adjoint_cuda(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active,
                    const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(M.device());
  const Tensor t = std::get<0>(new_results<1>(kAdjoint, M, basis, g_z, g_w, tied_active, sizes));
  if (!has_kernel(M, sizes)) {
    t.copy_(adjoint_op().call(M.cpu(), basis.cpu(), g_z.cpu(), g_w.cpu(), tied_active, on_cpu(sizes)));
    return t;
  }
  if (t.numel() == 0) return t;
  const auto batch = batch_of(t);
  const Elements all_M(M, batch, 2), all_states(basis, batch, 1), all_g_z(g_z, batch, 1), all_g_w(g_w, batch, 1);
  const Tensor status = at::empty({c10::multiply_integers(batch)}, basis.options());
  const LeftCount left(status);
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_adjoint", [&] {
    batch::cuda::adjoint<scalar_t>(static_cast<int>(M.size(-1)), status.numel(), all_M.view<scalar_t>(),
                                   all_states.view<std::int8_t>(), all_g_z.view<scalar_t>(), all_g_w.view<scalar_t>(),
                                   tied_active, t.mutable_data_ptr<scalar_t>(), status.mutable_data_ptr<std::int8_t>(),
                                   left.data(), c10::cuda::getCurrentCUDAStream());
  });
  if (must_go_on(left, status, {t})) {
    const Tensor elements = at::nonzero(status == batch::kLeftOver).reshape({-1});
    const Tensor t_left =
        adjoint_op().call(all_M.on_cpu(elements), all_states.on_cpu(elements), all_g_z.on_cpu(elements),
                          all_g_w.on_cpu(elements), tied_active, std::nullopt);
    put_back(t_left.expand({elements.numel(), -1}), elements, 1, t);
  }
  return t;
}

Tensors<2> piece_cuda(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis,
                      bool tied_active, const std::optional<Tensor>& sizes) {
  check(kPiece, M, q, z, w, basis, tied_active, sizes);
  return {z.clone(), w.clone()};
}

Tensor sum_outer_cuda(const Tensor& t, const Tensor& x, c10::SymIntArrayRef symbolic_size) {
  const c10::cuda::CUDAGuard guard(t.device());
  const auto size = c10::asIntArrayRefSlow(symbolic_size, __FILE__, __LINE__);
  const Terms terms = arrange(t, x, size);
  const Tensor number = x.masked_fill(x.isnan(), 0);
  if (terms.per_output == 1) return (terms.t.unsqueeze(-1) * arrange(t, number, size).x.unsqueeze(-2)).reshape(size);
  const auto as_batch = [&](const Tensor& of) {
    return of.reshape({terms.outputs, terms.per_output, of.size(-1)}).to(at::kDouble);
  };
  return at::bmm(as_batch(terms.t).mT(), as_batch(arrange(t, number, size).x)).to(t.scalar_type()).reshape(size);
}

TORCH_LIBRARY_IMPL(lcp, CUDA, library) {
  library.impl("_piece", TORCH_FN(piece_cuda));
  library.impl("_tangent", TORCH_FN(tangent_cuda));
  library.impl("_adjoint", TORCH_FN(adjoint_cuda));
  library.impl("_sum_outer", TORCH_FN(sum_outer_cuda));
}

}  // namespace
}  // namespace lcp::ops::cuda
