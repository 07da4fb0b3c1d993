// The CPU kernels of compliant contact.
#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "contact/derivative.h"
#include "contact/newton.h"
#include "contact/optimality_check.h"
#include "ops/contact/operators.h"
#include "ops/elements.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

struct ProblemSize {
  ProblemSize(const Tensor& A, const Tensor& J) : n(A.size(-1)), contacts(J.size(-2) / 3) {}

  std::int64_t work() const { return n + 3 * contacts; }  // the size of tasks depends on it

  std::int64_t n, contacts;
};

Tensors<5> contact_point_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                             const Tensor& R, const Tensor& mu, const std::optional<Tensor>& sizes,
                             const std::optional<Tensor>& guess, std::optional<double> tolerance,
                             std::optional<std::int64_t> max_iterations) {
  if (sizes) {
    return for_each_size(kContactPoint, "c", contact_point_cpu, A, v_free, J, v_hat, R, mu, sizes, guess, tolerance,
                         max_iterations);
  }
  auto results = new_results<5>(kContactPoint, A, v_free, J, v_hat, R, mu, sizes, guess, tolerance, max_iterations);
  const Tensor &v = results[0], &y = results[1], &gamma = results[2], &status = results[3], &iterations = results[4];
  const Tensor& start = guess ? *guess : v_free;
  const ProblemSize size(A, J);
  const contact::Limits limits = {tolerance.value_or(kContactTolerance),
                                  max_iterations.value_or(contact::kDefaultMaxIterations)};
  auto* const to_status = status.mutable_data_ptr<std::int8_t>();
  auto* const to_iterations = iterations.mutable_data_ptr<std::int64_t>();
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::solve_contact", [&] {
    for_each_element<scalar_t>(
        status.sizes(), {{A, 2}, {v_free, 1}, {J, 2}, {v_hat, 1}, {R, 1}, {mu, 1}, {start, 1}}, size.work(), [&] {
          return [&, newton = contact::Newton(size.n, size.contacts), to_v = Writer<scalar_t>(v),
                  to_y = Writer<scalar_t>(y),
                  to_gamma = Writer<scalar_t>(gamma)](const double* const* x, std::int64_t b) mutable {
            const bool usable = std::none_of(x[6], x[6] + size.n, [](double s) { return !std::isfinite(s); });
            std::copy_n(usable ? x[6] : x[1], size.n, to_v.data());
            const auto outcome =
                newton.solve({x[0], x[1], x[2], x[3], x[4], x[5]}, limits, to_v.data(), to_y.data(), to_gamma.data());
            if (outcome.termination != contact::Termination::kSolved) {
              for (auto* writer : {&to_v, &to_y, &to_gamma}) writer->fill(std::numeric_limits<double>::quiet_NaN());
            }
            to_status[b] = static_cast<std::int8_t>(contact::status_of(outcome.termination));
            to_iterations[b] = outcome.iterations;
            for (const auto* writer : {&to_v, &to_y, &to_gamma}) writer->store(b);
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<3> certify_contact_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                               const Tensor& R, const Tensor& mu, const Tensor& v, const std::optional<Tensor>& sizes) {
  if (sizes) return for_each_size(kCertifyContact, "c", certify_contact_cpu, A, v_free, J, v_hat, R, mu, v, sizes);
  auto results = new_results<3>(kCertifyContact, A, v_free, J, v_hat, R, mu, v, sizes);
  const Tensor &residual = results[0], &margin = results[1], &condition = results[2];
  const ProblemSize size(A, J);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::certify_contact", [&] {
    for_each_element<scalar_t>(
        residual.sizes(), {{A, 2}, {v_free, 1}, {J, 2}, {v_hat, 1}, {R, 1}, {mu, 1}, {v, 1}}, size.work(), [&] {
          return
              [&, check = contact::OptimalityCheck(size.n, size.contacts),
               to_residual = residual.mutable_data_ptr<scalar_t>(), to_margin = margin.mutable_data_ptr<scalar_t>(),
               to_condition = condition.mutable_data_ptr<scalar_t>()](const double* const* x, std::int64_t b) mutable {
                check.set({x[0], x[1], x[2], x[3], x[4], x[5]}, x[6]);
                to_residual[b] = static_cast<scalar_t>(check.residual());
                to_margin[b] = static_cast<scalar_t>(check.margin());
                to_condition[b] = static_cast<scalar_t>(check.condition());
              };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<6> contact_adjoint_cpu(const Tensor& A, const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v,
                               const Tensor& y, const Tensor& g_v, const Tensor& g_y, const Tensor& g_gamma,
                               const std::optional<Tensor>& sizes) {
  if (sizes) {
    return for_each_size(kContactAdjoint, "c", contact_adjoint_cpu, A, J, R, mu, v, y, g_v, g_y, g_gamma, sizes);
  }
  auto results = new_results<6>(kContactAdjoint, A, J, R, mu, v, y, g_v, g_y, g_gamma, sizes);
  const ProblemSize size(A, J);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_contact_adjoint", [&] {
    for_each_element<scalar_t>(
        batch_of(results.front()), {{A, 2}, {J, 2}, {R, 1}, {mu, 1}, {v, 1}, {y, 1}, {g_v, 1}, {g_y, 1}, {g_gamma, 1}},
        size.work(), [&] {
          std::vector<Writer<scalar_t>> to(results.begin(), results.end());
          return [derivative = contact::Derivative(size.n, size.contacts), to = std::move(to)](const double* const* x,
                                                                                               std::int64_t b) mutable {
            derivative.adjoint({x[0], nullptr, x[1], nullptr, x[2], x[3]}, x[4], x[5], {x[6], x[7], x[8]},
                               {to[0].data(), to[1].data(), to[2].data(), to[3].data(), to[4].data(), to[5].data()});
            for (const auto& writer : to) writer.store(b);
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensor contact_inverse_cpu(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g) {
  Tensor result = std::get<0>(new_results<1>(kContactInverse, A, J, K, g));
  const ProblemSize size(A, J);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_contact_inverse", [&] {
    for_each_element<scalar_t>(batch_of(result), {{A, 2}, {J, 2}, {K, 2}, {g, 1}}, size.work(), [&] {
      return [&, inverse = contact::Inverse(size.n, size.contacts), to_x = Writer<scalar_t>(result)](
                 const double* const* x, std::int64_t b) mutable {
        inverse(x[0], x[1], x[2], x[3], to_x.data());
        to_x.store(b);
      };
    });
  });
  return result;
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("certify_contact", TORCH_FN(certify_contact_cpu));
  library.impl("_contact_point", TORCH_FN(contact_point_cpu));
  library.impl("_contact_adjoint", TORCH_FN(contact_adjoint_cpu));
  library.impl("_contact_inverse", TORCH_FN(contact_inverse_cpu));
}

}  // namespace
}  // namespace lcp::ops
