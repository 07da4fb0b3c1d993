// Compliant contact on a GPU: few contacts by the kernels; more contacts, and elements that the kernels leave, on the
// CPU.
#include <ATen/Dispatch.h>

#include "contact/cuda/kernels.h"
#include "contact/newton.h"
#include "ops/contact/operators.h"
#include "ops/cuda/elements.h"
#include "ops/registration.h"

namespace lcp::ops::cuda {
namespace {

Tensors<5> contact_point_cuda(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                              const Tensor& R, const Tensor& mu, const std::optional<Tensor>& sizes,
                              const std::optional<Tensor>& guess, std::optional<double> tolerance,
                              std::optional<std::int64_t> max_iterations) {
  const c10::cuda::CUDAGuard guard(A.device());
  auto results = new_results<5>(kContactPoint, A, v_free, J, v_hat, R, mu, sizes, guess, tolerance, max_iterations);
  const auto& [v, y, gamma, status, iterations] = results;
  if (!has_contact_kernel(A, J, sizes)) {
    copy_all(contact_point_op().call(A.cpu(), v_free.cpu(), J.cpu(), v_hat.cpu(), R.cpu(), mu.cpu(), on_cpu(sizes),
                                     on_cpu(guess), tolerance, max_iterations),
             results);
    return as_tuple(std::move(results));
  }
  if (status.numel() == 0) return as_tuple(std::move(results));
  const auto batch = status.sizes();
  const Elements all_A(A, batch, 2), all_v_free(v_free, batch, 1), all_J(J, batch, 2), all_v_hat(v_hat, batch, 1),
      all_R(R, batch, 1), all_mu(mu, batch, 1);
  std::optional<Elements> all_guess;
  if (guess) all_guess.emplace(*guess, batch, 1);
  const LeftCount left(status);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::solve_contact", [&] {
    const contact::cuda::Problems<scalar_t> problems = {static_cast<int>(A.size(-1)), static_cast<int>(J.size(-2) / 3),
                                                        all_A.view<scalar_t>(),       all_v_free.view<scalar_t>(),
                                                        all_J.view<scalar_t>(),       all_v_hat.view<scalar_t>(),
                                                        all_R.view<scalar_t>(),       all_mu.view<scalar_t>()};
    contact::cuda::solve<scalar_t>(
        status.numel(), problems, all_guess ? all_guess->view<scalar_t>() : linalg::BatchView<scalar_t>{nullptr, true},
        tolerance.value_or(kContactTolerance), max_iterations.value_or(contact::kDefaultMaxIterations),
        {v.mutable_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), gamma.mutable_data_ptr<scalar_t>(),
         status.mutable_data_ptr<std::int8_t>(), iterations.mutable_data_ptr<std::int64_t>()},
        is_captured() ? nullptr : left.data(), c10::cuda::getCurrentCUDAStream());
  });
  finish_left(left, results, [&](const Tensor& elements) {
    return contact_point_op().call(all_A.on_cpu(elements), all_v_free.on_cpu(elements), all_J.on_cpu(elements),
                                   all_v_hat.on_cpu(elements), all_R.on_cpu(elements), all_mu.on_cpu(elements),
                                   std::nullopt, all_guess ? std::optional(all_guess->on_cpu(elements)) : std::nullopt,
                                   tolerance, max_iterations);
  });
  return as_tuple(std::move(results));
}

Tensors<6> contact_adjoint_cuda(const Tensor& A, const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v,
                                const Tensor& y, const Tensor& g_v, const Tensor& g_y, const Tensor& g_gamma,
                                const std::optional<Tensor>& sizes) {
  const c10::cuda::CUDAGuard guard(A.device());
  auto results = new_results<6>(kContactAdjoint, A, J, R, mu, v, y, g_v, g_y, g_gamma, sizes);
  const auto& [l, of_v_free, of_v_hat, of_R, of_mu, gamma] = results;
  if (!has_contact_kernel(A, J, sizes)) {
    copy_all(contact_adjoint_op().call(A.cpu(), J.cpu(), R.cpu(), mu.cpu(), v.cpu(), y.cpu(), g_v.cpu(), g_y.cpu(),
                                       g_gamma.cpu(), on_cpu(sizes)),
             results);
  } else if (l.numel() > 0) {
    const auto batch = l.sizes().slice(0, l.dim() - 1);
    const Elements all_A(A, batch, 2), all_J(J, batch, 2), all_R(R, batch, 1), all_mu(mu, batch, 1), all_v(v, batch, 1),
        all_y(y, batch, 1), all_g_v(g_v, batch, 1), all_g_y(g_y, batch, 1), all_g_gamma(g_gamma, batch, 1);
    AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_contact_adjoint", [&] {
      const contact::cuda::Problems<scalar_t> problems = {
          static_cast<int>(A.size(-1)), static_cast<int>(J.size(-2) / 3),
          all_A.view<scalar_t>(),       {nullptr, true},
          all_J.view<scalar_t>(),       {nullptr, true},
          all_R.view<scalar_t>(),       all_mu.view<scalar_t>()};
      const contact::cuda::Point<scalar_t> at = {all_v.view<scalar_t>(), all_y.view<scalar_t>(), {nullptr, true}};
      const contact::cuda::Point<scalar_t> g = {all_g_v.view<scalar_t>(), all_g_y.view<scalar_t>(),
                                                all_g_gamma.view<scalar_t>()};
      contact::cuda::adjoint<scalar_t>(c10::multiply_integers(batch), problems, at, g,
                                       {l.mutable_data_ptr<scalar_t>(), of_v_free.mutable_data_ptr<scalar_t>(),
                                        of_v_hat.mutable_data_ptr<scalar_t>(), of_R.mutable_data_ptr<scalar_t>(),
                                        of_mu.mutable_data_ptr<scalar_t>(), gamma.mutable_data_ptr<scalar_t>()},
                                       c10::cuda::getCurrentCUDAStream());
    });
  }
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CUDA, library) {
  library.impl("_contact_point", TORCH_FN(contact_point_cuda));
  library.impl("_contact_adjoint", TORCH_FN(contact_adjoint_cuda));
}

}  // namespace
}  // namespace lcp::ops::cuda
