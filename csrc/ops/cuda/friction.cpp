// Contact with Coulomb friction on a GPU: few contacts by the kernels. More contacts, elements that the kernels leave,
// and points of the smooth path are computed on the CPU.
#include <ATen/Dispatch.h>

#include "friction/cuda/kernels.h"
#include "ops/cuda/elements.h"
#include "ops/friction/operators.h"
#include "ops/registration.h"

namespace lcp::ops::cuda {
namespace {

Tensors<5> friction_point_cuda(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                               const Tensor& mu, const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                               double kappa, std::optional<double> tolerance,
                               std::optional<std::int64_t> max_iterations) {
  const c10::cuda::CUDAGuard guard(A.device());
  auto results = new_results<5>(kFrictionPoint, A, v_free, J, b, mu, sizes, guess, kappa, tolerance, max_iterations);
  const auto& [v, gamma, u, status, iterations] = results;
  if (!has_contact_kernel(A, J, sizes) || max_iterations) {
    copy_all(friction_point_op().call(A.cpu(), v_free.cpu(), J.cpu(), b.cpu(), mu.cpu(), on_cpu(sizes), on_cpu(guess),
                                      kappa, tolerance, max_iterations),
             results);
    return as_tuple(std::move(results));
  }
  if (status.numel() == 0) return as_tuple(std::move(results));
  const auto batch = status.sizes();
  const Elements all_A(A, batch, 2), all_v_free(v_free, batch, 1), all_J(J, batch, 2), all_b(b, batch, 1),
      all_mu(mu, batch, 1);
  std::optional<Elements> all_guess;
  if (guess) all_guess.emplace(*guess, batch, 1);
  const LeftCount left(status);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::solve_friction", [&] {
    const friction::cuda::Problems<scalar_t> problems = {static_cast<int>(A.size(-1)), static_cast<int>(J.size(-2) / 3),
                                                         all_A.view<scalar_t>(),       all_v_free.view<scalar_t>(),
                                                         all_J.view<scalar_t>(),       all_b.view<scalar_t>(),
                                                         all_mu.view<scalar_t>()};
    friction::cuda::solve<scalar_t>(
        status.numel(), problems, all_guess ? all_guess->view<scalar_t>() : linalg::BatchView<scalar_t>{nullptr, true},
        tolerance.value_or(default_friction_tolerance(A)),
        {v.mutable_data_ptr<scalar_t>(), gamma.mutable_data_ptr<scalar_t>(), u.mutable_data_ptr<scalar_t>(),
         status.mutable_data_ptr<std::int8_t>(), iterations.mutable_data_ptr<std::int64_t>()},
        is_captured() ? nullptr : left.data(), c10::cuda::getCurrentCUDAStream());
  });
  finish_left(left, results, [&](const Tensor& elements) {
    return friction_point_op().call(all_A.on_cpu(elements), all_v_free.on_cpu(elements), all_J.on_cpu(elements),
                                    all_b.on_cpu(elements), all_mu.on_cpu(elements), std::nullopt,
                                    all_guess ? std::optional(all_guess->on_cpu(elements)) : std::nullopt, kappa,
                                    tolerance, std::nullopt);
  });
  return as_tuple(std::move(results));
}

Tensors<3> friction_adjoint_cuda(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& v,
                                 const Tensor& gamma, const Tensor& u, const Tensor& g_v, const Tensor& g_gamma,
                                 const Tensor& g_u, bool smooth, const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(A.device());
  auto results = new_results<3>(kFrictionAdjoint, A, J, mu, v, gamma, u, g_v, g_gamma, g_u, smooth, sizes);
  const auto& [a, c, of_mu] = results;
  if (smooth || !has_contact_kernel(A, J, sizes)) {
    copy_all(friction_adjoint_op().call(A.cpu(), J.cpu(), mu.cpu(), v.cpu(), gamma.cpu(), u.cpu(), g_v.cpu(),
                                        g_gamma.cpu(), g_u.cpu(), smooth, on_cpu(sizes)),
             results);
  } else if (a.numel() > 0) {
    const auto batch = a.sizes().slice(0, a.dim() - 1);
    const Elements all_A(A, batch, 2), all_J(J, batch, 2), all_mu(mu, batch, 1), all_v(v, batch, 1),
        all_gamma(gamma, batch, 1), all_u(u, batch, 1), all_g_v(g_v, batch, 1), all_g_gamma(g_gamma, batch, 1),
        all_g_u(g_u, batch, 1);
    AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_friction_adjoint", [&] {
      const friction::cuda::Problems<scalar_t> problems = {
          static_cast<int>(A.size(-1)), static_cast<int>(J.size(-2) / 3),
          all_A.view<scalar_t>(),       {nullptr, true},
          all_J.view<scalar_t>(),       {nullptr, true},
          all_mu.view<scalar_t>()};
      const friction::cuda::Point<scalar_t> at = {all_v.view<scalar_t>(), all_gamma.view<scalar_t>(),
                                                  all_u.view<scalar_t>()};
      const friction::cuda::Point<scalar_t> g = {all_g_v.view<scalar_t>(), all_g_gamma.view<scalar_t>(),
                                                 all_g_u.view<scalar_t>()};
      friction::cuda::adjoint<scalar_t>(c10::multiply_integers(batch), problems, at, g, rank_tolerance(A),
                                        a.mutable_data_ptr<scalar_t>(), c.mutable_data_ptr<scalar_t>(),
                                        of_mu.mutable_data_ptr<scalar_t>(), c10::cuda::getCurrentCUDAStream());
    });
  }
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CUDA, library) {
  library.impl("_friction_point", TORCH_FN(friction_point_cuda));
  library.impl("_friction_adjoint", TORCH_FN(friction_adjoint_cuda));
}

}  // namespace
}  // namespace lcp::ops::cuda
