// The CPU kernels of rigid contact with friction.
#include <ATen/Dispatch.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "friction/derivative.h"
#include "friction/ladder.h"
#include "friction/smooth_path.h"
#include "ops/elements.h"
#include "ops/friction/operators.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

Tensors<5> friction_point_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                              const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess, double kappa,
                              std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  if (sizes) {
    return for_each_size(kFrictionPoint, "c", friction_point_cpu, A, v_free, J, b, mu, sizes, guess, kappa, tolerance,
                         max_iterations);
  }
  auto results = new_results<5>(kFrictionPoint, A, v_free, J, b, mu, sizes, guess, kappa, tolerance, max_iterations);
  const Tensor &v = results[0], &gamma = results[1], &u = results[2], &status = results[3], &iterations = results[4];
  const std::int64_t n = A.size(-1), contacts = J.size(-2) / 3;
  const friction::Limits limits = {tolerance.value_or(default_friction_tolerance(A)),
                                   max_iterations.value_or(std::numeric_limits<std::int64_t>::max())};
  const Tensor& start = guess ? *guess : b;  // b is not read as a guess
  auto* const to_status = status.mutable_data_ptr<std::int8_t>();
  auto* const to_iterations = iterations.mutable_data_ptr<std::int64_t>();
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::solve_friction", [&] {
    for_each_element<scalar_t>(
        status.sizes(), {{A, 2}, {v_free, 1}, {J, 2}, {b, 1}, {mu, 1}, {start, 1}}, n + 3 * contacts, [&] {
          return [&, ladder = friction::Ladder(n, contacts, limits), to_v = Writer<scalar_t>(v),
                  to_gamma = Writer<scalar_t>(gamma),
                  to_u = Writer<scalar_t>(u)](const double* const* x, std::int64_t element) mutable {
            const bool usable =
                guess && std::all_of(x[5], x[5] + 3 * contacts, [](double g) { return std::isfinite(g); });
            const Status found = ladder.solve({x[0], x[1], x[2], x[3], x[4]}, usable ? x[5] : nullptr, to_v.data(),
                                              to_gamma.data(), to_u.data());
            to_status[element] = static_cast<std::int8_t>(found);
            to_iterations[element] = ladder.iterations();
            for (const auto* writer : {&to_v, &to_gamma, &to_u}) writer->store(element);
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<5> row_point_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                         const Tensor& lower, const Tensor& upper, const std::optional<Tensor>& guess,
                         std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  auto results = new_results<5>(kRowPoint, A, v_free, J, b, mu, lower, upper, guess, tolerance, max_iterations);
  const Tensor &v = results[0], &gamma = results[1], &u = results[2], &status = results[3], &iterations = results[4];
  const std::int64_t n = A.size(-1), contacts = mu.size(-1), rows = lower.size(-1), size = 3 * contacts + rows;
  const friction::Limits limits = {tolerance.value_or(default_friction_tolerance(A)),
                                   max_iterations.value_or(std::numeric_limits<std::int64_t>::max())};
  const Tensor& start = guess ? *guess : b;  // b is not read as a guess
  auto* const to_status = status.mutable_data_ptr<std::int8_t>();
  auto* const to_iterations = iterations.mutable_data_ptr<std::int64_t>();
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_row_point", [&] {
    for_each_element<scalar_t>(
        status.sizes(), {{A, 2}, {v_free, 1}, {J, 2}, {b, 1}, {mu, 1}, {lower, 1}, {upper, 1}, {start, 1}}, n + size,
        [&] {
          return [&, ladder = friction::Ladder(n, contacts, limits, rows), to_v = Writer<scalar_t>(v),
                  to_gamma = Writer<scalar_t>(gamma),
                  to_u = Writer<scalar_t>(u)](const double* const* x, std::int64_t element) mutable {
            const bool usable = guess && std::all_of(x[7], x[7] + size, [](double g) { return std::isfinite(g); });
            const Status found = ladder.solve({x[0], x[1], x[2], x[3], x[4], x[5], x[6]}, usable ? x[7] : nullptr,
                                              to_v.data(), to_gamma.data(), to_u.data());
            to_status[element] = static_cast<std::int8_t>(found);
            to_iterations[element] = ladder.iterations();
            for (const auto* writer : {&to_v, &to_gamma, &to_u}) writer->store(element);
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<5> row_adjoint_cpu(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& lower, const Tensor& upper,
                           const Tensor& v, const Tensor& gamma, const Tensor& u, const Tensor& g_v,
                           const Tensor& g_gamma, const Tensor& g_u) {
  auto results = new_results<5>(kRowAdjoint, A, J, mu, lower, upper, v, gamma, u, g_v, g_gamma, g_u);
  const std::int64_t n = A.size(-1), contacts = mu.size(-1), rows = lower.size(-1);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_row_adjoint", [&] {
    for_each_element<scalar_t>(
        batch_of(results.front()),
        {{A, 2}, {J, 2}, {mu, 1}, {lower, 1}, {upper, 1}, {v, 1}, {gamma, 1}, {u, 1}, {g_v, 1}, {g_gamma, 1}, {g_u, 1}},
        n + 3 * contacts + rows, [&] {
          std::vector<Writer<scalar_t>> to(results.begin(), results.end());
          return [derivative = friction::Derivative(n, contacts, rank_tolerance(A), false, rows), to = std::move(to)](
                     const double* const* x, std::int64_t element) mutable {
            derivative.adjoint({x[0], nullptr, x[1], nullptr, x[2], x[3], x[4]}, {x[5], x[6], x[7]},
                               {x[8], x[9], x[10]},
                               {to[0].data(), to[1].data(), to[2].data(), to[3].data(), to[4].data()});
            for (const auto& writer : to) writer.store(element);
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<3> friction_path_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                             const Tensor& gamma_0, const Tensor& u_0, double kappa,
                             const std::optional<Tensor>& sizes) {
  if (sizes) {
    return for_each_size(kFrictionPath, "c", friction_path_cpu, A, v_free, J, b, mu, gamma_0, u_0, kappa, sizes);
  }
  auto results = new_results<3>(kFrictionPath, A, v_free, J, b, mu, gamma_0, u_0, kappa, sizes);
  const std::int64_t n = A.size(-1), contacts = J.size(-2) / 3;
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_friction_path", [&] {
    for_each_element<scalar_t>(
        batch_of(results.front()), {{A, 2}, {v_free, 1}, {J, 2}, {b, 1}, {mu, 1}, {gamma_0, 1}, {u_0, 1}},
        n + 3 * contacts, [&] {
          std::vector<Writer<scalar_t>> to(results.begin(), results.end());
          return [&, path = friction::SmoothPath(static_cast<int>(contacts)),
                  problem = friction::ImpulseProblem(n, contacts), h = std::vector<double>(3 * contacts),
                  u = std::vector<double>(3 * contacts),
                  to = std::move(to)](const double* const* x, std::int64_t element) mutable {
            // An element with a solution is well posed.
            bool found = std::all_of(x[5], x[5] + 3 * contacts, [](double g) { return std::isfinite(g); }) &&
                         problem.set({x[0], x[1], x[2], x[3], x[4]});
            if (found) {
              const double unit = problem.unit();
              problem.scaled(x[5], h.data());
              for (std::int64_t i = 0; i < 3 * contacts; ++i) {
                u[i] = x[6][i] / (problem.impulses().weight[i / 3] * unit);
              }
              found = path.point(problem.impulses(), kappa / (unit * unit), h.data(), u.data());
            }
            if (found) {
              problem.unscaled(h.data(), to[1].data(), to[0].data(), to[2].data());
              // The digits of a velocity near 0 are lost in J v + b.
              for (std::int64_t i = 0; i < 3 * contacts; ++i) {
                to[2].data()[i] = u[i] * problem.impulses().weight[i / 3] * problem.unit();
              }
            } else {
              for (auto& writer : to) writer.fill(std::numeric_limits<double>::quiet_NaN());
            }
            for (const auto& writer : to) writer.store(element);
          };
        });
  });
  return as_tuple(std::move(results));
}

// lower, upper: nullptr without rows.
Tensors<4> certify(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                   const Tensor& v, const Tensor& gamma, const Tensor* lower, const Tensor* upper,
                   std::array<Tensor, 4>&& results) {
  const Tensor &residual = results[0], &margin = results[1], &rank = results[2], &unique = results[3];
  const std::int64_t n = A.size(-1), contacts = mu.size(-1), size = J.size(-2);
  const Tensor &from = lower != nullptr ? *lower : mu, &to = upper != nullptr ? *upper : mu;
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::certify_friction", [&] {
    for_each_element<scalar_t>(
        residual.sizes(), {{A, 2}, {v_free, 1}, {J, 2}, {b, 1}, {mu, 1}, {v, 1}, {gamma, 1}, {from, 1}, {to, 1}},
        n + size, [&] {
          return [&, derivative = friction::Derivative(n, contacts, rank_tolerance(A), false, size - 3 * contacts),
                  u = std::vector<double>(size), to_residual = residual.mutable_data_ptr<scalar_t>(),
                  to_margin = margin.mutable_data_ptr<scalar_t>(), to_rank = rank.mutable_data_ptr<std::int64_t>(),
                  to_unique = unique.mutable_data_ptr<bool>()](const double* const* x, std::int64_t element) mutable {
            for (std::int64_t i = 0; i < size; ++i) {
              u[i] = x[3][i];
              for (std::int64_t j = 0; j < n; ++j) u[i] += x[2][i * n + j] * x[5][j];
            }
            constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
            friction::Certificate found = {kUndefined, kUndefined, 0, false};
            derivative.certify({x[0], x[1], x[2], x[3], x[4], x[7], x[8]}, {x[5], x[6], u.data()}, found);
            to_residual[element] = static_cast<scalar_t>(found.residual);
            to_margin[element] = static_cast<scalar_t>(found.margin);
            to_rank[element] = found.rank;
            to_unique[element] = found.unique;
          };
        });
  });
  return as_tuple(std::move(results));
}

Tensors<4> certify_contacts_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                                const Tensor& mu, const Tensor& v, const Tensor& gamma,
                                const std::optional<Tensor>& sizes) {
  if (sizes) return for_each_size(kCertifyContacts, "c", certify_contacts_cpu, A, v_free, J, b, mu, v, gamma, sizes);
  auto results = new_results<4>(kCertifyContacts, A, v_free, J, b, mu, v, gamma, sizes);
  return certify(A, v_free, J, b, mu, v, gamma, nullptr, nullptr, std::move(results));
}

Tensors<4> certify_rows_cpu(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b, const Tensor& mu,
                            const Tensor& lower, const Tensor& upper, const Tensor& v, const Tensor& gamma) {
  auto results = new_results<4>(kCertifyRows, A, v_free, J, b, mu, lower, upper, v, gamma);
  return certify(A, v_free, J, b, mu, v, gamma, &lower, &upper, std::move(results));
}

Tensors<3> friction_adjoint_cpu(const Tensor& A, const Tensor& J, const Tensor& mu, const Tensor& v,
                                const Tensor& gamma, const Tensor& u, const Tensor& g_v, const Tensor& g_gamma,
                                const Tensor& g_u, bool smooth, const std::optional<Tensor>& sizes) {
  if (sizes) {
    return for_each_size(kFrictionAdjoint, "c", friction_adjoint_cpu, A, J, mu, v, gamma, u, g_v, g_gamma, g_u, smooth,
                         sizes);
  }
  auto results = new_results<3>(kFrictionAdjoint, A, J, mu, v, gamma, u, g_v, g_gamma, g_u, smooth, sizes);
  const std::int64_t n = A.size(-1), contacts = J.size(-2) / 3;
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "lcp::_friction_adjoint", [&] {
    for_each_element<scalar_t>(batch_of(results.front()),
                               {{A, 2}, {J, 2}, {mu, 1}, {v, 1}, {gamma, 1}, {u, 1}, {g_v, 1}, {g_gamma, 1}, {g_u, 1}},
                               n + 3 * contacts, [&] {
                                 std::vector<Writer<scalar_t>> to(results.begin(), results.end());
                                 return [derivative = friction::Derivative(n, contacts, rank_tolerance(A), smooth),
                                         to = std::move(to)](const double* const* x, std::int64_t element) mutable {
                                   derivative.adjoint({x[0], nullptr, x[1], nullptr, x[2]}, {x[3], x[4], x[5]},
                                                      {x[6], x[7], x[8]}, {to[0].data(), to[1].data(), to[2].data()});
                                   for (const auto& writer : to) writer.store(element);
                                 };
                               });
  });
  return as_tuple(std::move(results));
}

Tensor least_norm_cpu(const Tensor& N, const Tensor& y, double tolerance) {
  Tensor result = std::get<0>(new_results<1>(kLeastNorm, N, y, tolerance));
  const std::int64_t n = N.size(-1);
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  AT_DISPATCH_FLOATING_TYPES(N.scalar_type(), "lcp::_least_norm", [&] {
    for_each_element<scalar_t>(batch_of(result), {{N, 2}, {y, 1}}, n, [&] {
      return
          [&, to_x = Writer<scalar_t>(result), factors = Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd>(n, n),
           x = Eigen::VectorXd(n)](const double* const* given, std::int64_t element) mutable {
            const Eigen::Map<const Matrix> matrix(given[0], n, n);
            const Eigen::Map<const Eigen::VectorXd> right(given[1], n);
            if (n == 0 || (right.array() == 0).all()) {
              x.setZero();
            } else if (!matrix.allFinite() || !right.allFinite()) {
              x.setConstant(std::numeric_limits<double>::quiet_NaN());
            } else {
              factors.setThreshold(tolerance);
              factors.compute(matrix);
              x = factors.solve(right);
            }
            std::copy_n(x.data(), n, to_x.data());
            to_x.store(element);
          };
    });
  });
  return result;
}

LCP_LIBRARY_IMPL(CPU, library) {
  library.impl("_friction_point", TORCH_FN(friction_point_cpu));
  library.impl("_friction_path", TORCH_FN(friction_path_cpu));
  library.impl("_certify_contacts", TORCH_FN(certify_contacts_cpu));
  library.impl("_certify_rows", TORCH_FN(certify_rows_cpu));
  library.impl("_friction_adjoint", TORCH_FN(friction_adjoint_cpu));
  library.impl("_row_point", TORCH_FN(row_point_cpu));
  library.impl("_row_adjoint", TORCH_FN(row_adjoint_cpu));
  library.impl("_least_norm", TORCH_FN(least_norm_cpu));
}

}  // namespace
}  // namespace lcp::ops
