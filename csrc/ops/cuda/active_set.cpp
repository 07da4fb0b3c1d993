// The derivative for a fixed active set on a GPU: n <= 32 by the batch kernels, larger problems on the CPU.
#include <ATen/Dispatch.h>
#include <ATen/ops/bmm.h>

#include "batch/cuda/kernels.h"
#include "ops/active_set/operators.h"
#include "ops/active_set/terms.h"
#include "ops/cuda/elements.h"
#include "ops/registration.h"

namespace lcp::ops::cuda {
namespace {

at::IntArrayRef batch_of(const Tensor& x) { return x.sizes().slice(0, x.dim() - 1); }

bool has_kernel(const Tensor& M, const std::optional<Tensor>& sizes) {
  return !sizes && M.size(-1) >= 1 && M.size(-1) <= batch::cuda::kLargest;
}

// The memory of batch::cuda::LeftElements.
class Left {
 public:
  Left(std::int64_t count, const Tensor& like)
      : elements_(at::empty({count}, like.options().dtype(at::kLong))),
        count_(at::zeros({1}, like.options().dtype(at::kLong))) {}

  batch::cuda::LeftElements data() const {
    return {elements_.mutable_data_ptr<std::int64_t>(),
            reinterpret_cast<unsigned long long*>(count_.mutable_data_ptr<std::int64_t>())};
  }

 private:
  Tensor elements_, count_;
};

Tensors<2> tangent_cuda(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active,
                        const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(M.device());
  auto results = new_results<2>(kTangent, M, basis, r, tied_active, sizes);
  const auto& [dz, dw] = results;
  if (!has_kernel(M, sizes)) {
    const auto [dz_cpu, dw_cpu] = tangent_op().call(M.cpu(), basis.cpu(), r.cpu(), tied_active, on_cpu(sizes));
    dz.copy_(dz_cpu);
    dw.copy_(dw_cpu);
  } else if (dz.numel() > 0) {
    const auto batch = batch_of(dz);
    const std::int64_t count = c10::multiply_integers(batch);
    const Elements all_M(M, batch, 2), all_states(basis, batch, 1), all_r(r, batch, 1);
    const Left left(count, M);
    AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_tangent", [&] {
      batch::cuda::tangent<scalar_t>(static_cast<int>(M.size(-1)), count, all_M.view<scalar_t>(),
                                     all_states.view<std::int8_t>(), all_r.view<scalar_t>(), tied_active,
                                     dz.mutable_data_ptr<scalar_t>(), dw.mutable_data_ptr<scalar_t>(), left.data(),
                                     c10::cuda::getCurrentCUDAStream());
    });
  }
  return as_tuple(std::move(results));
}

Tensor adjoint_cuda(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active,
                    const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(M.device());
  Tensor t = std::get<0>(new_results<1>(kAdjoint, M, basis, g_z, g_w, tied_active, sizes));
  if (!has_kernel(M, sizes)) {
    t.copy_(adjoint_op().call(M.cpu(), basis.cpu(), g_z.cpu(), g_w.cpu(), tied_active, on_cpu(sizes)));
  } else if (t.numel() > 0) {
    const auto batch = batch_of(t);
    const std::int64_t count = c10::multiply_integers(batch);
    const Elements all_M(M, batch, 2), all_states(basis, batch, 1), all_g_z(g_z, batch, 1), all_g_w(g_w, batch, 1);
    const Left left(count, M);
    AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_adjoint", [&] {
      batch::cuda::adjoint<scalar_t>(static_cast<int>(M.size(-1)), count, all_M.view<scalar_t>(),
                                     all_states.view<std::int8_t>(), all_g_z.view<scalar_t>(), all_g_w.view<scalar_t>(),
                                     tied_active, t.mutable_data_ptr<scalar_t>(), left.data(),
                                     c10::cuda::getCurrentCUDAStream());
    });
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
  const std::int64_t n = t.size(-1);
  if (terms.per_output == 1 && terms.outputs > 0 && n == x.size(-1) && n >= 1 && n <= batch::kEnumerated) {
    const Tensor result = at::empty(size, t.options());
    const Elements all_t(terms.t, terms.sizes, 1), all_x(terms.x, terms.sizes, 1);
    AT_DISPATCH_FLOATING_TYPES(t.scalar_type(), "lcp::_sum_outer", [&] {
      batch::cuda::outer<scalar_t>(static_cast<int>(n), terms.outputs, all_t.view<scalar_t>(), all_x.view<scalar_t>(),
                                   result.mutable_data_ptr<scalar_t>(), c10::cuda::getCurrentCUDAStream());
    });
    return result;
  }
  const Tensor number = terms.x.masked_fill(terms.x.isnan(), 0);
  if (terms.per_output == 1) return (terms.t.unsqueeze(-1) * number.unsqueeze(-2)).reshape(size);
  const auto as_batch = [&](const Tensor& of) {
    return of.reshape({terms.outputs, terms.per_output, of.size(-1)}).to(at::kDouble);
  };
  return at::bmm(as_batch(terms.t).mT(), as_batch(number)).to(t.scalar_type()).reshape(size);
}

LCP_LIBRARY_IMPL(CUDA, library) {
  library.impl("_piece", TORCH_FN(piece_cuda));
  library.impl("_tangent", TORCH_FN(tangent_cuda));
  library.impl("_adjoint", TORCH_FN(adjoint_cuda));
  library.impl("_sum_outer", TORCH_FN(sum_outer_cuda));
}

}  // namespace
}  // namespace lcp::ops::cuda
