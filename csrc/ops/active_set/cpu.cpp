// The derivative for a fixed active set, on the CPU, with threads over the batch: adjoints of small problems by the
// vector kernels, all others and the tangents by solver::ActiveSet.
#include <ATen/Dispatch.h>

#include "batch/batch_derivative.h"
#include "ops/active_set/operators.h"
#include "ops/elements.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

Tensors<2> tangent_cpu(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active,
                       const std::optional<Tensor>& sizes) {
  if (sizes) return for_each_size(kTangent, "n", tangent_cpu, M, basis, r, tied_active, sizes);
  auto results = new_results<2>(kTangent, M, basis, r, tied_active, sizes);
  const Tensor &dz = results[0], &dw = results[1];
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_tangent", [&] {
    auto* const to_dz = dz.mutable_data_ptr<scalar_t>();
    auto* const to_dw = dw.mutable_data_ptr<scalar_t>();
    for_each_run<scalar_t>(batch_of(dz), {{M, 2}, {r, 1}}, &basis, n, grain(n), [&] {
      return [&, derivative = batch::BatchDerivative<scalar_t>(n, tied_active)](const auto& views, std::int64_t b,
                                                                                std::int64_t count) mutable {
        derivative.tangent(count, views[0], views.states, views[1], to_dz + b * n, to_dw + b * n);
      };
    });
  });
  return as_tuple(std::move(results));
}

Tensor adjoint_cpu(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active,
                   const std::optional<Tensor>& sizes) {
  if (sizes) return for_each_size(kAdjoint, "n", adjoint_cpu, M, basis, g_z, g_w, tied_active, sizes);
  Tensor t = std::get<0>(new_results<1>(kAdjoint, M, basis, g_z, g_w, tied_active, sizes));
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_adjoint", [&] {
    auto* const to_t = t.mutable_data_ptr<scalar_t>();
    for_each_run<scalar_t>(batch_of(t), {{M, 2}, {g_z, 1}, {g_w, 1}}, &basis, n, kernel_grain(n), [&] {
      return [&, derivative = batch::BatchDerivative<scalar_t>(n, tied_active)](const auto& views, std::int64_t b,
                                                                                std::int64_t count) mutable {
        derivative.adjoint(count, views[0], views.states, views[1], views[2], to_t + b * n);
      };
    });
  });
  return t;
}

Tensors<2> piece_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis,
                     bool tied_active, const std::optional<Tensor>& sizes) {
  check(kPiece, M, q, z, w, basis, tied_active, sizes);
  return {z.clone(), w.clone()};
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_piece", TORCH_FN(piece_cpu));
  library.impl("_tangent", TORCH_FN(tangent_cpu));
  library.impl("_adjoint", TORCH_FN(adjoint_cpu));
}

}  // namespace
}  // namespace lcp::ops
