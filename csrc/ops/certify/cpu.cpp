// The certificate of a solution, on the CPU, with threads over the batch.
#include <ATen/Dispatch.h>

#include <type_traits>

#include "ops/certify/operators.h"
#include "ops/elements.h"
#include "ops/registration.h"
#include "solver/certifier.h"
#include "solver/directional_derivative.h"

namespace lcp::ops {
namespace {

Tensors<5> certify_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const std::optional<Tensor>& sizes,
                       std::optional<double> tolerance) {
  if (sizes) return for_each_size(kCertify, "n", certify_cpu, M, q, z, sizes, tolerance);
  auto results = new_results<5>(kCertify, M, q, z, sizes, tolerance);
  const Tensor &residual = results[0], &margin = results[1], &condition = results[2], &rank = results[3],
               &ties = results[4];
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::certify", [&] {
    for_each_element<scalar_t>(residual.sizes(), {{M, 2}, {q, 1}, {z, 1}}, n, [&] {
      return [&, certifier = solver::Certifier(n, std::is_same_v<scalar_t, float>),
              to_residual = residual.mutable_data_ptr<scalar_t>(), to_margin = margin.mutable_data_ptr<scalar_t>(),
              to_condition = condition.mutable_data_ptr<scalar_t>(), to_rank = rank.mutable_data_ptr<std::int64_t>(),
              to_ties = ties.mutable_data_ptr<bool>()](const double* const* x, std::int64_t b) mutable {
        certifier.set(x[0], x[1], x[2], tolerance);
        to_residual[b] = static_cast<scalar_t>(certifier.residual());
        to_margin[b] = static_cast<scalar_t>(certifier.margin());
        to_condition[b] = static_cast<scalar_t>(certifier.condition());
        to_rank[b] = certifier.rank();
        for (int i = 0; i < n; ++i) to_ties[b * n + i] = certifier.tied(i);
      };
    });
  });
  return as_tuple(std::move(results));
}

Tensors<3> directional_derivative_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dM,
                                      const Tensor& dq) {
  auto results = new_results<3>(kDirectionalDerivative, M, q, z, dM, dq);
  const Tensor &dz = results[0], &dw = results[1], &status = results[2];
  const auto n = static_cast<int>(M.size(-1));
  auto* status_data = status.mutable_data_ptr<std::int8_t>();
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::directional_derivative", [&] {
    for_each_element<scalar_t>(status.sizes(), {{M, 2}, {q, 1}, {z, 1}, {dM, 2}, {dq, 1}}, n, [&] {
      return
          [&, derivative = solver::DirectionalDerivative(n, std::is_same_v<scalar_t, float>),
           to_dz = Writer<scalar_t>(dz), to_dw = Writer<scalar_t>(dw)](const double* const* x, std::int64_t b) mutable {
            derivative.set(x[0], x[1], x[2]);
            status_data[b] = static_cast<std::int8_t>(derivative(x[3], x[4], to_dz.data(), to_dw.data()));
            to_dz.store(b);
            to_dw.store(b);
          };
    });
  });
  return as_tuple(std::move(results));
}

Tensor gradient_radius_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dq) {
  Tensor radius = std::get<0>(new_results<1>(kGradientRadius, M, q, z, dq));
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::gradient_radius", [&] {
    auto* data = radius.mutable_data_ptr<scalar_t>();
    for_each_element<scalar_t>(radius.sizes(), {{M, 2}, {q, 1}, {z, 1}, {dq, 1}}, n, [&] {
      return [&, derivative = solver::DirectionalDerivative(n, std::is_same_v<scalar_t, float>)](
                 const double* const* x, std::int64_t b) mutable {
        derivative.set(x[0], x[1], x[2]);
        data[b] = static_cast<scalar_t>(derivative.radius(x[3]));
      };
    });
  });
  return radius;
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("certify", TORCH_FN(certify_cpu));
  library.impl("directional_derivative", TORCH_FN(directional_derivative_cpu));
  library.impl("gradient_radius", TORCH_FN(gradient_radius_cpu));
}

}  // namespace
}  // namespace lcp::ops
