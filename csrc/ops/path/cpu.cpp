// The smoothed derivative on the CPU, with threads over the batch.
#include <ATen/Dispatch.h>

#include <limits>

#include "ops/elements.h"
#include "ops/path/operators.h"
#include "ops/registration.h"
#include "solver/central_path.h"
#include "solver/path_derivative.h"

namespace lcp::ops {
namespace {

Tensors<2> path_point_cpu(const Tensor& M, const Tensor& q, const Tensor& z_0, std::int64_t num_equations, double kappa,
                          const std::optional<Tensor>& sizes) {
  if (sizes) return for_each_size(kPathPoint, "n", path_point_cpu, M, q, z_0, num_equations, kappa, sizes);
  auto results = new_results<2>(kPathPoint, M, q, z_0, num_equations, kappa, sizes);
  const Tensor &z = results[0], &w = results[1];
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_path_point", [&] {
    for_each_element<scalar_t>(batch_of(z), {{M, 2}, {q, 1}, {z_0, 1}}, n, [&] {
      return [&, path = solver::CentralPath(n, static_cast<int>(num_equations)), to_z = Writer<scalar_t>(z),
              to_w = Writer<scalar_t>(w)](const double* const* x, std::int64_t b) mutable {
        if (!path.point(x[0], x[1], x[2], kappa, to_z.data(), to_w.data())) {
          to_z.fill(std::numeric_limits<double>::quiet_NaN());
          to_w.fill(std::numeric_limits<double>::quiet_NaN());
        }
        to_z.store(b);
        to_w.store(b);
      };
    });
  });
  return as_tuple(std::move(results));
}

// K or K'.
template <bool kTransposed>
Tensors<2> path_derivative_cpu(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r, const Tensor& s,
                               const std::optional<Tensor>& sizes) {
  constexpr const Operator& op = kTransposed ? kPathAdjoint : kPathTangent;
  if (sizes) return for_each_size(op, "n", path_derivative_cpu<kTransposed>, M, a, b, r, s, sizes);
  auto results = new_results<2>(op, M, a, b, r, s, sizes);
  const Tensor &x = results[0], &y = results[1];
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_path_tangent", [&] {
    for_each_element<scalar_t>(batch_of(x), {{M, 2}, {a, 1}, {b, 1}, {r, 1}, {s, 1}}, n, [&] {
      return [&, derivative = solver::PathDerivative(n), to_x = Writer<scalar_t>(x), to_y = Writer<scalar_t>(y)](
                 const double* const* in, std::int64_t element) mutable {
        derivative.set(in[0], in[1], in[2]);
        if constexpr (kTransposed) {
          derivative.adjoint(in[3], in[4], to_x.data(), to_y.data());
        } else {
          derivative.tangent(in[3], in[4], to_x.data(), to_y.data());
        }
        to_x.store(element);
        to_y.store(element);
      };
    });
  });
  return as_tuple(std::move(results));
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_path_point", TORCH_FN(path_point_cpu));
  library.impl("_path_tangent", TORCH_FN(path_derivative_cpu<false>));
  library.impl("_path_adjoint", TORCH_FN(path_derivative_cpu<true>));
}

}  // namespace
}  // namespace lcp::ops
